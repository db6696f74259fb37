"""A function's token bucket in the kernel: how many hits it may take before its probes are detached."""

from __future__ import annotations

from .slot import NO_LIMIT, Slot


class TokenBucket:
    """Refills the limit that the programs compare the hits with."""

    def __init__(self, slot: Slot) -> None:
        """Begin with nothing filled in."""
        self._slot = slot
        self._refilled_ns = 0
        self._burst_hits = 0
        self.was_empty = False
        """The bucket ran empty since the last ``take_alarm``."""

    def fill(self, burst_hits: int) -> None:
        """Allow this many hits from now on; 0: any number."""
        self._slot.set_limit(self._slot.count("hits") + burst_hits if burst_hits else NO_LIMIT)
        self._refilled_ns, self._burst_hits = 0, burst_hits

    def resize(self, burst_hits: int) -> None:
        """Allow as much of another burst as is left of the present one."""
        if not self._burst_hits or burst_hits == self._burst_hits:
            return
        hits = self._slot.count("hits")
        left = self._slot.limit - hits
        if left > 0:
            self._slot.set_limit(hits + left * burst_hits // self._burst_hits)
            self._burst_hits = burst_hits

    def refill(self, hits_per_second: float, burst_hits: int, now_ns: int) -> None:
        """Add what the time since the last refill allows; the bucket never holds more than a burst."""
        if not burst_hits or not hits_per_second:
            return
        passed, self._refilled_ns = (now_ns - self._refilled_ns if self._refilled_ns else 0), now_ns
        full = self._slot.count("hits") + burst_hits
        self._slot.set_limit(min(full, self._slot.limit + round(hits_per_second * passed / 1e9)))

    def alarm(self) -> None:
        """Note that the kernel found the bucket empty."""
        self.was_empty = True

    def take_alarm(self) -> bool:
        """Tell whether the bucket ran empty since the last call."""
        was, self.was_empty = self.was_empty, False
        return was
