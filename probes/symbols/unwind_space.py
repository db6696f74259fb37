"""Room for unwind rows in the kernel's arrays: stretches taken and given back, first fit.

What is given back is not used again for a while: a stack walk that was interrupted may still search there.
"""

from __future__ import annotations

from dataclasses import dataclass, field

REST_NS = 2_000_000_000
"""How long a stretch rests; walks last microseconds, unless their thread is preempted in the middle."""


@dataclass(slots=True)
class Space:
    """The free stretches of one array."""

    size: int
    free: list[tuple[int, int]] = field(default_factory=list)
    """(start, length), ascending, no two that touch."""
    resting: list[tuple[int, int, int]] = field(default_factory=list)
    """(when it may be used again, start, length), in order of time."""

    def __post_init__(self) -> None:
        """Begin with all of it free."""
        self.free = [(0, self.size)] if self.size > 0 else []

    @property
    def used(self) -> int:
        """Entries that are neither free nor resting."""
        return self.size - sum(length for _, length in self.free) - sum(length for *_, length in self.resting)

    def take(self, length: int, now_ns: int) -> int | None:
        """Return the start of a stretch that is now taken, None if none is long enough."""
        self._wake(now_ns)
        if length <= 0:
            return 0
        for i, (start, room) in enumerate(self.free):
            if room >= length:
                self.free[i : i + 1] = [(start + length, room - length)] if room > length else []
                return start
        return None

    def give_back(self, start: int, length: int, now_ns: int) -> None:
        """Let a stretch rest, then be free."""
        self.resting.append((now_ns + REST_NS, start, length))

    def rests(self, now_ns: int) -> bool:
        """Tell whether something given back may not be used yet."""
        return any(when > now_ns for when, *_ in self.resting)

    def _wake(self, now_ns: int) -> None:
        awake = [(start, length) for when, start, length in self.resting if when <= now_ns]
        if not awake:
            return
        self.resting = [each for each in self.resting if each[0] > now_ns]
        merged: list[tuple[int, int]] = []
        for start, length in sorted((*self.free, *awake)):
            if merged and sum(merged[-1]) == start:
                merged[-1] = (merged[-1][0], merged[-1][1] + length)
            else:
                merged.append((start, length))
        self.free = merged
