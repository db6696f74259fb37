"""An acknowledged alarm stays silent until the change becomes another one."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .alarm import Alarm, Status
from .comparison import Change


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledgement:
    """What was known when an alarm was acknowledged."""

    direction: Change
    ratio: float
    """New over base as it was estimated then."""
    utc_ns: int
    note: str = ""


def apply_acknowledgement(
    alarm: Alarm, known: Acknowledgement | None, bounds: tuple[float, float] | None
) -> tuple[Alarm, Acknowledgement | None]:
    """Return an alarm after its acknowledgement is applied, and the acknowledgement if it is still valid.

    Parameters
    ----------
    alarm : Alarm
        After the last check.
    known : Acknowledgement, optional
    bounds : tuple of float, optional
        The interval of the ratio now. If it no longer holds the ratio that was acknowledged, the change has
        become another one: the alarm is raised again. The interval is valid over all checks together, so a change
        that stays as it is comes back with the probability 1 - level at most.
    """
    standing = alarm.status in (Status.RAISED, Status.ACKNOWLEDGED)
    same = (
        known is not None
        and alarm.direction is known.direction
        and (bounds is None or bounds[0] <= known.ratio <= bounds[1])
    )
    if standing and same:
        return replace(alarm, status=Status.ACKNOWLEDGED), known
    if alarm.status is Status.ACKNOWLEDGED:
        alarm = replace(alarm, status=Status.RAISED)
    return alarm, None
