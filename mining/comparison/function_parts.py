"""The parts of a function that are compared: all its calls, its classes of durations, its behaviours.

A median of all calls does not move where three calls in ten become half as slow again. So each class that the base
shows, and each behaviour, is compared with itself, and all calls by a second summary.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from specmine.mining.borders.detection import borders
from specmine.mining.regression.comparison import LifetimeSample, Rule
from specmine.mining.regression.sample import Sample, histogram_of, joined, part
from specmine.mining.settings import MiningSettings
from specmine.model.buckets import BUCKET_EDGES

SMALLEST_SHARE = 0.01
"""A class or behaviour with a smaller share of the calls on both sides is not compared on its own: the mean has it."""
FEWEST_CALLS = 5
"""A lifetime with fewer calls of a class or behaviour says nothing about it."""
_SECOND = {"median": ("mean",), "mean": ("median",)}
"""The other summaries by which all calls are compared; a tail or a trimmed mean that was asked for stands alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Some calls of a function, and the summary by which they are compared."""

    summary: str
    base: Sequence[LifetimeSample]
    new: Sequence[LifetimeSample]
    shares: tuple[float, float] = (1.0, 1.0)
    """Of the function's calls on each side."""
    bounds_ns: tuple[float, float] | None = None
    """Of a class: longer than the first, at most the second; the second may be infinite."""
    expression: str | None = None
    """Of a behaviour."""

    @property
    def kind(self) -> str:
        """One of all, class, behaviour."""
        return "class" if self.bounds_ns is not None else "all" if self.expression is None else "behaviour"


Split = Mapping[str, tuple[Sequence[LifetimeSample], Sequence[LifetimeSample]]]
"""By expression: the lifetimes of both sides with the calls of that behaviour only."""


def parts_of(
    base: Sequence[LifetimeSample], new: Sequence[LifetimeSample], rule: Rule, behaviours: Split | None = None
) -> list[Part]:
    """Return the parts of a function, all calls by the rule's own summary first."""
    found = [Part(summary=each, base=base, new=new) for each in (rule.summary, *_SECOND.get(rule.summary, ()))]
    calls = _calls(base), _calls(new)
    if min(calls) == 0:
        return found
    bounds = class_bounds([each.sample for each in base])
    parts = [
        Part(summary="median", base=_within(base, *each), new=_within(new, *each), bounds_ns=each)
        for each in bounds
        if len(bounds) > 1
    ]
    if behaviours is not None and len(behaviours) > 1:
        paths = [sum(_calls(sides[at]) for sides in behaviours.values()) for at in (0, 1)]
        calls_of_paths = max(paths[0], 1), max(paths[1], 1)
        parts += [
            _shared(Part(summary="median", base=_enough(sides[0]), new=_enough(sides[1]), expression=expression),
                    sides, calls_of_paths)
            for expression, sides in behaviours.items()
        ]  # fmt: skip
    parts = [each if each.expression else _shared(each, (each.base, each.new), calls) for each in parts]
    return found + [each for each in parts if max(each.shares) >= SMALLEST_SHARE]


def class_bounds(samples: Sequence[Sample]) -> list[tuple[float, float]]:
    """Return the classes of the durations of one side, as bounds in ns: lowest first, up to infinity.

    Notes
    -----
    Lifetimes that are shifted against each other make valleys that no lifetime has. So a border counts only if at
    least half of the lifetimes have calls on either side of it.
    """
    settings = MiningSettings()
    found = borders(histogram_of(joined(samples)), settings=settings)
    edges = [float(BUCKET_EDGES[each.edge]) for each in found if each.evidence.significance >= settings.stable_z]
    edges = [edge for edge in edges if 2 * sum(_on_either_side(each, edge) for each in samples) >= len(samples)]
    return list(zip([-1.0, *edges], [*edges, math.inf], strict=True))


def _on_either_side(sample: Sample, edge_ns: float) -> bool:
    below = part(sample, -1.0, edge_ns).calls
    return min(below, sample.calls - below) >= FEWEST_CALLS


def _within(side: Sequence[LifetimeSample], above_ns: float, up_to_ns: float) -> list[LifetimeSample]:
    return _enough([replace(each, sample=part(each.sample, above_ns, up_to_ns)) for each in side])


def _enough(side: Sequence[LifetimeSample]) -> list[LifetimeSample]:
    return [each for each in side if each.sample.calls >= FEWEST_CALLS]


def _calls(side: Sequence[LifetimeSample]) -> int:
    return sum(each.sample.calls for each in side)


def _shared(one: Part, sides: Sequence[Sequence[LifetimeSample]], calls: tuple[int, int]) -> Part:
    return replace(one, shares=(_calls(sides[0]) / calls[0], _calls(sides[1]) / calls[1]))
