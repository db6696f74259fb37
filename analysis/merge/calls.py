"""How many calls a function made in several runs together, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any


def merged_calls(entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return ``calls``, ``calls_interval`` and ``calls_exact`` of runs together.

    The runs were counted independently, so the distances to the ends of their intervals add up like standard errors.
    The interval is unknown where that of one run is, and has no upper end where one has none.
    """
    calls = [int(one.get("calls") or one.get("timed") or 0) for one in entries]
    found: dict[str, Any] = {"calls": sum(calls)}
    if any("calls_interval" in one for one in entries):
        found["calls_interval"] = _interval(calls, [one.get("calls_interval") for one in entries])
    if any("calls_exact" in one for one in entries):
        found["calls_exact"] = all(one.get("calls_exact") for one in entries)
    return found


def _interval(calls: Sequence[int], ends: Sequence[Sequence[float | None] | None]) -> list[int | None] | None:
    if any(each is None for each in ends):
        return None
    low = math.hypot(*(own - (each[0] or 0) for own, each in zip(calls, ends, strict=True) if each is not None))
    highs = [each[1] for each in ends if each is not None]
    if None in highs:
        return [sum(calls) - round(low), None]
    high = math.hypot(*((each or 0) - own for own, each in zip(calls, highs, strict=True)))
    return [sum(calls) - round(low), sum(calls) + round(high)]
