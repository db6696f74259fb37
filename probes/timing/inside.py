"""What happened inside timed calls: from the kernel's sums by callee to what one window says.

A callee is told only of calls during which all of its own calls were timed. Else what it took would pass for the outer
function's own time. Probes come and go, so the calls of a function are divided into *eras*: during an era the same
callees are timed. A call during which another era began is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specmine.model.call_path import Frame
from specmine.model.histogram import Histogram
from specmine.model.inside.parts import ANYWHERE, OTHERS, CalleeSet, CalleeTime, Inside
from specmine.model.inside.sums import pooled_inside
from specmine.probes.kernel.maps import HashMap
from specmine.probes.kernel.structs import AWAY_UNIT_NS, BLOCKED_CALL, BLOCKED_IN, PERIODS

from .function.timed_function import TimedFunction
from .isolation import Isolation
from .return_probes import IDENTITY
from .slot_rows import SlotRows

MISSED = 0.01
"""Share of a callee's calls that may go untimed."""
AT_THE_ENDS = 4
"""Calls that the counters of a running program may disagree about, since they are not read at once."""
NAMES = 2048
"""Attachments whose function is remembered."""
ERAS = 0xFFFF
ERAS_KEPT = 64
"""Eras of a function that are known: of one that is not called no window ends, while others around it come and go."""

Bias = Callable[[TimedFunction], float]
"""What the probes of a function add to each of its durations, ns."""
_Group = tuple[NDArray[np.void], list[Frame], list[int]]
"""Rows of the same callees in the same order, with their frames and identities."""


@dataclass(slots=True, eq=False)
class _Eras:
    """The eras of one function since its last window."""

    number: int
    inside: bytes
    """Slots whose probes were hit inside its calls, as known when the present era began."""
    timed: dict[int, frozenset[TimedFunction]]
    """Number -> callees of which all calls were timed."""

    def exclude(self, callee: TimedFunction) -> None:
        """Take back that a callee is timed: its probes are off since an unknown moment after they were attached."""
        for number in reversed(self.timed):
            if callee not in self.timed[number]:
                return
            self.timed[number] -= {callee}


