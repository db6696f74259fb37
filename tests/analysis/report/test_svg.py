"""Plots show the range of most values."""

from __future__ import annotations

import numpy as np

from specmine.analysis.report.svg import shortest_range


def test_the_shortest_range_of_most_values() -> None:
    """950 values around 100 and 50 far above: the range is that of the 950."""
    rng = np.random.default_rng(2)
    near = rng.normal(100, 1, 950)
    low, high = shortest_range([*near, *rng.uniform(1e3, 1e5, 50)])
    assert (low, high) == (near.min(), near.max())
    assert shortest_range([5.0]) == (5.0, 5.0)
