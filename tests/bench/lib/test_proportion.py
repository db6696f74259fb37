"""The interval of a share is that of Clopper and Pearson."""

from __future__ import annotations

import pytest
from scipy.stats import binomtest

from bench.lib.proportion import interval


@pytest.mark.parametrize(("hits", "of"), [(0, 10), (10, 10), (65, 66), (3, 40)])
def test_an_interval_is_that_of_the_exact_test(hits: int, of: int) -> None:
    """It ends where the exact binomial test just does not reject."""
    exact = binomtest(hits, of).proportion_ci(0.95, method="exact")
    assert interval(hits, of) == pytest.approx((exact.low, exact.high), abs=1e-9)
