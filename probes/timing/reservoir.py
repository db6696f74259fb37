"""Single durations of each function and lifetime, put together from those that the programs keep per window.

The first ones of a lifetime in their order show whether calls depend on each other; a fair sample of all shows how
they spread. Both are bounded, and told only as they grow.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from specmine.model.batch import CallSamples
from specmine.probes.kernel.structs import SINGLES

from .timed_function import TimedFunction

TOLD_AGAIN = 1.25
"""Told again once so many times the calls were seen: a sample of 4/5 of them says as much."""
MOST = 256
"""Functions and lifetimes held at once, 4 kB each; the one that grew longest ago goes first."""
WHOLE = 0.99
"""Share of the calls that must be timed for the first durations to be called those of calls in a row."""


@dataclass(slots=True)
class _Growing:
    """What one function's calls in one lifetime gave so far."""

    calls: int
    first: array[int]
    kept: array[int]
    told: int = 0


class CallReservoir:
    """The programs' array of single durations, and what was taken from it."""

    def __init__(self, slots: NDArray[Any], chance: random.Random) -> None:
        """Read from and write to the array of all slots."""
        self._slots, self._random = slots, chance
        self._growing: dict[tuple[str, str], _Growing] = {}

    def begin(self, slot: int, timed: int) -> None:
        """Begin a window of a slot that has timed so many calls before."""
        row = self._slots[slot]
        row["first"], row["kept"] = 0, 0
        row["began"] = timed  # last: what the programs write before it lies where the window's own will be, or behind

    def take(self, w: TimedFunction, timed: int, calls: int, bias_ns: float) -> None:
        """Take up what a finished window of ``timed`` out of ``calls`` calls holds."""
        row = self._slots[w.slot]
        most = min(timed, SINGLES)
        first, kept = (
            [max(1, round(each - bias_ns)) for each in row[name][:most].tolist() if each] for name in ("first", "kept")
        )
        if not kept:
            return
        in_a_row = not w.sampled and timed >= WHOLE * calls
        key = w.function.key, w.lifetime
        before = self._growing.pop(key, None)
        if before is None:
            now = _Growing(calls=timed, first=array("Q", first if in_a_row else ()), kept=array("Q", kept))
        else:
            # calls in a row are those of one window: another one's follow after a gap
            longer = in_a_row and len(first) > len(before.first)
            now = _Growing(
                calls=before.calls + timed,
                first=array("Q", first) if longer else before.first,
                kept=array("Q", sampled_together(before.kept.tolist(), before.calls, kept, timed, self._random)),
                told=before.told,
            )
        self._growing[key] = now
        if len(self._growing) > MOST:
            del self._growing[next(iter(self._growing))]

    def news(self) -> tuple[CallSamples, ...]:
        """Return those that have grown enough since they were last told."""
        found = []
        for (function, lifetime), each in self._growing.items():
            if each.calls > each.told and each.calls >= TOLD_AGAIN * each.told:
                each.told = each.calls
                first, kept = tuple(each.first), tuple(each.kept)
                found.append(
                    CallSamples(function=function, lifetime=lifetime, calls=each.calls, first=first, sample=kept)
                )
        return tuple(found)


def sampled_together(
    old: Sequence[int], old_calls: int, new: Sequence[int], new_calls: int, chance: random.Random
) -> tuple[int, ...]:
    """Return a fair sample of two sets of calls from a fair sample of each, of at most ``SINGLES`` durations.

    Notes
    -----
    How many come from either is hypergeometric, drawn one by one.
    """
    if len(old) == old_calls and len(new) == new_calls and old_calls + new_calls <= SINGLES:
        return (*old, *new)
    from_new, left_old, left_new = 0, old_calls, new_calls
    for _ in range(min(SINGLES, old_calls + new_calls)):
        if chance.random() * (left_old + left_new) < left_new:
            from_new, left_new = from_new + 1, left_new - 1
        else:
            left_old -= 1
    size = min(SINGLES, old_calls + new_calls)
    from_new = min(from_new, len(new))
    return (*chance.sample(old, min(size - from_new, len(old))), *chance.sample(new, from_new))
