"""The lifetimes that a comparison did not use, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from specmine.analysis.lifetimes.seen import SeenLifetime
from specmine.daemon.documents.timestamps import rfc3339
from specmine.mining.regression.comparison import LeftOut

from .sides import Key, Sides

SIDES = ("base", "new")
_A_DATE_NS = 10**18
"""Times before September 2001 are no dates: a recording may count from its start."""


def left_out_of(sides: Sides, key: Key, too_few: Sequence[LeftOut]) -> list[dict[str, Any]]:
    """Return the lifetimes of both sides that do not count for a function, in the order of time.

    Parameters
    ----------
    sides : Sides
    key : tuple
        Function and module.
    too_few : sequence of LeftOut
        Lifetimes with calls of it, but too few for the summary.
    """
    few = {(each.side, each.host, each.lifetime): each for each in too_few}
    found = []
    for at, (side, observed) in enumerate(zip(sides.seen, (sides.base, sides.new), strict=True)):
        timed = {(each.build, each.host, each.lifetime): each for each in observed.get(key, ())}
        for each in side:
            one = few.get((at, each.host, each.lifetime))
            if one is not None:
                found.append((each.start_ns, _entry(each, at, one.calls, one.code, one.text)))
            elif each.run not in timed:
                code, text = _why_not_timed(each, key)
                found.append((each.start_ns, _entry(each, at, 0, code, text)))
    return [entry for _, entry in sorted(found, key=lambda one: one[0])]


def start_of(each: SeenLifetime) -> str | None:
    """Return when a lifetime began as text, None if it is not known or on a clock of its own."""
    return rfc3339(each.start_ns) if each.start_ns > _A_DATE_NS else None


def _why_not_timed(each: SeenLifetime, key: Key) -> tuple[str, str]:
    if not each.timed:
        return "nothing-timed", "no call of any function was timed in it"
    if key in each.not_counted:
        return "other-probe", "its calls were timed by another kind of probe than in most lifetimes"
    return "not-timed", "no call of it was timed"


def _entry(each: SeenLifetime, side: int, calls: int, code: str, text: str) -> dict[str, Any]:
    return {
        "side": SIDES[side],
        "lifetime": each.lifetime,
        "host": each.host,
        "start": start_of(each),
        "calls": calls,
        "reason": {"code": code, "text": text},
    }
