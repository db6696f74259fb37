"""Where the calls of a function wait, and for what: followed in short phases, one function at a time.

All threads of the host pass the switch tracepoint while a phase lasts, so phases are short and far apart. Within one
the kernel walks the stack of each thread that blocks in a timed call of the function, or of some of these at random.

Where a function is timed in on-phases, each that is followed is a phase. It may be over before the daemon knows that it
began, so it is followed from the moment on when its probes are asked for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from specmine.model.buckets import BUCKETS, bucket_of
from specmine.model.call_path import Frame
from specmine.model.histogram import Histogram
from specmine.model.inside.waits import Wait, WaitKind, Waits, Waker, pooled_wakers
from specmine.probes.kernel.maps import HashMap
from specmine.probes.kernel.structs import MAX_SLOTS, WAKER_WATCHED
from specmine.probes.sampling.switches import FOLLOWING, SwitchTracepoint
from specmine.probes.symbols.symbolizer import Symbolizer

from .function.timed_function import TimedFunction
from .return_probes import IDENTITY
from .wait_places import frames_of, kind_of, may_wake, place_of

PHASE_NS = 1_000_000_000
"""How long a phase lasts, counting the time in which the function's probes are on, ..."""
LONGEST_NS = 5_000_000_000
"""... and in all."""
LINGER_NS = 1_000_000_000
"""How long the end of waits is awaited that began in a phase."""
TURN_NS = 5_000_000_000
"""So long after a pause the function whose turn it is may begin its on-phase before another one is followed."""
RESTS, SOON_NS = (3, 19), 30_000_000_000
"""A pause is so many times as long as the phase before: at first, and once a function has been followed so long."""
SAVED_NS = 40_000_000_000
"""What may be spent is saved for so long while nothing is followed: the first phases come soon."""
MOST_WALKS, FEWEST_WALKS, AT_ONCE_S = 2000, 200, 10
"""Stacks walked in a phase: at most; where the budget is small as many as it pays for in so many seconds, ..."""
WANTED_PART = 2
"""... and about so much less are wanted."""
SPARSER = 8
"""Where the most was reached the phase says nothing, and one wait in so many times as many is followed from then on."""
MOST_WAKERS = 4
"""Wakers that are told of one place, those that ended the longest waits."""
MOST_PLACES = 16
"""Places that are told of one phase, those with most time; the others are told together."""
NAMES_PATIENCE_NS = 5_000_000_000

_Key = tuple[WaitKind, str, tuple[Frame, ...], Frame | None]
_Row = tuple[int, int, int, tuple[Frame, ...] | None]
"""Bucket, waits, their time in ns, and the stack of who ended them; (): another program, None: not known."""


@dataclass(slots=True, eq=False)
class _Phase:
    """One function while its waits are followed."""

    function: str
    since_ns: int
    watched_ns: int
    """How long the function's probes had been on in all when it began."""
    slot: int
    most: int
    """Stacks that may be walked in it."""
    passes_ns: float
    """What the tracepoint had cost watched programs when it began."""
    identity: int = 0
    """Of the attachment that is on, or about to be; 0: its probes are off."""
    identities: set[int] = field(default_factory=set)
    """Of all attachments in it."""
    before: NDArray[np.int64] = field(default_factory=lambda: np.zeros(BUCKETS, np.int64))
    """Durations of the slot when that attachment began."""
    calls: NDArray[np.int64] = field(default_factory=lambda: np.zeros(BUCKETS, np.int64))
    """Durations of calls that ended in attachments before."""
    on_ns: int = 0
    """How long the probes were on in it, once it has ended."""
    ended_ns: int = 0
    """Since when only the end of waits is awaited; 0: not yet."""

    def go_on(self, w: TimedFunction, histogram: NDArray[np.uint64]) -> None:
        """Follow the calls of the attachment that is on, or about to be."""
        self.identity, self.slot = w.attachment.cookies[0] & IDENTITY, w.slot.number
        self.identities.add(self.identity)
        self.before = histogram[self.slot].astype(np.int64)

    def pause(self, histogram: NDArray[np.uint64]) -> None:
        """Follow no further call."""
        if self.identity:
            self.calls += histogram[self.slot].astype(np.int64) - self.before
        self.identity = 0

    def add(self, bucket: int, calls: int) -> None:
        """Count calls that no histogram of a slot has."""
        self.calls[bucket] += calls

    def measure(self, w: TimedFunction, now_ns: int) -> None:
        """Note for how long the probes were on."""
        self.on_ns = w.attachment.watched_until(now_ns) - self.watched_ns

    def end(self, now_ns: int) -> None:
        """Await the end of the waits that go on, and nothing else."""
        self.ended_ns = now_ns