class InsideMeter:
    """The sums of the open windows, and which callees were timed meanwhile."""

    def __init__(self, kernel: HashMap, counters: NDArray[Any], isolation: Isolation, *, split: bool) -> None:
        """Hold nothing yet. ``counters`` are those of all slots; ``split``: waits are known."""
        self._rows = SlotRows(kernel)
        self._calls, self._timed, self._untold = counters["calls"], counters["timed"], counters["untold"]
        self._open = [counters["open"][:, period] for period in range(PERIODS)]
        self._isolation, self._split = isolation, split
        self._attached: dict[int, TimedFunction] = {}
        """Identity of an attachment -> its function; the newest last."""
        self._now: dict[int, TimedFunction] = {}
        """Slot -> the function that has it."""
        self._eras: dict[int, _Eras] = {}
        self._held: dict[str, tuple[Inside, ...]] = {}
        """Key of a function -> what its windows said since its last observation."""
        self._before: dict[int, tuple[int, NDArray[np.int64], NDArray[np.int64]]] = {}
        """Slot -> untold calls, and calls and untimed calls of all slots, at the start of its window."""
        self._looked: tuple[bytes, list[int]] = b"", []
        """What was hit inside what at the last look for callees, and the slots that were looked at."""

    def changed(self, w: TimedFunction, *, on: bool) -> None:
        """Begin another era for a function and those around it: its probes are on now, or are about to be detached."""
        self._now[w.slot.number] = w
        never_on = not on and not w.attachment.on_ns  # what was expected did not come
        for slot in {w.slot.number, *self._isolation.directly_around(w.slot.number), *self._looking_at(w)}:
            around, eras = self._now.get(slot), self._eras.get(slot)
            if eras is not None and (never_on or _is_exhausted(w)):
                eras.exclude(w)
            if around is not None:
                if around is w and on:
                    self._check_expected(w)
                self._begin_era(around, leaving=None if on else w)

    def expect(self, w: TimedFunction) -> None:
        """Begin an era for a function whose callees are being attached: their links are made before its own.

        So they are timed in all of its calls, if the links are made at all: ``changed`` tells.
        """
        self._now[w.slot.number] = w
        self._begin_era(w)

    def _check_expected(self, w: TimedFunction) -> None:
        """Take back that callees are timed which were expected to be, and are not now that the function is."""
        eras = self._eras.get(w.slot.number)
        for callee in eras.timed[eras.number] if eras is not None else ():
            if eras is not None and not _times_all(callee, w):
                eras.exclude(callee)

    def _looking_at(self, w: TimedFunction) -> list[int]:
        """Return the slot of the function that looks at this callee."""
        if not w.watch.follows:
            return []
        return [slot for slot, each in self._now.items() if each.function.key == w.watch.inside_of]

    def _begin_era(self, w: TimedFunction, leaving: TimedFunction | None = None) -> None:
        """Begin an era if other callees are timed than before."""
        slot, inside = w.slot.number, self._isolation.row(w.slot.number)
        if inside != self._looked[0][slot * len(inside) : (slot + 1) * len(inside)]:
            self._looked = b"", []
        before = self._eras.get(slot)
        callees = self._callees(w)
        timed = frozenset(each for each in callees if each is not leaving and _times_all(each, w))
        number = before.number if before else 0
        if before is None or before.timed[number] != timed:
            number = number % ERAS + 1
        known = [*before.timed.items()][1 - ERAS_KEPT :] if before else []
        self._eras[slot] = _Eras(number, inside, {**dict(known), number: timed})
        w.slot.set_era(number if any(inside) or callees else 0)

    def _callees(self, w: TimedFunction) -> set[TimedFunction]:
        """Return the functions that were hit directly inside a function's calls, or are to be since they follow it."""
        inside = self._isolation.directly_inside(w.slot.number)
        found = {self._now[each] for each in inside if each in self._now}
        return found | {each for each in self._now.values() if _follows(each, w)}

    def drain(self, functions: tuple[TimedFunction, ...], *, hit: bool = True) -> None:
        """Take the sums out of the kernel, and look for callees that were not known; not ``hit``: there are no sums."""
        self._now = {w.slot.number: w for w in functions}
        slots = {}
        for w in functions:
            for cookie in w.attachment.cookies:
                self._attached.setdefault(cookie, w)
                if w.window is not None:
                    slots[cookie] = w.slot.number
        self._look_for_callees(functions)
        for old in list(self._attached)[:-NAMES] if len(self._attached) > NAMES else ():
            del self._attached[old]
        if hit:
            self._rows.drain(slots, IDENTITY)

    def _look_for_callees(self, functions: tuple[TimedFunction, ...]) -> None:
        """Begin an era where callees came or went; nothing is looked at where the kernel has met no other ones."""
        looked = self._isolation.rows(), [w.slot.number for w in functions]
        if looked == self._looked:
            return
        self._looked = looked
        for w in functions:
            eras = self._eras.get(w.slot.number)
            if self._isolation.row(w.slot.number) != (eras.inside if eras else bytes(self._isolation.row_bytes)):
                self._begin_era(w)

    def begin(self, slot: int) -> None:
        """Begin a window of a slot."""
        self._rows.take(slot)
        self._before[slot] = self._counted(slot)

    def take(self, w: TimedFunction, bias: Bias) -> None:
        """Hold what the open window of a function says until an observation takes it.

        Where the probes inside its calls contaminate its durations, that window becomes no observation. What it says of
        the callees stays: nothing is known of them while their probes are off.
        """
        rows, eras = self._rows.take(w.slot.number), self._eras.get(w.slot.number)
        before = self._before.get(w.slot.number)
        if before is None or eras is None or not len(rows):
            return
        untold, calls, untimed = self._counted(w.slot.number)
        for callee in set().union(*eras.timed.values()):
            if _is_exhausted(callee):
                eras.exclude(callee)
        known = eras.timed
        self._eras[w.slot.number] = _Eras(eras.number, eras.inside, {eras.number: known[eras.number]})
        if untold - before[0] > MISSED * int(rows["value"]["calls"].sum()):
            return
        whole = untimed - before[2] <= MISSED * (calls - before[1]) + AT_THE_ENDS
        inside = self._callees(w)
        parts = list(self._held.get(w.function.key, ()))
        eras_of = rows["key"]["era"]
        for era in sorted(set(eras_of.tolist())):
            if era not in known:
                continue  # another era began during these calls
            own = rows[eras_of == era]
            found = [self._attached.get(each) for each in _identities(own)]
            callees = inside | known[era] | {each for each in found if each is not None}
            timed = {each for each in known[era] if whole[each.slot.number] and self._has_slot(each)}
            parts.append(
                inside_of(
                    own,
                    self._attached,
                    bias,
                    timed={each.function.frame for each in timed},
                    partly={each.function.frame for each in callees - timed},
                    split=self._split,
                )
            )
        self._held[w.function.key] = pooled_inside(parts)

    def deliver(self, w: TimedFunction) -> tuple[Inside, ...]:
        """Return what is held of a function, and forget it."""
        return self._held.pop(w.function.key, ())

    def leave(self, slot: int) -> None:
        """Forget what is held of a slot that another function gets."""
        self._rows.take(slot)
        for held in (self._before, self._eras, self._now):
            held.pop(slot, None)

    def forget(self, functions: Collection[str]) -> None:
        """Forget what is held of functions whose files were closed."""
        for key in functions:
            self._held.pop(key, None)
        self._attached = {cookie: w for cookie, w in self._attached.items() if w.function.key not in functions}

    def _has_slot(self, w: TimedFunction) -> bool:
        """Tell whether no other function has its slot by now: the counters are its own."""
        return self._now.get(w.slot.number, w) is w

    def _counted(self, slot: int) -> tuple[int, NDArray[np.int64], NDArray[np.int64]]:
        calls = self._calls.astype(np.int64)
        ended = calls.copy()
        for began in self._open:
            ended -= began.view(np.int64)
        return int(self._untold[slot]), calls, ended - self._timed.view(np.int64)


