"""A share of runs with its exact interval."""

from __future__ import annotations

from scipy.stats import beta


def interval(hits: int, of: int) -> tuple[float, float]:
    """Return the 95 % interval of a share (Clopper and Pearson 1934)."""
    low = float(beta.ppf(0.025, hits, of - hits + 1)) if hits else 0.0
    return low, float(beta.ppf(0.975, hits + 1, of - hits)) if hits < of else 1.0
