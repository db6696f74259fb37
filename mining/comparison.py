"""How far two models of one function agree: do they group the call paths alike (first paper, section 4.1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TypeVar

Path = TypeVar("Path", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Consistency:
    """Agreement of two groupings over the call paths they share."""

    shared_paths: int
    consistent_paths: int
    shared_calls: int
    """Calls of both models over the shared paths."""
    consistent_calls: int

    @property
    def paths(self) -> float:
        """Share of the shared paths grouped alike; 1 if there are none."""
        return self.consistent_paths / self.shared_paths if self.shared_paths else 1.0

    @property
    def calls(self) -> float:
        """Share of the calls over shared paths that are grouped alike; 1 if there are none."""
        return self.consistent_calls / self.shared_calls if self.shared_calls else 1.0


def consistency(first: Mapping[Path, tuple[int, int]], second: Mapping[Path, tuple[int, int]]) -> Consistency:
    """Compare two groupings of call paths.

    Parameters
    ----------
    first, second : mapping from path to (group, calls)
        Unassigned paths are left out.

    Returns
    -------
    Consistency
        Groups are paired one to one, the pair with the most calls in common first; a path is consistent if
        both models put it into groups of one pair.

    Notes
    -----
    The paper calls two models different where two paths are together in one and apart in the other. Counted
    over pairs of paths a single stray path would spoil all its pairs; paired groups count it once.
    """
    both = sorted(set(first) & set(second), key=repr)
    common: Counter[tuple[int, int]] = Counter()
    for path in both:
        common[first[path][0], second[path][0]] += first[path][1] + second[path][1]
    pairs: dict[int, int] = {}
    for (a, b), _ in sorted(common.items(), key=lambda item: (-item[1], item[0])):
        if a not in pairs and b not in pairs.values():
            pairs[a] = b
    consistent = [path for path in both if pairs.get(first[path][0]) == second[path][0]]
    return Consistency(
        shared_paths=len(both),
        consistent_paths=len(consistent),
        shared_calls=sum(common.values()),
        consistent_calls=sum(first[path][1] + second[path][1] for path in consistent),
    )
