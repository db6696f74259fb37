"""Groups of call paths with the same distribution over the classes (first paper, section 3.4).

The calls of each path give its class shares. k-means groups the paths by their shares, weighted by calls. The paths
are grouped twice, from the even windows and from the odd ones. k rises while both groupings agree better (adjusted
mutual information), since a group that the data do not repeat is none. Groups that the evidence does not distinguish
are merged.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specmine.mining.settings import MiningSettings
from specmine.mining.statistics.class_shares import Dispersion, homogeneity
from specmine.mining.statistics.design_effect import DesignEffect, design_effect
from specmine.mining.statistics.distributions import f_sf
from specmine.mining.statistics.mutual_information import adjusted_mutual_information

from .k_means import k_means

Rows = NDArray[np.float64]
"""Class counts per path in independent calls (``design_effect.py``), shape (paths, classes)."""

_TOLERANCE = 0.05  # fall of the agreement that ends the rise of k
_WEIGHT = 2_000  # the agreement is weighted by calls: each path counts as often as its share of this number


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """Which paths behave alike."""

    labels: tuple[int | None, ...]
    """Group of each path, from 0, most calls first; None: too few calls to decide."""
    groups: int
    design_effect: DesignEffect
    """How many calls of each path are equivalent to one independent call."""
    agreement: float
    """Adjusted mutual information of the groupings of the two halves; 1 for a single group."""


def group_paths(windows: NDArray[np.int64], *, settings: MiningSettings) -> Grouping:
    """Group call paths by their class shares.

    Parameters
    ----------
    windows : ndarray of int64, shape (windows, paths, classes)
        Calls per window, in the order of time, path and class.
    settings : MiningSettings
        ``path_calls``, ``maximum_groups``, ``minimum_difference``, ``level``.

    Returns
    -------
    Grouping

    Notes
    -----
    k-means runs on the square roots of the shares. There the sampling error of n calls is 1 / (4 n) for every share.

    k rises as long as the agreement of the halves stays within ``_TOLERANCE`` of its best. Equal agreement does not
    stop it: two well separated groups agree perfectly even where there are three. Then k rises until every group is
    homogeneous. Rare paths have too few calls in each half, but may differ plainly in the sum.

    Groups that k splits too far are merged again. Two groups are one if their paths are homogeneous: Pearson's
    chi-squared over the independent calls of all their paths, at ``level`` divided by the number of groups. They are
    also one if no class share differs by ``minimum_difference``. The test uses the paths, not the sums of the groups:
    groups chosen for their difference would always show one.

    In the end each path joins the group of its greatest likelihood, if that exceeds the next by 100 times the number
    of paths. So at most one path in a hundred groupings is misplaced at random.
    """
    effect = design_effect(windows)
    noise, counts = effect.noise, windows.sum(axis=0)
    totals: Rows = effect.independent_calls(counts)
    calls = counts.sum(axis=1)
    heavy = np.flatnonzero(calls >= settings.path_calls)
    single = Grouping(labels=(0,) * len(calls), groups=1, design_effect=effect, agreement=1.0)
    if len(heavy) < 2 or totals.shape[1] < 2 or _homogeneous(totals[heavy], noise, settings.level):
        return single
    most = min(settings.maximum_groups, len(heavy))
    least, agreement = _how_many(windows[:, heavy], np.array(effect.effects)[heavy], most)
    labels = _grouped(totals[heavy], range(least, most + 1), noise, settings, seed_of(counts[heavy]))
    groups = int(labels.max()) + 1
    if groups == 1:
        return single
    sums = np.array([totals[heavy[labels == group]].sum(axis=0) for group in range(groups)])
    assigned = _assign(totals, sums)
    for group in range(groups):  # no group may be empty: its path with most calls stays in it
        members = heavy[labels == group]
        assigned[members[np.argmax(calls[members])]] = group
    return Grouping(labels=tuple(assigned), groups=groups, design_effect=effect, agreement=agreement)


def path_dispersion(windows: NDArray[np.int64]) -> Dispersion:
    """Return the dispersion of class counts between windows of the same path.

    It is the median over the paths of Pearson's chi-squared by its degrees of freedom, weighted by calls. Windows with
    fewer than 5 calls of a path are left out, and so are paths with fewer than 3 such windows. Checks of whole
    behaviours need one number for all paths.
    """
    factors, weights, freedom = [], [], 0.0
    for path in range(windows.shape[1]):
        rows = windows[:, path].astype(np.float64)
        rows = rows[rows.sum(axis=1) >= 5]
        chi2, df = _chi2(rows)
        if len(rows) >= 3 and df:
            factors.append(chi2 / df)
            weights.append(int(rows.sum()))
            freedom += df
    if not factors:
        return Dispersion()
    order = np.argsort(factors, kind="stable")
    reached = np.cumsum(np.array(weights)[order])
    middle = float(np.array(factors)[order][np.searchsorted(reached, 0.5 * reached[-1])])
    return Dispersion(factor=max(1.0, middle), freedom=freedom) if middle > 1 else Dispersion()


def differs(rows: Rows, others: Rows, noise: Dispersion) -> tuple[float, float]:
    """Return the p-value of equal class shares in two sets of paths, and their largest difference."""
    first, second = rows.sum(axis=0), others.sum(axis=0)
    chi2, df = homogeneity(first, second)
    gap = float(np.abs(first / max(first.sum(), 1) - second / max(second.sum(), 1)).max())
    return (f_sf(chi2 / df / noise.factor, df, noise.freedom) if df else 1.0), gap


def seed_of(array: NDArray[np.int64]) -> int:
    """Return a seed that depends only on the values."""
    digest = hashlib.sha256(np.ascontiguousarray(array, dtype="<i8").tobytes()).digest()
    return int.from_bytes(digest[:4], "little")


def _chi2(rows: Rows) -> tuple[float, int]:
    """Return Pearson's chi-squared of a table and its degrees of freedom, empty rows and columns left out."""
    table = rows[rows.sum(axis=1) > 0].astype(np.float64)
    table = table[:, table.sum(axis=0) > 0]
    if min(table.shape) < 2:
        return 0.0, 0
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    return float(((table - expected) ** 2 / expected).sum()), (table.shape[0] - 1) * (table.shape[1] - 1)


