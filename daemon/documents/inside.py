"""What happened inside the calls of each class, and what their spread consists of, as JSON: pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from specmine.daemon.controller.history import History
from specmine.mining.inside.composition import ClassInside, best_known, composition
from specmine.mining.inside.spread import Spread, SpreadPart, spread
from specmine.mining.inside.waits import ClassWaits, WaitPart, waits_of
from specmine.model.call_path import Frame
from specmine.model.inside.parts import OTHERS, Inside
from specmine.model.inside.waits import Waits

OTHERS_SHOWN = {"callee": "(others)", "module": ""}
"""Stands for callees that are not told apart; no function has this name."""


def known_inside(history: History) -> Inside | None:
    """Return what is known of the retained observations of a function."""
    return best_known(part for each in (*history.timing, *history.paths) for part in each.inside)


def inside_facts(
    known: Inside | None, edges: Sequence[int], bias_ns: float, callees: Collection[Frame] = ()
) -> list[dict[str, Any]]:
    """Return what happened inside the calls of each class, for the entry that has its border and share.

    ``callees`` are functions that samples found to be called, and that were timed too, but perhaps not together with
    this one. Then their time is in what is left.
    """
    if known is None:
        return [{"inside": []}] * (len(edges) + 1)
    found = composition(known, edges, bias_ns)
    untold = [_named(frame) for frame in _untold(known, callees)]
    return [_class(each, split=found.split) | {"not_timed": untold} for each in found.classes]


def _untold(known: Inside, callees: Collection[Frame]) -> list[Frame]:
    return sorted({*known.partly, *callees}.difference(known.timed))


def spread_facts(known: Inside | None, bias_ns: float, callees: Collection[Frame] = ()) -> dict[str, Any] | None:
    """Return what the spread of all calls consists of; None where nothing inside them was timed."""
    found = spread(known, bias_ns) if known is not None and known.timed else None
    if found is None or known is None:
        return None
    return {
        "calls": found.calls,
        "mean_seconds": found.mean_ns * 1e-9,
        "deviation_seconds": found.deviation_ns * 1e-9,
        "excess_seconds": None if found.excess_ns is None else found.excess_ns * 1e-9,
        "parts": [_part(each, found) for each in found.parts],
        "not_timed": [_named(frame) for frame in _untold(known, callees)],
    }


def waits_facts(known: Waits | None, at: str | None) -> dict[str, Any] | None:
    """Return where all calls waited, as followed until a moment; None where that was not looked for."""
    if known is None:
        return None
    return {"followed_seconds": known.followed_ns * 1e-9, "at": at, **_waits(waits_of(known)[0])}


def class_waits_facts(known: Waits | None, edges: Sequence[int]) -> list[dict[str, Any]]:
    """Return the same of each class, for its entry."""
    if known is None:
        return [{}] * (len(edges) + 1)
    return [{"waits": _waits(each)} for each in waits_of(known, edges)]


def _waits(each: ClassWaits) -> dict[str, Any]:
    return {"calls": each.calls, "mean_seconds": each.mean_ns * 1e-9, "parts": [_wait(part) for part in each.parts]}


def _wait(part: WaitPart) -> dict[str, Any]:
    return {
        "kind": part.kind.value,
        "system_call": part.call or None,
        "place": part.place.name if part.place else None,
        "place_module": part.place.module if part.place else None,
        "within": part.within.name if part.within else None,
        "share": part.share,
        "waits_per_call": part.waits,
        "mean_seconds": part.mean_ns * 1e-9,
        "frames": [frame.name for frame in reversed(part.frames)],
        "woken_by": [
            {
                "place": waker.place.name if waker.place else None,
                "place_module": waker.place.module if waker.place else None,
                "share": waker.share,
                "frames": [frame.name for frame in reversed(waker.frames)],
            }
            for waker in part.wakers
        ],
    }


def _class(each: ClassInside, *, split: bool) -> dict[str, Any]:
    own = {"share": each.own, "waiting": each.own_waiting, "blocked": each.own_blocked}
    return {
        "inside": [
            {
                **_named(part.callee),
                "share": part.share,
                "calls_per_call": part.calls,
                "mean_seconds": part.mean_ns * 1e-9,
                **({"waiting": part.waiting, "blocked": part.blocked} if split else {}),
            }
            for part in each.callees
        ],
        "own": (own if split else {"share": each.own}) if each.calls else None,
        "inside_calls": each.calls,
        "inside_mean_seconds": each.mean_ns * 1e-9,
    }


def _part(part: SpreadPart, of: Spread) -> dict[str, Any]:
    return {
        **(_named(part.callee) if part.callee is not None else {}),
        "what": part.what or "callee",
        "variance": part.variance,
        "excess": part.excess if of.excess_ns is not None else None,
        "mean_seconds": part.mean_ns * 1e-9,
    }


def _named(frame: Frame) -> dict[str, str]:
    return OTHERS_SHOWN if frame == OTHERS else {"callee": frame.name, "module": frame.module}
