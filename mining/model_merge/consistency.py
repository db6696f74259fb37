"""How far two models of one function agree, and both as one: do they group the call paths alike.

First paper (Brünink and Rosenblum 2016), sections 3.3 and 4.1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from specmine.mining.settings import MiningSettings
from specmine.mining.statistics.class_shares import Dispersion, agreement

from .contradictions import Rows, undecided

Path = TypeVar("Path", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Consistency:
    """Agreement of two groupings over the call paths they share, without those of which nothing is decided."""

    shared_paths: int
    consistent_paths: int
    shared_calls: int
    """Calls of both models over the shared paths."""
    consistent_calls: int
    undecided_paths: int = 0
    """Grouped differently, but the calls of both models can have the same behaviours (contradictions.py)."""
    undecided_calls: int = 0
    pairs: float = 1.0
    """Share of all pairs of calls over shared paths that are together in both models, or apart in both."""
    shares: float | None = None
    """What ``shares_alike`` says of them; None where it was not asked."""

    @property
    def paths(self) -> float:
        """Share of the shared and decided paths grouped alike; 1 if there are none."""
        return self.consistent_paths / decided if (decided := self.shared_paths - self.undecided_paths) else 1.0

    @property
    def calls(self) -> float:
        """Share of the calls over shared and decided paths that are grouped alike; 1 if there are none."""
        return self.consistent_calls / decided if (decided := self.shared_calls - self.undecided_calls) else 1.0

    @property
    def undecided(self) -> float:
        """Share of the calls over shared paths of which nothing is decided; 0 if there are none."""
        return self.undecided_calls / self.shared_calls if self.shared_calls else 0.0


def shares_alike(
    first: Mapping[Path, Sequence[float]], second: Mapping[Path, Sequence[float]], *, settings: MiningSettings
) -> float | None:
    """Compare the class shares of call paths, whatever groups were made of them.

    Parameters
    ----------
    first, second : mapping from path to calls per class
        By the same classes.
    settings : MiningSettings
        ``level``, ``minimum_difference``.

    Returns
    -------
    float or None
        Share of the calls over shared paths whose class shares all differ by less than ``minimum_difference``, or do
        not differ at ``level`` divided by the number of paths; None if no path is shared by the same number of classes.

    Notes
    -----
    Shares that lie close together are cut into groups at random; here nothing is cut. Other loads have other shares
    though their groups may be the same.
    """
    both = [path for path, row in first.items() if row and len(row) == len(second.get(path, ()))]
    alike = total = 0.0
    for path in both:
        rows = np.array([first[path], second[path]], dtype=np.float64)
        calls = rows.sum(axis=1)
        gap = float(np.abs(np.diff(rows / np.maximum(calls, 1)[:, None], axis=0)).max())
        total += float(calls.sum())
        if gap < settings.minimum_difference or agreement(rows[0], rows[1], Dispersion()) >= settings.level / len(both):
            alike += float(calls.sum())
    return alike / total if total else None


def _paired(first: Mapping[Path, tuple[int, int]], second: Mapping[Path, tuple[int, int]]) -> dict[int, int]:
    """Pair the groups of two models one to one, the pair with the most calls in common first."""
    common: Counter[tuple[int, int]] = Counter()
    for path in set(first) & set(second):
        common[first[path][0], second[path][0]] += first[path][1] + second[path][1]
    pairs: dict[int, int] = {}
    for (a, b), _ in sorted(common.items(), key=lambda item: (-item[1], item[0])):
        if a not in pairs and b not in pairs.values():
            pairs[a] = b
    return pairs


def merge(
    first: Mapping[Path, tuple[int, int]],
    second: Mapping[Path, tuple[int, int]],
    evidence: tuple[Rows[Path], Rows[Path]] | None = None,
    *,
    settings: MiningSettings | None = None,
) -> tuple[dict[Path, tuple[int, int]], Consistency]:
    """Return one model out of two, and how far they agreed.

    Parameters
    ----------
    first, second : mapping from path to (group, calls)
    evidence : pair of mapping from path to independent calls per class, optional
        Of both models: distinguishes disagreement from what is undecided. Without, all disagree.
    settings : MiningSettings, optional
        ``level``, ``minimum_difference``.

    Returns
    -------
    dict, Consistency
        All paths of both with their calls together. Where the models agree, and for paths that only one has,
        groups keep the first's numbers; groups of the second without a partner get new ones. Of two opinions
        about a path the one with more calls stands.

    Notes
    -----
    Groups are paired one to one, the pair with the most calls in common first. A path is consistent if both models
    put it into groups of one pair. The paper calls two models different where two paths are together in one and apart
    in the other, which ``pairs`` counts over the calls (Rand 1971). Paired groups ask more: a group that one model
    splits agrees only for its larger part.
    """
    pairs = _paired(first, second)
    number = {b: a for a, b in pairs.items()}
    free = max((group for group, _ in first.values()), default=-1) + 1
    for group in sorted({group for group, _ in second.values()} - set(number)):
        number[group] = free
        free += 1
    merged = dict(first)
    for path, (group, calls) in second.items():
        theirs, before = first.get(path, (number[group], 0))
        merged[path] = (number[group] if calls > before else theirs, calls + before)
    settings = settings or MiningSettings()
    unknown = undecided(first, second, pairs, evidence, settings=settings) if evidence else frozenset()
    return merged, _consistency(first, second, pairs, unknown)


def _consistency(
    first: Mapping[Path, tuple[int, int]],
    second: Mapping[Path, tuple[int, int]],
    pairs: Mapping[int, int],
    unknown: Collection[Path] = (),
) -> Consistency:
    both = set(first) & set(second)
    consistent = [path for path in both if pairs.get(first[path][0]) == second[path][0]]
    return Consistency(
        shared_paths=len(both),
        consistent_paths=len(consistent),
        shared_calls=sum(first[path][1] + second[path][1] for path in both),
        consistent_calls=sum(first[path][1] + second[path][1] for path in consistent),
        undecided_paths=len(unknown),
        undecided_calls=sum(first[path][1] + second[path][1] for path in unknown),
        pairs=_pairs(first, second),
    )


def _pairs(first: Mapping[Path, tuple[int, int]], second: Mapping[Path, tuple[int, int]]) -> float:
    cells: Counter[tuple[int, int]] = Counter()
    for path in set(first) & set(second):
        cells[first[path][0], second[path][0]] += first[path][1] + second[path][1]
    rows: Counter[int] = Counter()
    columns: Counter[int] = Counter()
    for (a, b), calls in cells.items():
        rows[a] += calls
        columns[b] += calls
    both, one, other = (sum(calls**2 for calls in table.values()) for table in (cells, rows, columns))
    total = cells.total() ** 2
    return (total - one - other + 2 * both) / total if total else 1.0