def _homogeneous(rows: Rows, noise: Dispersion, level: float) -> bool:
    least = rows.sum(axis=0) / max(rows.sum(), 1)
    few = (
        rows.sum(axis=1) * least[least > 0].min(initial=1.0) < 1
    )  # chi-squared needs at least one expected call per class
    if few.any():
        rows = np.vstack((rows[~few], rows[few].sum(axis=0)))
    chi2, df = _chi2(rows)
    return df == 0 or f_sf(chi2 / df / noise.factor, df, noise.freedom) >= level


def _shares(rows: Rows) -> NDArray[np.float64]:
    return np.asarray(rows / np.maximum(rows.sum(axis=1, keepdims=True), 1), dtype=np.float64)


def _kmeans(rows: Rows, k: int, seed: int) -> NDArray[np.int64]:
    points = np.sqrt(_shares(rows))
    if len(np.unique(points, axis=0)) <= k:
        return np.unique(points, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return k_means(points, rows.sum(axis=1), k, seed)


def _how_many(windows: NDArray[np.int64], effect: NDArray[np.float64], most: int) -> tuple[int, float]:
    """Return the greatest k up to which the groupings of the two halves agree, and how well they do."""
    halves = windows[0::2].sum(axis=0), windows[1::2].sum(axis=0)
    in_both = (halves[0].sum(axis=1) > 0) & (halves[1].sum(axis=1) > 0)
    chosen, best = (1, 0.0)
    for k in range(2, min(most, int(in_both.sum())) + 1):
        first, second = (_kmeans(half[in_both] / effect[in_both, None], k, seed_of(half[in_both])) for half in halves)
        weight = np.ceil(_WEIGHT * (halves[0] + halves[1])[in_both].sum(axis=1) / windows.sum()).astype(np.int64)
        agreement = adjusted_mutual_information(first, second, weight)
        if agreement < best - _TOLERANCE:
            break
        chosen, best = k, max(best, agreement)
    return chosen, best


def _grouped(rows: Rows, ks: range, noise: Dispersion, settings: MiningSettings, seed: int) -> NDArray[np.int64]:
    """Return the groups of the first k for which each is homogeneous; the largest number of groups if none is."""
    best = np.zeros(len(rows), dtype=np.int64)
    for k in ks:
        labels = _merge(rows, _kmeans(rows, k, seed), noise, settings)
        groups = int(labels.max()) + 1
        if k == ks[0] or groups > best.max() + 1:
            best = labels
        if all(_homogeneous(rows[labels == group], noise, settings.level / groups) for group in range(groups)):
            break
    return best


def _merge(rows: Rows, labels: NDArray[np.int64], noise: Dispersion, settings: MiningSettings) -> NDArray[np.int64]:
    """Merge the closest groups until all differ, and number them by their calls, most first."""
    groups = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    while len(groups) > 1:
        shares = _shares(np.array([rows[g].sum(axis=0) for g in groups]))
        candidates = sorted(
            (float(np.abs(shares[i] - shares[j]).max()), i, j)
            for i in range(len(groups))
            for j in range(i + 1, len(groups))
        )
        level = settings.level / len(groups)
        for gap, i, j in candidates:
            union = np.concatenate((groups[i], groups[j]))
            if gap < settings.minimum_difference or _homogeneous(rows[union], noise, level):
                groups = [g for n, g in enumerate(groups) if n not in (i, j)] + [np.sort(union)]
                break
        else:
            break
    groups.sort(key=lambda g: (-float(rows[g].sum()), int(g[0])))
    result = np.empty(len(rows), dtype=np.int64)
    for number, group in enumerate(groups):
        result[group] = number
    return result


def _assign(totals: Rows, sums: Rows) -> list[int | None]:
    """Return the most likely group of each path; None if the next one is nearly as likely."""
    logs = np.log((sums + 0.5) / (sums + 0.5).sum(axis=1, keepdims=True))
    likelihood = totals @ logs.T
    ranked = np.sort(likelihood, axis=1)
    clear = ranked[:, -1] - ranked[:, -2] >= math.log(100 * len(totals))
    return [int(group) if sure else None for group, sure in zip(likelihood.argmax(axis=1), clear, strict=True)]
