"""What happened inside timed calls: from the kernel's sums by callee to what one window says.

A callee is told only if its own calls were timed all the while: its probes were on whenever those of the outer function
were, and none of its calls went untimed. Else what it took would pass for the outer function's own time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specmine.model.call_path import Frame
from specmine.model.histogram import EMPTY, Histogram
from specmine.model.inside.parts import OTHERS, CalleeSet, CalleeTime, Inside
from specmine.model.inside.sums import pooled_inside
from specmine.model.split import Split
from specmine.probes.kernel.maps import HashMap
from specmine.probes.kernel.structs import AWAY_UNIT_NS

from .function.timed_function import TimedFunction
from .isolation import Isolation
from .return_probes import IDENTITY
from .slot_rows import SlotRows

COVERED = 0.99
"""Share of the time with the outer function's probes on, for which those of a callee must be on."""
MISSED = 0.01
"""Share of a callee's calls that may go untimed."""
AT_THE_ENDS = 4
"""Calls that the counters of a running program may disagree about, since they are not read at once."""
NAMES = 2048
"""Attachments whose function is remembered."""

Bias = Callable[[TimedFunction], float]
"""What the probes of a function add to each of its durations, ns."""
_Group = tuple[NDArray[np.void], list[Frame], list[int]]
"""Rows of the same callees in the same order, with their frames and identities."""


class InsideMeter:
    """The sums of the open windows, and which callees were timed meanwhile."""

    def __init__(self, kernel: HashMap, counters: NDArray[Any], isolation: Isolation) -> None:
        """Hold nothing yet. ``counters`` are those of all slots."""
        self._rows = SlotRows(kernel)
        self._counters, self._isolation = counters, isolation
        self._attached: dict[int, TimedFunction] = {}
        """Identity of an attachment -> its function; the newest last."""
        self._held: dict[str, tuple[Inside, ...]] = {}
        """Key of a function -> what its windows said since its last observation."""
        self._before: dict[int, tuple[int, NDArray[np.int64], NDArray[np.int64]]] = {}
        """Slot -> untold calls, and calls and untimed calls of all slots, at the start of its window."""

    def drain(self, functions: Iterable[TimedFunction]) -> None:
        """Take the sums out of the kernel."""
        slots = {}
        for w in functions:
            for cookie in w.attachment.cookies:
                self._attached.setdefault(cookie, w)
                if w.window is not None:
                    slots[cookie] = w.slot.number
        for old in list(self._attached)[:-NAMES]:
            del self._attached[old]
        self._rows.drain(slots, IDENTITY)

    def begin(self, slot: int) -> None:
        """Begin a window of a slot."""
        self._rows.take(slot)
        self._before[slot] = self._counted(slot)

    def take(self, w: TimedFunction, until_ns: int, histogram: Histogram, split: Split | None, bias: Bias) -> None:
        """Hold what the open window of a function says until an observation takes it.

        Where the probes inside its calls contaminate its durations, that window becomes no observation. What it says of
        the callees stays: nothing is known of them while their probes are off.
        """
        rows = self._rows.take(w.slot.number)
        before, window = self._before.get(w.slot.number), w.window
        if before is None or window is None or not histogram.total:
            return
        untold, calls, untimed = self._counted(w.slot.number)
        if untold - before[0] > MISSED * histogram.total:
            return
        spells = w.attachment.spells_between(window.start_ns, until_ns)
        missed, called = untimed - before[2], calls - before[1]
        timed: set[Frame] = set()
        partly: set[Frame] = set()
        for callee in self._callees(w, rows):
            number = callee.slot.number
            whole = callee.probe.timed and not callee.sampled
            whole = whole and missed[number] <= MISSED * called[number] + AT_THE_ENDS
            whole = whole and covered(spells, callee.attachment.spells_between(window.start_ns, until_ns)) >= COVERED
            (timed if whole else partly).add(callee.function.frame)
        if timed or partly:
            part = inside_of(histogram, split, rows, self._attached, bias, timed - partly, partly)
            self._held[w.function.key] = pooled_inside((*self._held.get(w.function.key, ()), part))

    def deliver(self, w: TimedFunction) -> tuple[Inside, ...]:
        """Return what is held of a function, and forget it."""
        return self._held.pop(w.function.key, ())

    def _callees(self, w: TimedFunction, rows: NDArray[np.void]) -> list[TimedFunction]:
        """Return the functions whose probes were hit directly inside its calls, in this window or before."""
        now = {each.slot.number: each for each in self._attached.values()}  # the newest of a slot
        inside = {now[slot] for slot in self._isolation.directly_inside(w.slot.number) if slot in now}
        found = np.unique(rows["key"]["callees"]).tolist() if len(rows) else []
        inside |= {self._attached[identity] for identity in found if identity in self._attached}
        return sorted(inside - {w}, key=lambda each: each.function.frame)

    def _counted(self, slot: int) -> tuple[int, NDArray[np.int64], NDArray[np.int64]]:
        every = self._counters
        calls = every["calls"].astype(np.int64)
        ended = calls - every["open"].sum(axis=1).astype(np.int64)
        return int(every["untold"][slot]), calls, ended - every["timed"].astype(np.int64)


