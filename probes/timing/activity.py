"""What the probes of timed functions did and cost, reported as it goes on."""

from __future__ import annotations

from specmine.model.batch import Activity, Prices
from specmine.probes.calibration.cold_cache import coldness_for, price_factor

from .function.costs import burst_hits, costs_ns, handler_totals, hit_costs_ns, measure_handlers
from .function.timed_function import TimedFunction

REPORT_NS = 1_000_000_000
"""What goes on without a change is reported so often."""
_REMAINING = 0.99
"""What one report leaves of the weight of those before."""


class ActivityMeter:
    """The predicted cost of all hits so far."""

    def __init__(self, prices: Prices) -> None:
        """Have charged nothing."""
        self._prices = prices
        self.costs_ns: dict[str, float] = {}
        """Predicted cost of all hits so far, by what they were for."""
        self._charged_ns = self._in_loop_ns = 0.0

    @property
    def overhead_ns(self) -> float:
        """Predicted cost of all hits so far."""
        return sum(self.costs_ns.values())

    @property
    def factor(self) -> float:
        """What hits have cost lately, relative to calibration's loop."""
        return self._charged_ns / self._in_loop_ns if self._in_loop_ns else 1.0

    def reprice(self, prices: Prices) -> None:
        """Charge by new prices."""
        self._prices = prices

    def burst_hits(self, w: TimedFunction) -> int:
        """Return how many hits a function may take at once."""
        return burst_hits(w, self._prices)

    def write_costs(self, w: TimedFunction) -> None:
        """Give the kernel what a hit adds to the calls around it."""
        w.slot.set_costs(*hit_costs_ns(w, self._prices))

    def start(self, w: TimedFunction) -> None:
        """Begin to account a function's hits now."""
        w.report((w.slot.hits, 0))
        w.handlers.start(handler_totals(w), coldness_for(self.factor))

    def take(self, w: TimedFunction, now_ns: int, *, at_once: bool = False) -> Activity | None:
        """Return what the function's probes did since the last report, None if there is nothing to report.

        ``at_once``: an observation was cut, or the probes go: calls that were timed must be counted by then.
        """
        before, watched_before_ns = w.reported
        watched_ns = w.attachment.watched_until(now_ns)
        passed = watched_ns - watched_before_ns
        urgent = at_once or w.bucket.was_empty or not w.attachment.on_ns or not w.probe.timed
        if passed < REPORT_NS and not urgent:
            return None
        total = w.slot.hits
        fresh = total.since(before)
        # where a poll takes long, the links may have been made after its time: there are calls, but no time passed
        if passed == 0 and not w.bucket.was_empty and not (at_once and fresh.calls):
            return None
        measure_handlers(w, self._prices)
        costs = costs_ns(w, fresh, self._prices)
        cost = sum(costs.values())
        for purpose, ns in costs.items():
            self.costs_ns[purpose] = self.costs_ns.get(purpose, 0.0) + ns
        self._charged_ns = _REMAINING * self._charged_ns + cost
        self._in_loop_ns = _REMAINING * self._in_loop_ns + cost / price_factor(w.handlers.coldness, w.probe)
        w.report((total, watched_ns))
        return Activity(
            function=w.function.key,
            kind=w.watch.kind,
            watched_ns=passed,
            hits=fresh.hits,
            calls=fresh.calls,
            cost_ns=cost,
            limited=w.bucket.take_alarm(),
            timed=fresh.timed,
            missed=w.attachment.take_missed(),
            part=w.attachment.part,
        )
