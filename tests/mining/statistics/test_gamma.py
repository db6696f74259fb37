"""Log gamma and sums of exponentials, compared with scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp

from specmine.mining.statistics.gamma import log_gamma, log_sum_exp


def test_log_gamma_is_that_of_scipy() -> None:
    """From 1e-8 to 1e9, relative to its own size or to one."""
    values = np.concatenate((np.geomspace(1e-8, 1e9, 2_000), np.arange(1, 200) / 2))
    expected = gammaln(values)
    assert np.abs(log_gamma(values) - expected).max(initial=0, where=np.abs(expected) < 1) < 1e-13
    assert (np.abs(log_gamma(values) - expected) <= 1e-13 * np.maximum(1, np.abs(expected))).all()


def test_sums_of_exponentials_are_those_of_scipy() -> None:
    """Over an axis and over all, also far from zero and with impossible terms."""
    rows = np.random.default_rng(1).normal(-700, 300, (5, 40))
    rows[2, 7] = -np.inf
    for axis in (0, 1, None):
        assert log_sum_exp(rows, axis=axis) == pytest.approx(logsumexp(rows, axis=axis), rel=1e-13)