def _is_exhausted(w: TimedFunction) -> bool:
    """Tell whether the kernel has refused hits of it since its probes were attached."""
    return w.bucket.was_empty or w.slot.count("hits") > w.slot.limit


def _follows(callee: TimedFunction, caller: TimedFunction) -> bool:
    """Tell whether it is timed in the on-phases of another function, whose calls are looked into."""
    return callee is not caller and callee.watch.inside_of == caller.function.key


def _times_all(callee: TimedFunction, caller: TimedFunction) -> bool:
    """Tell whether every call that it gets from another function's timed calls is timed, from now on."""
    pids = callee.attachment.pids
    everywhere = 0 in pids or caller.attachment.pids <= pids
    # links are made in the order in which they were asked for: those of callees that follow come first
    expected = _follows(callee, caller) and not caller.attachment.on_ns and bool(pids)
    on = bool(callee.attachment.on_ns) or expected
    return on and callee.probe.timed and not callee.sampled and everywhere


def inside_of(
    rows: NDArray[np.void],
    attached: Mapping[int, TimedFunction],
    bias: Bias,
    *,
    timed: Iterable[Frame],
    partly: Iterable[Frame] = (),
    split: bool = False,
) -> Inside:
    """Return what some rows say.

    Parameters
    ----------
    rows : ndarray
        ``key`` and ``value`` of calls during which the same callees were timed.
    attached : mapping
        Which function an identity belongs to.
    bias : callable
        What the probes of a callee add to its durations, ns.
    timed, partly : iterable of Frame
        Callees that were timed, and that were not.
    split : bool
        It is known what the calls waited for.
    """
    biases = {identity: bias(attached[identity]) for identity in _identities(rows) if identity in attached}
    columns: dict[tuple[tuple[Frame, ...], tuple[Frame, ...]], list[_Group]] = {}
    blocked_long = (rows["key"]["bucket"] & np.uint16(BLOCKED_CALL)) > 0
    for much in (False, True):
        own = rows[blocked_long == much]
        together: dict[tuple[int, ...], list[int]] = {}
        for number, row in enumerate(own["key"]["callees"].tolist()):
            together.setdefault(tuple(row), []).append(number)
        for row, numbers in sorted(together.items()):
            used = [each & ~BLOCKED_IN for each in row if each]
            named = [attached[each].function.frame if each in attached else OTHERS for each in used]
            places = {frame for frame, each in zip(named, row, strict=False) if each & BLOCKED_IN}
            where = tuple(sorted(places | {ANYWHERE})) if much else ()
            if named or much:
                group = (own[numbers], named, used)
                columns.setdefault((tuple(sorted(set(named))), where), []).append(group)
    made = []
    for (frames, where), groups in sorted(columns.items()):
        callees = tuple(_callee_time(frame, groups, biases) for frame in frames)
        calls = Histogram.sum(Histogram.from_pairs(_buckets(of), of["value"]["calls"]) for of, _, _ in groups)
        stood = [Histogram.from_pairs(_buckets(of), _ns(of["value"]["blocked"])) for of, _, _ in groups if where]
        made.append(CalleeSet(calls=calls, callees=callees, blocked=where, blocked_ns=Histogram.sum(stood)))
    every = [callee for each in made for callee in each.callees]
    bucket, value = _buckets(rows), rows["value"]
    waiting = Histogram.from_pairs(bucket, _ns(value["waiting"]))
    blocked = Histogram.from_pairs(bucket, _ns(value["blocked"]))
    return Inside(
        calls=Histogram.from_pairs(bucket, value["calls"]),
        timed=tuple(sorted(timed)),
        partly=tuple(sorted(set(partly) - set(timed))),
        sets=tuple(made),
        waiting_ns=waiting.without(Histogram.sum(each.waiting_ns for each in every)),
        blocked_ns=blocked.without(Histogram.sum(each.blocked_ns for each in every)),
        split=split,
    )


