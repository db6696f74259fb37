"""What in the calls of a violated function takes more than usual: a callee, or waiting at a place. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from specmine.mining.inside.composition import ClassInside, best_known, composition
from specmine.mining.inside.waiting_place import where_waited
from specmine.model.inside.waits import Waits
from specmine.model.observation import Observation
from specmine.model.violation import Growth, GrowthPart

from .usual import Usual

LEAST_PART = 0.5
"""What is named explains this share of what calls take more, at least."""
FEWEST_CALLS = 20
"""Calls during which waits were followed, or in which callees were timed, from which these are told."""
SEEN_PART = 0.3
"""Calls that were followed waited so much of what calls wait now, at least: else those that wait long were missed."""
MOST_CALLERS = 8
"""Callers of a place that are told."""
MOST_PARTS = 3
"""Of what calls wait for there, if it is not one thing."""
STEADY = 1.25
"""Numbers that changed by a smaller factor stay as they were told: who reads them gains nothing by others."""


def steady(before: Growth | None, now: Growth | None) -> Growth | None:
    """Return what grew as it was told before, where only its numbers changed, and little."""
    if before is None or now is None:
        return now or before
    same = all(getattr(before, name) == getattr(now, name) for name in ("what", "call", "function", "module"))
    near = all(
        1 / STEADY < new / old < STEADY
        for old, new in ((before.more_ns, now.more_ns), (before.of_ns, now.of_ns))
        if old > 0
    )
    return before if same and near else now


def more_ns(usual: Usual, now: Usual) -> float:
    """Return what a call takes more than usual, ns; negative: less."""
    return now.mean_ns - usual.mean_ns if usual.calls and now.calls else 0.0


def wait_growth(usual: Usual, now: Usual, followed: Waits | None) -> Growth | None:
    """Return the wait that has most of what calls take more; None if none has half of it.

    Parameters
    ----------
    usual, now : Usual
        For how long calls are blocked in all.
    followed : Waits, optional
        Where they are blocked now.

    Notes
    -----
    Where calls are blocked as a rule is not known, since it is looked for only once a violation is open. So a place
    has the share of the growth that it has of the waiting now. It is named only if it would also have half of the
    growth if all the usual waiting were there.
    """
    before, after, more = usual.parts_ns, now.parts_ns, more_ns(usual, now)
    if followed is None or before is None or after is None or more <= 0:
        return None
    known = where_waited(followed)
    if known is None or followed.calls.total < FEWEST_CALLS or known.mean_ns < SEEN_PART * after[2]:
        return None
    grown = known.share * (after[2] - before[2])
    least = known.share * after[2] - before[2]
    if min(grown, least) < LEAST_PART * more:
        return None
    return Growth(
        what=known.parts[0].kind.value,
        call=known.parts[0].call,
        function=known.place.name if known.place else "",
        module=known.place.module if known.place else "",
        more_ns=float(f"{min(grown, more):.3g}"),
        of_ns=float(f"{more:.3g}"),
        callers=tuple(frame.name for frame in known.callers[:MOST_CALLERS]),
        waker=known.waker.name if known.waker else "",
        parts=tuple(
            GrowthPart(
                what=part.kind.value,
                call=part.call,
                function=part.place.name if part.place else "",
                share=float(f"{part.share:.2g}"),
            )
            for part in known.parts[:MOST_PARTS]
            if len(known.parts) > 1
        ),
    )


def callee_growth(before: Iterable[Observation], after: Iterable[Observation]) -> Growth | None:
    """Return the callee that has most of what calls take more; None if none has half of it, or it is not known.

    Parameters
    ----------
    before, after : iterable of Observation
        Windows of the usual time, and since the change. Only calls during which the same callees were timed count.
    """
    now = best_known(part for one in after for part in one.inside)
    if now is None:
        return None
    usual = best_known(part for one in before for part in one.inside if part.timed == now.timed)
    if usual is None or usual.timed != now.timed:
        return None
    then, since = (composition(each, ()).classes[0] for each in (usual, now))
    more = since.mean_ns - then.mean_ns
    if min(then.calls, since.calls) < FEWEST_CALLS or more <= 0:
        return None
    grown = {frame: ns - _means(then).get(frame, 0.0) for frame, ns in _means(since).items()}
    if not grown:
        return None
    frame = max(grown, key=lambda each: (grown[each], each))
    if not frame[0] or grown[frame] < LEAST_PART * more:
        return None
    return Growth(
        what="callee",
        function=frame[0],
        module=frame[1],
        more_ns=float(f"{min(grown[frame], more):.3g}"),
        of_ns=float(f"{more:.3g}"),
    )


def _means(each: ClassInside) -> dict[tuple[str, str], float]:
    """Return what each callee takes of a call, ns."""
    return {(part.callee.name, part.callee.module): part.mean_ns for part in each.callees}
