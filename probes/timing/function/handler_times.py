"""How long the handlers of one function's probes take: longer in cold caches (see cold_cache.py)."""

from __future__ import annotations

from dataclasses import dataclass

from specmine.probes.calibration.cold_cache import coldness, geometric_mean

Totals = tuple[int, int, int]
"""Handlers measured, the ns that they took, and the sum of the histogram buckets of these times."""


@dataclass(slots=True, eq=False)
class HandlerTimes:
    """The handler times of one function, relative to those in calibration's loop."""

    coldness: float = 1.0
    """By the arithmetic mean: determines the price of a hit."""
    typical: float = 1.0
    """By the geometric mean: determines what probes add to most durations."""
    _last: Totals = (0, 0, 0)

    def start(self, totals: Totals, coldness: float) -> None:
        """Begin with these running totals, and with what is known of other functions."""
        self._last = totals
        self.coldness, self.typical = coldness, (1 + coldness) / 2

    def update(self, totals: Totals, loop_ns: float) -> None:
        """Take in what was measured since the last call; ``loop_ns``: what a handler takes in the loop."""
        handlers, took_ns, buckets = (now - before for now, before in zip(totals, self._last, strict=True))
        self._last = totals
        if handlers > 0:
            self.coldness = coldness(self.coldness, took_ns, handlers, loop_ns)
            typical_ns = handlers * geometric_mean(handlers, buckets)
            self.typical = coldness(self.typical, typical_ns, handlers, loop_ns)
