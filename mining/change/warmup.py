"""Where a lifetime's warm-up ends: one rule, the same for all, that cuts nothing from a steady lifetime."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

BATCH = 5
FEWEST_BATCHES = 8
LARGEST_SHARE = 0.5
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
        At most half of the calls; 0 for fewer than 40.

    Notes
    -----
    MSER-5 (White, An effective truncation heuristic for bias reduction in simulation output, 1997): of all
    cuts behind a batch of five calls, the one with the smallest standard error of the rest. Batches are
    represented by their medians, so that single long calls count for nothing. MSER alone cuts a random piece
    from most steady series, which costs calls and gains nothing; so a cut is made only if the medians before
    it differ from those behind it by ``SIGNIFICANT_Z`` standard errors.
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
    if cut == 0:
        return 0
    before, after = levels[:cut], levels[cut:]
    spread = float(np.std(after, ddof=1))
    error = spread * float(np.sqrt(1 / len(before) + 1 / len(after)))
    if abs(float(before.mean() - after.mean())) <= SIGNIFICANT_Z * error:
        return 0
    return cut * BATCH
