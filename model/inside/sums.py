"""What happened inside the calls of several windows, added up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from specmine.model.call_path import Frame
from specmine.model.histogram import Histogram

from .parts import CalleeSet, CalleeTime, Inside


def pooled_inside(parts: Iterable[Inside]) -> tuple[Inside, ...]:
    """Add up the parts during which the same callees were timed, in order of these."""
    groups: dict[tuple[object, ...], list[Inside]] = {}
    for part in parts:
        groups.setdefault((part.timed, part.partly, part.split), []).append(part)
    return tuple(
        group[0] if len(group) == 1 else _sum(group) for _, group in sorted(groups.items(), key=lambda item: item[0])
    )


def _sum(parts: Sequence[Inside]) -> Inside:
    sets: dict[tuple[tuple[Frame, ...], tuple[Frame, ...]], list[CalleeSet]] = {}
    for part in parts:
        for each in part.sets:
            sets.setdefault((tuple(one.callee for one in each.callees), each.blocked), []).append(each)
    return Inside(
        calls=Histogram.sum(part.calls for part in parts),
        timed=parts[0].timed,
        partly=parts[0].partly,
        sets=tuple(_sum_of_sets(group) for _, group in sorted(sets.items())),
        waiting_ns=Histogram.sum(part.waiting_ns for part in parts),
        blocked_ns=Histogram.sum(part.blocked_ns for part in parts),
        split=parts[0].split,
    )


def _sum_of_sets(group: Sequence[CalleeSet]) -> CalleeSet:
    return CalleeSet(
        calls=Histogram.sum(each.calls for each in group),
        callees=tuple(
            CalleeTime(
                callee=same[0].callee,
                calls=Histogram.sum(one.calls for one in same),
                time_ns=Histogram.sum(one.time_ns for one in same),
                waiting_ns=Histogram.sum(one.waiting_ns for one in same),
                blocked_ns=Histogram.sum(one.blocked_ns for one in same),
            )
            for same in zip(*(each.callees for each in group), strict=True)
        ),
        blocked=group[0].blocked,
        blocked_ns=Histogram.sum(each.blocked_ns for each in group),
    )
