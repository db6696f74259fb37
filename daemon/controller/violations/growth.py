"""What in the calls of a violated function takes more than usual: a callee, or waiting at a place. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from specmine.mining.inside.composition import ClassInside, best_known, composition
from specmine.mining.inside.waits import WaitPart, waits_of
from specmine.model.call_path import Frame
from specmine.model.inside.waits import Waits
from specmine.model.observation import Observation
from specmine.model.violation import Growth

from .usual import Usual

LEAST_PART = 0.5
"""What is named explains this share of what calls take more, at least."""
FEWEST_CALLS = 20
"""Calls during which waits were followed, or in which callees were timed, from which these are told."""
SEEN_PART = 0.3
"""Calls that were followed waited so much of what calls wait now, at least: else those that wait long were missed."""
MOST_CALLERS = 8
"""Callers of a place that are told."""
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
    whole = waits_of(followed)[0]
    if whole.calls < FEWEST_CALLS or not whole.parts or whole.mean_ns < SEEN_PART * after[2]:
        return None
    shares: dict[tuple[str, str, Frame | None], float] = {}
    for each in whole.parts:  # whichever function around it was timed meanwhile
        key = each.kind.value, each.call, each.place
        shares[key] = shares.get(key, 0.0) + each.share
    key = max(shares, key=lambda each: shares[each])
    part = next(each for each in whole.parts if (each.kind.value, each.call, each.place) == key)
    grown = shares[key] * (after[2] - before[2])
    least = shares[key] * after[2] - before[2]
    if min(grown, least) < LEAST_PART * more:
        return None
    return Growth(
        what=part.kind.value,
        call=part.call,
        function=part.place.name if part.place else "",
        module=part.place.module if part.place else "",
        more_ns=float(f"{min(grown, more):.3g}"),
        of_ns=float(f"{more:.3g}"),
        callers=_callers(part),
        waker=_waker(part),
    )


def _callers(part: WaitPart) -> tuple[str, ...]:
    """Return the functions between the place of a wait and the violated function, innermost first."""
    if part.place not in part.frames:
        return ()
    return tuple(frame.name for frame in part.frames[part.frames.index(part.place) + 1 :][:MOST_CALLERS])


def _waker(part: WaitPart) -> str:
    """Return the function that ended most of some waits; '': another program, or none that ended so much."""
    if not part.wakers or part.wakers[0].share < LEAST_PART or part.wakers[0].place is None:
        return ""
    return part.wakers[0].place.name


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
