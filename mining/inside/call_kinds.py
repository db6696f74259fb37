"""Kinds of calls: the calls of a function that reached the same timed callees, and were blocked alike. Pure.

Expressions speak of them as they speak of call paths: ``calls fdatasync`` holds for the calls that reached it, directly
or through functions that are not timed; ``blocked under fdatasync`` for those that were blocked in it for much of their
time. What is not known of a call is never taken for *not reached*: a kind belongs to callees that were timed during all
calls counted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from specmine.model.call_path import Frame
from specmine.model.histogram import Histogram
from specmine.model.inside.parts import ANYWHERE, OTHERS, CalleeSet, Inside
from specmine.model.observation import Observation

from .callers import BLOCKED_CALL, THIS_CALL

LEAST_WINDOWS, LEAST_CALLS = 5, 1000
"""What is known of fewer windows and calls explains nothing."""


@dataclass(frozen=True, slots=True, order=True)
class CallKind:
    """Calls that reached these callees, and no other of those that are known."""

    callees: tuple[Frame, ...]
    complete: bool = True
    """False: they reached others too, which are not told apart."""
    blocked: tuple[Frame, ...] = ()
    """Where they were blocked, if that is asked for: ``ANYWHERE``, and callees."""

    @property
    def frames(self) -> tuple[Frame, ...]:
        """The frames that it names."""
        return self.callees

    def edges(self) -> frozenset[tuple[Frame, Frame]]:
        """Return the pairs of this call and a callee, and of this call and where it was blocked."""
        return frozenset(self.distances())

    def distances(self) -> dict[tuple[Frame, Frame], int]:
        """Return how far each edge is from the function.

        All are next to it. That a callee was reached says less than that it blocked, and is preferred.
        """
        places = {(BLOCKED_CALL, place): 2 if place == ANYWHERE else 1 for place in self.blocked}
        return {(THIS_CALL, callee): 0 for callee in self.callees} | places


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KindWindow:
    """The calls of one observation of which the same is known."""

    observation: Observation
    calls: Mapping[CallKind, Histogram]
    """Only kinds with calls."""
    blocked_ns: Mapping[CallKind, int]
    """For how long the calls of a kind were blocked, if they count as blocked."""


def kind_windows(
    observations: Iterable[Observation], timed: Collection[Frame], *, blocked: bool = False
) -> tuple[KindWindow, ...]:
    """Return the calls during which all these callees were timed, by the ones that they reached; windows with calls.

    Parameters
    ----------
    observations : iterable of Observation
    timed : collection of Frame
        Callees.
    blocked : bool
        Kinds differ by where their calls were blocked, too.
    """
    found = []
    for one in observations:
        calls: dict[CallKind, list[Histogram]] = {}
        stood: dict[CallKind, int] = {}
        for part in one.told_inside:
            if (part.split if blocked else part.timed) and set(timed) <= set(part.timed):
                for kind, histogram, blocked_ns in _kinds(part, timed, blocked=blocked):
                    calls.setdefault(kind, []).append(histogram)
                    stood[kind] = stood.get(kind, 0) + blocked_ns
        sums = {kind: Histogram.sum(each) for kind, each in sorted(calls.items())}
        if sums:
            found.append(KindWindow(observation=one, calls=sums, blocked_ns=stood))
    return tuple(found)


def names_of_callees(callees: Iterable[Frame]) -> frozenset[str]:
    """Return the names of callees that expressions may use: with their module and without."""
    return frozenset(
        name for frame in callees for name in (frame.name, f"{frame.name} ({frame.module})" if frame.module else "")
    )


def named_edges_of(kind: CallKind) -> frozenset[tuple[str, str]]:
    """Return the edges of a kind by all names that expressions may use."""
    return frozenset((caller.name, name) for caller, callee in kind.edges() for name in names_of_callees((callee,)))


def known_callees(observations: Sequence[Observation]) -> tuple[Frame, ...]:
    """Return the largest set of callees of which enough windows and calls tell whether they were reached."""
    sets = {part.timed for one in observations for part in one.inside if part.timed}
    return next((each for each in sorted(sets, key=lambda one: (-len(one), one)) if is_known(observations, each)), ())


def is_known(observations: Iterable[Observation], timed: Collection[Frame]) -> bool:
    """Tell whether enough windows and calls tell whether these callees were reached: all were timed meanwhile."""
    wanted, windows, calls = frozenset(timed), 0, 0
    for one in observations:
        told = sum(part.calls.total for part in one.inside if wanted.issubset(part.timed))
        windows, calls = windows + bool(told), calls + told
        if windows >= LEAST_WINDOWS and calls >= LEAST_CALLS:
            return True
    return False


def knows_blocked(observations: Sequence[Observation]) -> bool:
    """Tell whether enough windows and calls tell which calls were blocked."""
    calls = [sum(part.calls.total for part in one.told_inside if part.split) for one in observations]
    return sum(map(bool, calls)) >= LEAST_WINDOWS and sum(calls) >= LEAST_CALLS


def kinds_of(part: Inside, timed: Collection[Frame], *, blocked: bool = False) -> Iterable[tuple[CallKind, Histogram]]:
    """Yield the calls of a part by the callees, of these, that they reached; a kind may come several times."""
    return ((kind, histogram) for kind, histogram, _ in _kinds(part, timed, blocked=blocked))


def _kinds(part: Inside, timed: Collection[Frame], *, blocked: bool) -> Iterable[tuple[CallKind, Histogram, int]]:
    reached = part.calls
    for each in part.sets:
        reached = reached.without(each.calls)
        if each.calls.total:
            yield _kind(each, timed, blocked=blocked), each.calls, each.blocked_ns.total
    if reached.total:
        yield CallKind(()), reached, 0


def _kind(each: CalleeSet, timed: Collection[Frame], *, blocked: bool) -> CallKind:
    frames = {one.callee for one in each.callees}
    places = set(each.blocked) & {ANYWHERE, *timed} if blocked else set()
    return CallKind(
        tuple(sorted(frames & set(timed))),
        complete=not timed or OTHERS not in frames,
        blocked=tuple(sorted(places)),
    )
