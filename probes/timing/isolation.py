"""Let a function have the probes to itself for a while when those inside its calls would spoil its durations.

What other probes cost within a call is taken from its duration (bpf/calls.bpf.c), but the price of a hit is known to
some 50 percent only. Where that is too much the window is thrown away and collected again while the probes of the
functions that it calls are off: the first paper discards perturbed data in the same way (section 3.2).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from .function.timed_function import TimedFunction

CORRECTION_ERROR = 0.5
"""Relative uncertainty of what is taken off for one hit, since caches are not always as cold as on average."""
TOLERABLE = 0.05
"""Uncertainty of that correction, as a share of the median duration, up to which a window is kept."""
TURN_NS = 300_000_000
"""How long a function has the probes to itself at most, and the others after it."""


def is_perturbed(nested_ns: float, median_ns: float, uncertainty_ns: float) -> bool:
    """Tell whether durations are spoiled by the probes within the calls.

    Parameters
    ----------
    nested_ns : float
        What was taken off a duration on average.
    median_ns : float
        Of the corrected durations.
    uncertainty_ns : float
        That of the bias: what is below it does no further harm.
    """
    return CORRECTION_ERROR * nested_ns > TOLERABLE * median_ns + uncertainty_ns


class Isolation:
    """Which function has the probes to itself now."""

    def __init__(self, nests: NDArray[np.void]) -> None:
        """Read from the kernel which slots are hit inside which, and forget it there when a slot changes hands."""
        self._nests = nests["inner"]
        self._alone: TimedFunction | None = None
        self._until_ns = 0
        self._held: frozenset[int] = frozenset()

    def forget(self, slot: int) -> None:
        """A slot belongs to another function now."""
        self._nests[slot] = 0
        self._nests[:, slot >> 6] &= ~(np.uint64(1) << np.uint64(slot & 63))

    @property
    def row_bytes(self) -> int:
        """Length of what ``row`` returns."""
        return int(self._nests.shape[1] * self._nests.itemsize)

    def row(self, slot: int) -> bytes:
        """Return which slots are hit directly inside a slot's calls, to compare it with an earlier look."""
        return bytes(self._nests[slot].tobytes())

    def rows(self) -> bytes:
        """Return ``row`` of all slots, one after the other."""
        return bytes(self._nests.tobytes())

    def directly_inside(self, slot: int) -> list[int]:
        """Return the slots whose probes were hit inside a slot's calls, and not inside a third one's."""
        found: list[int] = np.flatnonzero(np.unpackbits(self._nests[slot].view(np.uint8), bitorder="little")).tolist()
        return found

    def directly_around(self, slot: int) -> list[int]:
        """Return the slots inside whose calls the probes of a slot were hit, not inside a third one's."""
        found: list[int] = np.flatnonzero(self._nests[:, slot >> 6] & (np.uint64(1) << np.uint64(slot & 63))).tolist()
        return found

    def inside(self, slot: int) -> frozenset[int]:
        """Return the slots whose probes were hit inside a slot's calls, however deep; itself excluded."""
        found: set[int] = set()
        ahead = [slot]
        while ahead:
            fresh = set(self.directly_inside(ahead.pop())) - found
            found |= fresh
            ahead += fresh
        return frozenset(found - {slot})

    def begin(self, w: TimedFunction, functions: Iterable[TimedFunction], now_ns: int) -> list[TimedFunction] | None:
        """Give a function its turn; return whose probes must go, None if another has its turn now."""
        if self._alone is not None and self._alone is not w and now_ns < self._until_ns:
            return None
        self._alone, self._until_ns, self._held = w, now_ns + 2 * TURN_NS, self.inside(w.slot.number)
        return [other for other in functions if other.slot.number in self._held and other.attachment.links]

    def has_turn(self, w: TimedFunction) -> bool:
        """Tell whether it is the one that has the probes to itself."""
        return self._alone is w

    def end(self, w: TimedFunction) -> None:
        """Its probes are off."""
        if self._alone is w:
            self._alone, self._held = None, frozenset()

    def holds_back(self, w: TimedFunction, now_ns: int) -> bool:
        """Tell whether a function must wait for the end of another's turn."""
        return self._alone is not None and now_ns < self._until_ns and w.slot.number in self._held