@dataclass(slots=True, eq=False)
class _Unnamed:
    """A phase whose stacks have no names yet."""

    phase: _Phase
    keys: NDArray[np.void]
    values: NDArray[np.void]


class WaitMeter:
    """The phases."""

    def __init__(
        self,
        tracepoint: SwitchTracepoint,
        settings: NDArray[np.void],
        open_waits: HashMap,
        ended_waits: HashMap,
        symbolizer: Symbolizer,
        histogram: NDArray[np.uint64],
    ) -> None:
        """Follow nothing yet; ``histogram`` is that of the durations of all slots."""
        self._tracepoint, self._settings, self._symbolizer = tracepoint, settings, symbolizer
        self._open, self._ended = open_waits, ended_waits
        self._histogram = histogram.reshape(MAX_SLOTS, BUCKETS)
        self._asked: dict[str, int] = {}
        """Key -> since when its waits are wanted, in the order of their turns."""
        self._every: dict[str, int] = {}
        """Key -> one wait in so many is followed."""
        self._most_ns, self._most = 0.0, MOST_WALKS
        """What may be spent in a second on average (0: no matter what), and stacks that may be walked in a phase."""
        self._walk_ns, self._paid_ns = 0.0, 0
        """What a walk costs, and until when all that was spent will have been earned."""
        self._phase: _Phase | None = None
        self._unnamed: list[_Unnamed] = []
        self._due_ns = 0
        self.walked = 0
        """Stacks walked."""

    def ask(self, functions: Sequence[str], now_ns: int, *, most_ns: float = 0.0, walk_ns: float = 0.0) -> None:
        """Follow the waits of these functions from now on, and of no others; of new ones at once.

        Parameters
        ----------
        functions : sequence of str
            Their keys.
        now_ns : int
        most_ns : float
            What that may cost the watched programs in a second, on average; 0: no matter what.
        walk_ns : float
            What the walk of a stack costs.
        """
        self._most_ns, self._walk_ns = most_ns, walk_ns
        affordable = int(AT_ONCE_S * most_ns / walk_ns) if most_ns and walk_ns else MOST_WALKS
        self._most = min(MOST_WALKS, max(FEWEST_WALKS, affordable))
        new = [key for key in functions if key not in self._asked]
        if new:
            self._due_ns = max(now_ns, self._paid_ns)
        turns = (*new, *(key for key in self._asked if key in functions))
        self._asked = {key: self._asked.get(key, now_ns) for key in turns}
        self._every = {key: every for key, every in self._every.items() if key in self._asked}

    def coming(self, w: TimedFunction, now_ns: int) -> None:
        """Take in that a function's probes were asked for."""
        key = w.function.key
        if self._phase is None and w.probe.timed and self._may_begin(key, now_ns):
            self._begin(w, now_ns)
        if self._phase is not None and self._phase.function == key and not self._phase.ended_ns:
            self._pause(self._phase)
            self._go_on(self._phase, w)

    def leaving(self, w: TimedFunction, now_ns: int) -> None:
        """Take in that a function's probes are about to be detached: with its on-phase the phase ends."""
        phase = self._phase
        if phase is not None and phase.function == w.function.key and not phase.ended_ns:
            self._pause(phase)
            if w.watch.on_ns:
                phase.measure(w, now_ns)
                phase.end(now_ns)

    def follows(self, w: TimedFunction) -> bool:
        """Tell whether calls of a function are followed now."""
        return self._phase is not None and self._phase.function == w.function.key and bool(self._phase.identity)

    def add_path(self, identity: int, bucket: int, calls: int) -> None:
        """Count calls of an attachment whose durations are counted by path."""
        if self._phase is not None and identity in self._phase.identities:
            self._phase.add(bucket, calls)

    def poll(self, functions: Mapping[str, TimedFunction], now_ns: int) -> tuple[Waits, ...]:
        """Begin and end phases; return what was followed and has names by now."""
        if self._phase is not None:
            self._advance(self._phase, functions, now_ns)
        else:
            on = [w for w in map(functions.get, self._asked) if w is not None and w.probe.timed and w.attachment.on_ns]
            for w in on:
                if self._phase is None and self._may_begin(w.function.key, now_ns):
                    self._go_on(self._begin(w, now_ns), w)
        told: list[Waits] = []
        timed = {key for key, w in functions.items() if w.probe.timed}
        for one in tuple(self._unnamed):
            found = self._named(one, timed, give_up=now_ns - one.phase.ended_ns > LINGER_NS + NAMES_PATIENCE_NS)
            if found is not None:
                self._unnamed.remove(one)
                told.append(found)
        return tuple(told)

    def _may_begin(self, key: str, now_ns: int) -> bool:
        """Tell whether a function may be followed now: it is its turn, or the one whose turn it is had time."""
        return key in self._asked and now_ns >= self._due_ns + TURN_NS * (key != next(iter(self._asked)))

    def _begin(self, w: TimedFunction, now_ns: int) -> _Phase:
        """Begin a phase of a function."""
        key = w.function.key
        self._asked[key] = self._asked.pop(key)  # its next turn comes last
        self._tracepoint.want(FOLLOWING, on=True)
        self._ended.drain()
        self._settings["left"][0] = self._most
        self._settings["follow_every"][0] = self._every.get(key, 1)
        self._phase = _Phase(
            function=key,
            since_ns=now_ns,
            watched_ns=w.attachment.watched_until(now_ns),
            slot=w.slot.number,
            most=self._most,
            passes_ns=self._tracepoint.passes_ns()[0],
        )
        return self._phase

    def _go_on(self, phase: _Phase, w: TimedFunction) -> None:
        """Follow the calls of the attachment that is on."""
        phase.go_on(w, self._histogram)
        self._settings["followed"][0] = phase.identity

    def _pause(self, phase: _Phase) -> None:
        """Follow no further call."""
        self._settings["followed"][0] = 0
        phase.pause(self._histogram)

    def _advance(self, phase: _Phase, functions: Mapping[str, TimedFunction], now_ns: int) -> None:
        if not phase.ended_ns:
            w = functions.get(phase.function)
            if w is not None:
                phase.measure(w, now_ns)
            wanted = w is not None and phase.function in self._asked
            if wanted and phase.on_ns < PHASE_NS and now_ns - phase.since_ns < LONGEST_NS:
                return
            self._pause(phase)
            phase.end(now_ns)
        if now_ns - phase.ended_ns >= LINGER_NS or not self._still_open():
            self._end(phase, now_ns)

    def _still_open(self) -> bool:
        """Tell whether a wait that is followed goes on."""
        return bool(self._open.entries()[1]["begun"].any())

    def _end(self, phase: _Phase, now_ns: int) -> None:
        keys, values = self._with_open(*self._ended.drain(), now_ns)
        self._tracepoint.want(FOLLOWING, on=False)
        self._phase = None
        walks = phase.most - int(self._settings["left"][0])
        self.walked += walks
        every, asked_ns = self._every.get(phase.function, 1), self._asked.get(phase.function, now_ns)
        took_ns = now_ns - phase.since_ns
        cost_ns = walks * self._walk_ns + self._tracepoint.passes_ns()[0] - phase.passes_ns
        saved_ns = max(self._paid_ns, phase.since_ns - SAVED_NS)
        self._paid_ns = saved_ns + round(cost_ns / self._most_ns * 1e9) if self._most_ns else 0
        self._due_ns = max(now_ns + took_ns * RESTS[now_ns - asked_ns > SOON_NS], self._paid_ns)
        if walks >= phase.most:
            self._every[phase.function] = every * SPARSER
            return
        self._every[phase.function] = max(1, round(every * walks * WANTED_PART / phase.most))
        if phase.calls.any():
            self._unnamed.append(_Unnamed(phase, keys, values))

    def _with_open(
        self, keys: NDArray[np.void], values: NDArray[np.void], now_ns: int
    ) -> tuple[NDArray[np.void], NDArray[np.void]]:
        """Add the waits that go on."""
        _, waits = self._open.entries()
        waits = waits[waits["begun"] > 0]
        more, extra = np.zeros(len(waits), keys.dtype), np.zeros(len(waits), values.dtype)
        for name in ("path", "cookie", "call", "object", "waker", "waker_call", "waker_path"):
            more[name] = waits[name]
        taken = np.clip(now_ns - waits["begun"].astype(np.int64), 0, None)
        more["bucket"] = bucket_of(taken)
        extra["count"] = waits["call_weight"]
        extra["ns"] = np.clip(now_ns - waits["start"].astype(np.int64), 0, None) * waits["call_weight"]
        return np.concatenate([keys, more]), np.concatenate([values, extra])

    def _named(self, one: _Unnamed, timed: set[str], *, give_up: bool) -> Waits | None:
        """Return what a phase says, None while names are outstanding."""
        found: dict[_Key, list[_Row]] = defaultdict(list)
        for key, value in zip(one.keys, one.values, strict=True):
            stack = self._symbolizer.stack(int(key["path"]), exact=True)
            if stack is None:
                if not give_up:
                    return None
                stack = []
            frames, within = place_of(stack, one.phase.function, timed)
            kind, call = kind_of(int(key["call"]), int(key["object"]))
            waker: tuple[Frame, ...] | None = None
            if key["waker"] and may_wake(kind, call, int(key["waker_call"])):
                waker = self._waker(int(key["waker_path"])) if key["waker"] == WAKER_WATCHED else ()
                if waker is None and not give_up:
                    return None
            found[kind, call, frames, within].append((int(key["bucket"]), int(value["count"]), int(value["ns"]), waker))
        waits = [_wait(key, rows) for key, rows in found.items()]
        waits.sort(key=lambda each: (-each.blocked_ns.total, each.kind, each.call, each.frames))
        told, others = waits[:MOST_PLACES], waits[MOST_PLACES:]
        if others:
            told.append(
                Wait(
                    kind=WaitKind.OTHER,
                    waits=Histogram.sum(each.waits for each in others),
                    blocked_ns=Histogram.sum(each.blocked_ns for each in others),
                )
            )
        return Waits(
            function=one.phase.function,
            calls=Histogram.from_dense(one.phase.calls.astype(np.uint64)),
            followed_ns=one.phase.on_ns,
            end_ns=one.phase.ended_ns,
            waits=tuple(told),
        )

    def _waker(self, path: int) -> tuple[Frame, ...] | None:
        """Return the stack of a thread that woke another, None while its names are outstanding."""
        stack = self._symbolizer.stack(path, exact=True) if path else []
        return stack if stack is None else frames_of(stack)


def _wait(key: _Key, rows: Sequence[_Row]) -> Wait:
    kind, call, frames, within = key
    buckets, counts, times, _ = zip(*rows, strict=True)
    woken = [(at, ns, waker) for at, _, ns, waker in rows if waker is not None]
    wakers = pooled_wakers(Waker(frames=waker, blocked_ns=Histogram.from_pairs([at], [ns])) for at, ns, waker in woken)
    return Wait(
        kind=kind,
        call=call,
        frames=frames,
        within=within,
        waits=Histogram.from_pairs(buckets, counts),
        blocked_ns=Histogram.from_pairs(buckets, times),
        wakers=tuple(sorted(wakers, key=lambda each: (-each.blocked_ns.total, each.frames))[:MOST_WAKERS]),
    )
