"""From verdicts to alarms: rate of false alarms, persistence, one alarm per cause, acknowledgement, recovery."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from .comparison import Change
from .false_discovery_rate import e_discoveries

PERSIST = 2
"""Checks in a row that must agree before an alarm is raised, and before it is withdrawn."""


class Status(StrEnum):
    """The state of an alarm."""

    QUIET = "quiet"
    SUSPECTED = "suspected"
    RAISED = "raised"
    ACKNOWLEDGED = "acknowledged"
    GONE = "gone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """The alarm about one function between two builds."""

    status: Status = Status.QUIET
    direction: Change = Change.UNDECIDED
    """Worse or better, of what was discovered."""
    agreeing: int = 0
    """Checks in a row with the same verdict."""
    leaving: int = 0
    """Checks in a row, of a raised alarm, that no longer showed a change."""
    since_ns: int | None = None
    log_e: float = 0.0
    """Evidence, frozen when it was discovered: that keeps the rate over all alarms of a month."""


def next_alarm(alarm: Alarm, verdict: Change, log_e: float, *, discovered: bool, now_ns: int) -> Alarm:
    """Return the alarm after one more check.

    Parameters
    ----------
    alarm : Alarm
    verdict : Change
        What the comparison says now.
    log_e : float
        Its evidence.
    discovered : bool
        Is it among the discoveries at the stated rate?
    now_ns : int
    """
    changed = verdict in (Change.WORSE, Change.BETTER)
    if alarm.status in (Status.RAISED, Status.ACKNOWLEDGED):
        leaving = 0 if verdict is alarm.direction else alarm.leaving + 1
        if verdict is Change.EQUIVALENT and leaving >= PERSIST:
            return replace(alarm, status=Status.GONE, leaving=0, since_ns=now_ns)
        return replace(alarm, leaving=leaving)
    if alarm.status is Status.GONE and not (changed and discovered and verdict is not alarm.direction):
        return alarm  # the same change is not reported again
    if not changed or not discovered:
        return replace(alarm, status=Status.QUIET, agreeing=0, log_e=log_e)
    agreeing = alarm.agreeing + 1 if verdict is alarm.direction else 1
    status = Status.RAISED if agreeing >= PERSIST else Status.SUSPECTED
    since = now_ns if alarm.since_ns is None or agreeing == 1 else alarm.since_ns
    return replace(alarm, status=status, direction=verdict, agreeing=agreeing, since_ns=since, log_e=log_e)


def discoveries(alarms: Mapping[str, Alarm], log_e: Mapping[str, float], tests: int, rate: float) -> frozenset[str]:
    """Return what counts as changed so that of all that ever does a month at most ``rate`` is false.

    What was raised keeps the evidence with which it was.
    """
    standing = {Status.SUSPECTED, Status.RAISED, Status.ACKNOWLEDGED, Status.GONE}
    frozen = {key: each.log_e for key, each in alarms.items() if each.status in standing}
    return e_discoveries({**log_e, **frozen}, max(tests, len(log_e)), rate)


def causes(raised: Collection[str], calls: Collection[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """Return one alarm per cause: the deepest functions, each with the callers that it explains.

    Parameters
    ----------
    raised : collection of str
        Functions with an alarm.
    calls : collection of (caller, callee)
        Call edges that were observed.

    Notes
    -----
    A caller is attached to every raised function that it reaches over raised functions only; one that reaches
    none is a cause itself. Functions that call each other in a ring are one cause, under the first name.
    """
    below: dict[str, set[str]] = {name: set() for name in raised}
    for caller, callee in calls:
        if caller in below and callee in below and caller != callee:
            below[caller].add(callee)
    within = {name: reached(name, below) for name in below}
    deepest = sorted(name for name in below if all(name in within[other] for other in within[name]))
    found: dict[str, tuple[str, ...]] = {}
    for name in deepest:
        ring = {other for other in within[name] if name in within[other]} | {name}
        if name == min(ring):
            above = sorted(other for other in below if other != name and name in within[other])
            found[name] = tuple(above)
    return found


def reached(name: str, below: Mapping[str, set[str]]) -> frozenset[str]:
    """Return the functions that one calls, directly or through others; ``below``: whom each calls directly."""
    seen: set[str] = set()
    open_names = list(below.get(name, ()))
    while open_names:
        one = open_names.pop()
        if one not in seen:
            seen.add(one)
            open_names += below.get(one, ())
    return frozenset(seen)
