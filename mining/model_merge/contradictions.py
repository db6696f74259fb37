"""Where two models group a call path differently: whether their calls contradict each other, or one has too few.

That a model has two paths in one group means that its calls did not distinguish them, not that they are alike. So a
disagreement is a contradiction only if the calls of both models cannot have the same difference between the path and
those that it is grouped with in one of them. Otherwise a grouping exists that fits both, and nothing is decided.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from specmine.mining.settings import MiningSettings
from specmine.mining.statistics.distributions import chi2_sf

Path = TypeVar("Path", bound=Hashable)
Rows = Mapping[Path, Sequence[float]]
"""Calls per class of each path, in independent calls (``statistics/design_effect.py``)."""


def undecided(
    first: Mapping[Path, tuple[int, int]],
    second: Mapping[Path, tuple[int, int]],
    pairs: Mapping[int, int],
    evidence: tuple[Rows[Path], Rows[Path]],
    *,
    settings: MiningSettings,
) -> frozenset[Path]:
    """Return the shared paths that two models group differently without contradicting each other.

    Parameters
    ----------
    first, second : mapping from path to (group, calls)
    pairs : mapping from int to int
        Group of the second model that goes with each of the first.
    evidence : pair of mapping from path to calls per class
        Of both models, by the same classes. A path without, or with another number of classes, is contradicted.
    settings : MiningSettings
        ``level`` (divided by the number of questions asked), ``minimum_difference``.

    Returns
    -------
    frozenset

    Notes
    -----
    Such a path lies together with the others of a pair of groups in one model and apart from them in the other. The
    difference between its class shares and those of these others is taken in both models: they contradict each other if
    the two differences differ by ``minimum_difference`` in a class and do not differ only at random (a difference of
    differences by its standard error, Bonferroni over classes, paths and both groups).
    """
    partner = {b: a for a, b in pairs.items()}
    classes = {len(row) for rows in evidence for row in rows.values()}
    both = [path for path in first if path in second]
    disputed = [path for path in both if pairs.get(first[path][0]) != second[path][0]]
    if not disputed or len(classes) != 1:
        return frozenset()
    common: dict[tuple[int, int], NDArray[np.float64]] = defaultdict(lambda: np.zeros((2, max(classes))))
    for path in both:
        if pairs.get(first[path][0]) == second[path][0] and all(path in rows for rows in evidence):
            common[first[path][0], second[path][0]] += np.array([rows[path] for rows in evidence], dtype=np.float64)
    found = set()
    for path in disputed:
        if any(path not in rows for rows in evidence):
            continue
        own = np.array([rows[path] for rows in evidence], dtype=np.float64)
        (a, _), (b, _) = first[path], second[path]
        groups = {pair for pair in ((a, pairs.get(a)), (partner.get(b), b)) if None not in pair}
        level = settings.level / (2 * len(disputed))
        if not any(
            contradicted(own, common[pair], level=level, least=settings.minimum_difference)  # type: ignore[index]
            for pair in groups
        ):
            found.add(path)
    return frozenset(found)


def contradicted(own: NDArray[np.float64], others: NDArray[np.float64], *, level: float, least: float) -> bool:
    """Return whether two paths differ otherwise in one model than in the other.

    Parameters
    ----------
    own, others : ndarray of float64, shape (2, classes)
        Independent calls per class in both models.
    level : float
        False alarm rate.
    least : float
        Smaller differences of differences are none.
    """
    classes = own.shape[1]
    calls = np.stack((own, others)).sum(axis=2, keepdims=True)
    shares = (np.stack((own, others)) + 0.5) / (calls + 0.5 * classes)
    apart = shares[0] - shares[1]
    change = np.abs(apart[0] - apart[1])
    variance = (shares * (1 - shares) / np.maximum(calls, 1.0)).sum(axis=(0, 1))
    at = int(np.argmax(change**2 / variance))
    if change[at] < least:
        return False
    chance = chi2_sf(float(change[at] ** 2 / variance[at]), 1) * max(classes - 1, 1)
    return bool(chance < level)
