"""The kernel's buckets: how many hits a function may take before its probes are taken off."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from specmine.model.batch import Prices

from .timed_function import TimedFunction, hit_costs_ns

NO_LIMIT = 1 << 62


class RateLimit:
    """The slots' limits, written where the programs read them."""

    def __init__(self, slots: NDArray[Any], counters: NDArray[Any], prices: Prices) -> None:
        """Work on the kernel's arrays of slots and counters; new ``prices`` hold from the next attachment."""
        self._slots, self._counters, self.prices = slots, counters, prices

    def hits(self, w: TimedFunction) -> int:
        """Return the traps taken at the function's probes so far."""
        return int(self._counters[w.slot]["hits"])

    def calls(self, w: TimedFunction) -> int:
        """Return the calls counted in the open window."""
        return int(self._counters[w.slot]["calls"]) - w.window.calls if w.window else 0

    def inner(self, w: TimedFunction) -> int:
        """Return the recursive calls counted in the open window."""
        return int(self._counters[w.slot]["inner"]) - w.window.inner if w.window else 0

    def unlearnt(self, w: TimedFunction) -> int:
        """Return the calls of the open window whose return sites were not known."""
        return int(self._counters[w.slot]["unlearnt"]) - w.window.unlearnt if w.window else 0

    def traps_and_calls(self, w: TimedFunction) -> tuple[int, int]:
        """Return the traps taken so far, without those since the bucket ran empty, and all calls seen."""
        c = self._counters[w.slot]
        return min(int(c["hits"]), int(self._slots[w.slot]["limit"])), int(c["calls"]) + int(c["inner"])

    def admit(self, w: TimedFunction, generation: int) -> None:
        """Make the cookies of one attachment the valid ones, at the prices of its kind."""
        slot = self._slots[w.slot]
        slot["generation"] = generation
        self.cost(w)
        self.sample(w)

    def cost(self, w: TimedFunction) -> None:
        """Say what a hit adds to the calls around it."""
        slot = self._slots[w.slot]
        slot["entry_ns"], slot["return_ns"] = hit_costs_ns(w, self.prices)

    def sample(self, w: TimedFunction) -> None:
        """Say which share of the calls is timed."""
        self._slots[w.slot]["timed_of_4g"] = int(w.watch.timed_share * (1 << 32)) if w.sampled else 0

    def fill(self, w: TimedFunction) -> None:
        """Let the kernel take so many hits before it calls for help."""
        limit = self.hits(w) + w.watch.burst_hits if w.watch.burst_hits else NO_LIMIT
        self._slots[w.slot]["limit"] = limit
        w.filled_ns = 0

    def refill(self, w: TimedFunction, now_ns: int) -> None:
        """Pour in what the time since the last refill allows; the bucket never holds more than a burst."""
        if not w.watch.burst_hits or not w.watch.hits_per_second:
            return
        passed, w.filled_ns = (now_ns - w.filled_ns if w.filled_ns else 0), now_ns
        full = self.hits(w) + w.watch.burst_hits
        more = int(self._slots[w.slot]["limit"]) + round(w.watch.hits_per_second * passed / 1e9)
        self._slots[w.slot]["limit"] = min(full, more)
