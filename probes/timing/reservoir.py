"""Call samples of each function and lifetime: single durations, merged from those that the programs store per window.

The first ones of a lifetime in their order show whether calls depend on each other; a fair sample of all shows how
they spread. Both are bounded, and reported only as they grow.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specmine.model.batch import CallSamples
from specmine.probes.kernel.structs import CALL_SAMPLES

from .function.timed_function import TimedFunction

REPORT_GROWTH = 1.25
"""Samples are reported again once the calls have grown so much: a sample of 4/5 of them says as much."""
MOST = 256
"""Functions and lifetimes held at once, 4 kB each; the one that grew longest ago goes first."""
LATE_NS = 120_000_000_000
"""A window may be cut so long after the end of its lifetime; then nothing is held of that any more."""
WHOLE = 0.99
"""Share of the calls that must be timed for the first durations to be called those of calls in a row."""


@dataclass(slots=True)
class _Growing:
    """What one function's calls in one lifetime gave so far."""

    calls: int
    first: array[int]
    sample: array[int]
    reported: int = 0
    """Calls at the last report."""

    def take_growth(self) -> bool:
        """Tell whether it has grown enough to be reported again, and note that it is."""
        grown = self.calls > self.reported and self.calls >= REPORT_GROWTH * self.reported
        if grown:
            self.reported = self.calls
        return grown


class CallReservoir:
    """The programs' array of call samples, and what was taken from it."""

    def __init__(self, slots: NDArray[Any], chance: random.Random) -> None:
        """Read from and write to the array of all slots."""
        self._began, self._random = slots["began"], chance
        self._first, self._kept = slots["first"], slots["kept"]
        self._growing: dict[tuple[str, str], _Growing] = {}
        self._grown: dict[tuple[str, str], None] = {}
        """Which of these grew since news were asked for."""
        self._ended: dict[str, int] = {}
        """Lifetimes that have ended, and when."""

    def begin(self, slot: int, timed: int) -> None:
        """Begin a window of a slot that has timed so many calls before."""
        self._first[slot] = 0
        self._kept[slot] = 0
        self._began[slot] = (
            timed  # last: what the programs write before it lies where the window's own will be, or behind
        )

    def take(self, w: TimedFunction, timed: int, calls: int, bias_ns: float) -> None:
        """Take up what a finished window of ``timed`` out of ``calls`` calls holds."""
        most = min(timed, CALL_SAMPLES)
        sample = _corrected(self._kept[w.slot.number, :most].copy(), bias_ns)
        if not sample:
            return
        in_a_row = not w.sampled and timed >= WHOLE * calls
        first = _corrected(self._first[w.slot.number, :most].copy(), bias_ns) if in_a_row else []
        key = w.function.key, w.lifetime
        before = self._growing.pop(key, None)
        if before is None:
            now = _Growing(calls=timed, first=array("Q", first), sample=array("Q", sample))
        else:
            # calls in a row are those of one window: another one's follow after a gap
            longer = len(first) > len(before.first)
            now = _Growing(
                calls=before.calls + timed,
                first=array("Q", first) if longer else before.first,
                sample=array("Q", sampled_together(before.sample.tolist(), before.calls, sample, timed, self._random)),
                reported=before.reported,
            )
        self._growing[key] = now
        self._grown[key] = None
        if len(self._growing) > MOST:
            del self._growing[next(iter(self._growing))]

    def end(self, lifetimes: Iterable[str], now_ns: int) -> None:
        """Take in that lifetimes have ended, and forget those that ended long ago."""
        self._ended |= dict.fromkeys(lifetimes, now_ns)
        old = {lifetime for lifetime, ended_ns in self._ended.items() if now_ns - ended_ns >= LATE_NS}
        if old:
            self._ended = {lifetime: ns for lifetime, ns in self._ended.items() if lifetime not in old}
            self._growing = {key: each for key, each in self._growing.items() if key[1] not in old}

    def news(self) -> tuple[CallSamples, ...]:
        """Return those that have grown enough since they were last reported."""
        grown, self._grown = self._grown, {}
        found = ((key, self._growing[key]) for key in grown if key in self._growing)
        return tuple(
            CallSamples(
                function=function,
                lifetime=lifetime,
                calls=growing.calls,
                first=tuple(growing.first),
                sample=tuple(growing.sample),
            )
            for (function, lifetime), growing in found
            if growing.take_growth()
        )


def _corrected(durations: NDArray[np.uint64], bias_ns: float) -> list[int]:
    """Return durations less what the probes add, at least 1 ns; 0 stands for none."""
    rounded = np.rint(durations[durations > 0] - bias_ns)
    found: list[int] = np.maximum(1.0, rounded).astype(np.uint64).tolist()
    return found


def sampled_together(
    old: Sequence[int], old_calls: int, new: Sequence[int], new_calls: int, chance: random.Random
) -> tuple[int, ...]:
    """Return a fair sample of two sets of calls from a fair sample of each, of at most ``CALL_SAMPLES`` durations.

    Notes
    -----
    How many come from either is hypergeometric, drawn one by one.
    """
    if len(old) == old_calls and len(new) == new_calls and old_calls + new_calls <= CALL_SAMPLES:
        return (*old, *new)
    from_new, left_old, left_new = 0, old_calls, new_calls
    for _ in range(min(CALL_SAMPLES, old_calls + new_calls)):
        if chance.random() * (left_old + left_new) < left_new:
            from_new, left_new = from_new + 1, left_new - 1
        else:
            left_old -= 1
    size = min(CALL_SAMPLES, old_calls + new_calls)
    from_new = min(from_new, len(new))
    return (*_drawn(old, size - from_new, chance), *_drawn(new, from_new, chance))


def _drawn(values: Sequence[int], size: int, chance: random.Random) -> list[int]:
    """Return so many of them at random, all of them if they are fewer; draws the fewer of those taken and left."""
    pool, left, drawn = list(values), len(values), []
    leaving = max(0, left - size)
    for _ in range(min(leaving, left - leaving)):
        place = int(chance.random() * left)
        left -= 1
        drawn.append(pool[place])
        pool[place] = pool[left]
    return drawn if size < leaving else pool[:left]
