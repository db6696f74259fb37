"""The warm-up of a lifetime is cut, and nothing of a steady one."""

from __future__ import annotations

import numpy as np
import pytest

from specmine.mining.regression.warmup import warmup_calls


@pytest.mark.parametrize("calls", [200, 2000])
def test_a_slow_start_is_cut(calls: int) -> None:
    """Fifty calls three times slower are found, with hardly any others."""
    rng = np.random.default_rng(calls)
    values = rng.normal(1000, 30, calls) * np.where(np.arange(calls) < 50, 3.0, 1.0)
    assert 50 <= warmup_calls(values) <= 75


def test_steady_lifetimes_keep_their_calls() -> None:
    """Of 300 steady lifetimes, skewed and with rare long calls, hardly one loses any."""
    rng = np.random.default_rng(5)
    cut = [warmup_calls(rng.lognormal(10, 0.5, 400) * np.where(rng.random(400) < 0.01, 50, 1)) for _ in range(300)]
    assert sum(each > 0 for each in cut) <= 6


@pytest.mark.parametrize(
    "values", [np.arange(400.0), np.arange(400.0)[::-1], np.repeat([1.0, 3.0], 200), np.ones(400), np.arange(30.0)]
)
def test_what_never_comes_to_rest_has_no_warmup(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> None:
    """Sorted, drifting, half and half, constant and short series stay whole."""
    assert warmup_calls(values) == 0