def covered(spells: Iterable[tuple[int, int]], others: Iterable[tuple[int, int]]) -> float:
    """Return the share of some spells that lies in others; either in order and without overlaps."""
    ahead, within, whole = list(others), 0, 0
    for begin, end in spells:
        whole += end - begin
        within += sum(max(0, min(end, until) - max(begin, since)) for since, until in ahead)
    return within / whole if whole else 0.0


def inside_of(
    histogram: Histogram,
    split: Split | None,
    rows: NDArray[np.void],
    attached: dict[int, TimedFunction],
    bias: Bias,
    timed: Iterable[Frame],
    partly: Iterable[Frame] = (),
) -> Inside:
    """Return what the rows of one window say.

    Parameters
    ----------
    histogram : Histogram
        All calls of the window.
    split : Split or None
        How they spent their time.
    rows : ndarray
        ``key`` and ``value`` of calls in which others were timed.
    attached : dict
        Which function an identity belongs to.
    bias : callable
        What the probes of a callee add to its durations, ns.
    timed, partly : iterable of Frame
        Callees that were timed all the while, and for a part of it.
    """
    biases = {identity: bias(w) for identity, w in attached.items() if identity in rows["key"]["callees"]}
    found, which = np.unique(rows["key"]["callees"], axis=0, return_inverse=True) if len(rows) else ((), np.empty(0))
    columns: dict[tuple[Frame, ...], list[_Group]] = {}
    for number, identities in enumerate(found):
        used = [int(each) for each in identities if each]
        named = [attached[each].function.frame if each in attached else OTHERS for each in used]
        columns.setdefault(tuple(sorted(set(named))), []).append((rows[which.ravel() == number], named, used))
    made = []
    for frames, groups in sorted(columns.items()):
        callees = [_callee_time(frame, groups, biases) for frame in frames]
        calls = Histogram.sum(Histogram.from_pairs(of["key"]["bucket"], of["value"]["calls"]) for of, _, _ in groups)
        made.append(CalleeSet(calls=calls, callees=tuple(callees)))
    every = [callee for each in made for callee in each.callees]
    return Inside(
        calls=histogram,
        timed=tuple(sorted(timed)),
        partly=tuple(sorted(partly)),
        sets=tuple(made),
        waiting_ns=split.waiting_ns.without(Histogram.sum(each.waiting_ns for each in every)) if split else EMPTY,
        blocked_ns=split.blocked_ns.without(Histogram.sum(each.blocked_ns for each in every)) if split else EMPTY,
        split=split is not None,
    )


def _callee_time(frame: Frame, groups: list[_Group], biases: dict[int, float]) -> CalleeTime:
    """Add up one callee of all calls that reached the same callees, in whatever order."""
    bucket, calls, time_ns, waiting, blocked = [], [], [], [], []
    for rows, frames, identities in groups:
        for place, (each, identity) in enumerate(zip(frames, identities, strict=True)):
            if each != frame:
                continue
            sums = rows["value"]["of"][:, place]
            bucket.append(rows["key"]["bucket"])
            calls.append(sums["calls"])
            less = sums["calls"] * biases.get(identity, 0.0)
            time_ns.append(np.maximum(0.0, sums["ns"] - less).round().astype(np.uint64))
            waiting.append(sums["waiting"] * np.uint64(AWAY_UNIT_NS))
            blocked.append(sums["blocked"] * np.uint64(AWAY_UNIT_NS))
    at = np.concatenate(bucket)
    return CalleeTime(
        callee=frame,
        calls=Histogram.from_pairs(at, np.concatenate(calls)),
        time_ns=Histogram.from_pairs(at, np.concatenate(time_ns)),
        waiting_ns=Histogram.from_pairs(at, np.concatenate(waiting)),
        blocked_ns=Histogram.from_pairs(at, np.concatenate(blocked)),
    )
