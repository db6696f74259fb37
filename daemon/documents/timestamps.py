"""Times of the controller, on the clock of the kernel's events, as dates."""

from __future__ import annotations

from datetime import UTC, datetime

from specmine.daemon.controller.state import ControllerState


def utc_offset_ns(state: ControllerState) -> int:
    """Return what to add to times of the controller to get UTC, ns; 0 before the source has started."""
    return state.utc_offset_ns


def rfc3339(utc_ns: int) -> str:
    """Write a time as RFC 3339 in UTC, milliseconds."""
    moment = datetime.fromtimestamp(utc_ns // 1_000_000 / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def dates_of(state: ControllerState, span_ns: tuple[int, int] | None) -> dict[str, str] | None:
    """Write when something began and ended as RFC 3339; None where that or the clock's offset is not known."""
    if span_ns is None:
        return None
    start, end = (date_of(state, each) for each in span_ns)
    return None if start is None or end is None else {"start": start, "end": end}


def date_of(state: ControllerState, at_ns: int | None) -> str | None:
    """Write a time of the controller as RFC 3339; None where the clock's offset is not known."""
    known = state.started is not None and "utc_offset_ns" in state.started.host
    return rfc3339(at_ns + utc_offset_ns(state)) if known and at_ns is not None else None