def _identities(rows: NDArray[np.void]) -> list[int]:
    """Return the callees that rows name."""
    found = rows["key"]["callees"].ravel() & ~np.uint32(BLOCKED_IN)
    return sorted(set(found.tolist()))


def _buckets(rows: NDArray[np.void]) -> NDArray[np.uint16]:
    """Return the buckets of the durations of outer calls."""
    found: NDArray[np.uint16] = rows["key"]["bucket"] & ~np.uint16(BLOCKED_CALL)
    return found


def _ns(units: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return sums of time off the CPU in ns."""
    return units * np.uint64(AWAY_UNIT_NS)


def _callee_time(frame: Frame, groups: list[_Group], biases: dict[int, float]) -> CalleeTime:
    """Add up one callee of all calls that reached the same callees, in whatever order."""
    bucket, calls, time_ns, waiting, blocked = [], [], [], [], []
    for rows, frames, identities in groups:
        for place, (each, identity) in enumerate(zip(frames, identities, strict=True)):
            if each != frame:
                continue
            sums = rows["value"]["of"][:, place]
            bucket.append(_buckets(rows))
            calls.append(sums["calls"])
            less = sums["calls"] * biases.get(identity, 0.0)
            time_ns.append(np.maximum(0.0, sums["ns"] - less).round().astype(np.uint64))
            waiting.append(_ns(sums["waiting"]))
            blocked.append(_ns(sums["blocked"]))
    at = np.concatenate(bucket)
    return CalleeTime(
        callee=frame,
        calls=Histogram.from_pairs(at, np.concatenate(calls)),
        time_ns=Histogram.from_pairs(at, np.concatenate(time_ns)),
        waiting_ns=Histogram.from_pairs(at, np.concatenate(waiting)),
        blocked_ns=Histogram.from_pairs(at, np.concatenate(blocked)),
    )
