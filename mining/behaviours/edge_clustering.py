"""Groups of call paths, found by edge where most paths have too few calls to be tested alone.

With thousands of paths of a few calls each, no path shows its class shares. All paths over one edge together do. The
paths are split by the edge that distinguishes classes best, again and again while the difference is significant. Parts
that do not differ are joined again. Behaviours that only several edges together distinguish (exclusive or) are not
detected here: ``path_clustering.py`` groups path by path.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from specmine.mining.settings import MiningSettings
from specmine.mining.statistics.class_shares import Dispersion
from specmine.mining.statistics.distributions import f_sf

from .path_clustering import Rows, differs

_PARTS = 64  # more are never needed for ``maximum_groups`` behaviours


def pooled_groups(
    present: NDArray[np.bool_],
    totals: Rows,
    noise: Dispersion,
    *,
    settings: MiningSettings,
    start: NDArray[np.int64] | None = None,
) -> NDArray[np.int64]:
    """Group call paths by their edges.

    Parameters
    ----------
    present : ndarray of bool, shape (paths, edges)
        Which path has which edge.
    totals : ndarray of float64, shape (paths, classes)
        Independent calls per path and class.
    noise : Dispersion
        Of independent calls.
    settings : MiningSettings
        ``level``, ``minimum_difference``, ``path_calls``.
    start : ndarray of int64, shape (paths,), optional
        Groups to be split further; all paths are one unless given.

    Returns
    -------
    ndarray of int64, shape (paths,)
        Group of each path, from 0, most calls first; all 0 if no edge distinguishes any.

    Notes
    -----
    Paths are split if Pearson's chi-squared between the independent calls with and without the edge is significant at
    ``level`` divided by the number of edges. A class share must also differ by ``minimum_difference``.
    """
    first = np.zeros(len(totals), dtype=np.int64) if start is None else start
    waiting = [np.flatnonzero(first == group) for group in np.unique(first)]
    parts: list[NDArray[np.int64]] = []
    while waiting:
        part = waiting.pop()
        edge = _best_split(present[part], totals[part], noise, settings) if len(parts) + len(waiting) < _PARTS else None
        if edge is None:
            parts.append(part)
        else:
            has = present[part, edge]
            waiting += [part[has], part[~has]]
    parts = _joined(parts, totals, noise, settings)
    labels = np.zeros(len(totals), dtype=np.int64)
    for number, part in enumerate(sorted(parts, key=lambda p: (-float(totals[p].sum()), int(p.min())))):
        labels[part] = number
    return labels


def _best_split(present: NDArray[np.bool_], rows: Rows, noise: Dispersion, settings: MiningSettings) -> int | None:
    """Return the edge with the most significant difference in class shares; None if none is significant."""
    rows = rows[:, rows.sum(axis=0) > 0]
    if rows.shape[1] < 2 or len(rows) < 2 or present.shape[1] == 0:
        return None
    yes = present.T.astype(np.float64) @ rows
    both = rows.sum(axis=0)
    no = both - yes
    many = np.minimum(yes.sum(axis=1), no.sum(axis=1)) >= settings.path_calls
    size = np.maximum(np.array([yes.sum(axis=1), no.sum(axis=1)]), 1)[:, :, None]
    gap = np.abs(yes / size[0] - no / size[1]).max(axis=1)
    share = both / both.sum()
    chi2 = sum(((part - n * share) ** 2 / (n * share)).sum(axis=1) for part, n in zip((yes, no), size, strict=True))
    chi2 = np.where(many & (gap >= settings.minimum_difference), chi2, 0.0)
    best, df = int(np.argmax(chi2)), rows.shape[1] - 1
    p_value = f_sf(float(chi2[best]) / df / noise.factor, df, noise.freedom)
    return best if p_value * present.shape[1] < settings.level else None


def _joined(
    parts: list[NDArray[np.int64]], totals: Rows, noise: Dispersion, settings: MiningSettings
) -> list[NDArray[np.int64]]:
    """Join the most similar parts until all differ, and there are at most ``maximum_groups``."""
    known: dict[tuple[int, int], tuple[float, float]] = {}
    left, number = dict(enumerate(parts)), len(parts)
    while len(left) > 1:
        pairs = [(later, earlier) for later in left for earlier in left if earlier < later]
        for pair in pairs:  # a join makes one new part: all other comparisons are known
            if pair not in known:
                p_value, gap = differs(totals[left[pair[0]]], totals[left[pair[1]]], noise)
                known[pair] = gap, p_value
        level = settings.level / len(pairs)
        alike = [pair for pair in pairs if known[pair][0] < settings.minimum_difference or known[pair][1] >= level]
        if not alike and len(left) <= settings.maximum_groups:
            break
        one, other = min(alike or pairs, key=lambda pair: (*known[pair], pair))
        union = np.sort(np.concatenate((left.pop(one), left.pop(other))))
        left[number] = union
        number += 1
    return list(left.values())
