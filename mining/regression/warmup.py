"""Where a lifetime's warm-up ends: one rule, the same for all, that cuts nothing from a steady lifetime."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

BATCH = 5
FEWEST_BATCHES = 8
LARGEST_SHARE = 1 / 3
SIGNIFICANT_Z = 5.0


def warmup_calls(durations: ArrayLike) -> int:
    """Return how many of the first calls are warm-up.

    Parameters
    ----------
    durations : array_like of float
        Durations in the order of time, any unit.

    Returns
    -------
    int
        At most a third of the calls; 0 for fewer than 40.

    Notes
    -----
    MSER-5 (White, An effective truncation heuristic for bias reduction in simulation output, 1997): of all
    cuts behind a batch of five calls, the one with the smallest standard error of the rest. Batches are
    represented by their medians, so that single long calls count for nothing. MSER alone cuts a random piece
    from most steady series, which costs calls and gains nothing; so a cut is made only if the medians before
    it differ from those behind it by ``SIGNIFICANT_Z`` standard errors, and if what is left has come to rest:
    its halves do not differ so. A series that drifts to its end, or a sorted one, has no warm-up.
    """
    values = np.asarray(durations, dtype=np.float64)
    batches = len(values) // BATCH
    if batches < FEWEST_BATCHES:
        return 0
    levels = np.median(values[: batches * BATCH].reshape(batches, BATCH), axis=1)
    # sums over what is left behind each possible cut, from the end
    rest = np.arange(batches, 0, -1)
    behind = np.cumsum(levels[::-1])[::-1] / rest
    squares = np.maximum(np.cumsum((levels**2)[::-1])[::-1] / rest - behind**2, 0.0)
    last = int(batches * LARGEST_SHARE)
    cut = int(np.argmin((squares / rest)[: last + 1]))
    if cut in (0, last):  # at the end of the range no end of the warm-up was found
        return 0
    rest_levels = levels[cut:]
    half = len(rest_levels) // 2
    if not _differ(levels[:cut], rest_levels) or _differ(rest_levels[:half], rest_levels[half:]):
        return 0
    return cut * BATCH


def _differ(first: Floats, second: Floats) -> bool:
    error = float(np.std(second, ddof=1)) * float(np.sqrt(1 / len(first) + 1 / len(second)))
    return abs(float(first.mean() - second.mean())) > SIGNIFICANT_Z * error
