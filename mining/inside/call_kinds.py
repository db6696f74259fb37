"""Kinds of calls: the calls of a function that reached the same timed callees. Pure.

Expressions speak of them as they speak of call paths: ``calls fdatasync`` holds for the calls that reached it, directly
or through functions that are not timed. What is not known of a call is never taken for *not reached*: a kind belongs to
callees that were timed during all calls counted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from specmine.model.call_path import Frame
from specmine.model.histogram import Histogram
from specmine.model.inside.parts import OTHERS, Inside
from specmine.model.observation import Observation

THIS_CALL = Frame("", "")
"""The caller in the edges of a kind: a call of the function itself."""
LEAST_WINDOWS, LEAST_CALLS = 5, 1000
"""Callees that were timed in fewer windows and calls explain nothing."""


@dataclass(frozen=True, slots=True, order=True)
class CallKind:
    """Calls that reached these callees, and no other of those that are known."""

    callees: tuple[Frame, ...]
    complete: bool = True
    """False: they reached others too, which are not told apart."""

    @property
    def frames(self) -> tuple[Frame, ...]:
        """The frames that it names."""
        return self.callees

    def edges(self) -> frozenset[tuple[Frame, Frame]]:
        """Return the pairs of this call and a callee."""
        return frozenset((THIS_CALL, callee) for callee in self.callees)

    def distances(self) -> dict[tuple[Frame, Frame], int]:
        """Return how far each edge is from the function: all are next to it."""
        return dict.fromkeys(self.edges(), 0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KindWindow:
    """The calls of one observation of which the same callees are known."""

    observation: Observation
    calls: Mapping[CallKind, Histogram]
    """Only kinds with calls."""


def kind_windows(observations: Iterable[Observation], timed: Collection[Frame]) -> tuple[KindWindow, ...]:
    """Return the calls during which all these callees were timed, by the ones that they reached; windows with calls."""
    found = []
    for one in observations:
        calls: dict[CallKind, list[Histogram]] = {}
        for part in one.inside:
            if part.timed and set(timed) <= set(part.timed):
                for kind, histogram in kinds_of(part, timed):
                    calls.setdefault(kind, []).append(histogram)
        sums = {kind: Histogram.sum(each) for kind, each in sorted(calls.items())}
        if sums:
            found.append(KindWindow(observation=one, calls=sums))
    return tuple(found)


def names_of_callees(callees: Iterable[Frame]) -> frozenset[str]:
    """Return the names of callees that expressions may use: with their module and without."""
    return frozenset(name for frame in callees for name in (frame.name, f"{frame.name} ({frame.module})"))


def known_callees(observations: Sequence[Observation]) -> tuple[Frame, ...]:
    """Return the largest set of callees of which enough windows and calls tell whether they were reached."""
    sets = {part.timed for one in observations for part in one.inside if part.timed}
    for timed in sorted(sets, key=lambda each: (-len(each), each)):
        calls = [sum(part.calls.total for part in one.inside if set(timed) <= set(part.timed)) for one in observations]
        if sum(map(bool, calls)) >= LEAST_WINDOWS and sum(calls) >= LEAST_CALLS:
            return timed
    return ()


def kinds_of(part: Inside, timed: Collection[Frame]) -> Iterable[tuple[CallKind, Histogram]]:
    """Yield the calls of a part by the callees, of these, that they reached; a kind may come several times."""
    reached = part.calls
    for each in part.sets:
        frames = {one.callee for one in each.callees}
        kind = CallKind(tuple(sorted(frames & set(timed))), complete=OTHERS not in frames)
        reached = reached.without(each.calls)
        if each.calls.total:
            yield kind, each.calls
    if reached.total:
        yield CallKind(()), reached
