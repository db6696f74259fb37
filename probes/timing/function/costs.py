"""What the hits of a timed function cost the program, and what they add to durations."""

from __future__ import annotations

from specmine.model.batch import Prices
from specmine.probes.calibration.cold_cache import STEP_ERROR, bias_factor, nested_factor, price_factor

from .handler_times import Totals
from .timed_function import TimedFunction


def hit_costs_ns(w: TimedFunction, prices: Prices) -> tuple[int, int]:
    """Return what a hit at the function's entry, and at its return, adds to the durations of calls around it, ns.

    Stack walks excepted: the programs measure those themselves.
    """
    entry, back = w.probe.entry_ns(prices), w.probe.return_ns(prices)
    if w.by_site and w.probe.timed:
        entry, back = prices.site_entry_mean_ns, prices.site_return_mean_ns
    stepped, factor = prices.stepped_mean_ns, nested_factor(w.handlers.typical, w.probe)
    return round(entry * factor + stepped * w.stepped), round(back * factor + stepped * w.stepped_returns)


def cost_ns(w: TimedFunction, hits: int, timed: int, prices: Prices) -> float:
    """Predict what hits cost the program: whole timed calls by their price, the rest as entries."""
    entries = max(timed, hits - timed)
    untimed_ns = max(prices.count_ns, prices.untimed_ns * w.sampled)
    cost = timed * w.probe.price_ns(prices) + max(0, entries - timed) * untimed_ns
    cost *= price_factor(w.handlers.coldness, w.probe)
    cost += entries * prices.stepped_ns if w.stepped else 0.0
    return cost + (timed * prices.stepped_ns if w.stepped_returns else 0.0)


def bias_ns(w: TimedFunction, prices: Prices) -> tuple[float, float]:
    """Return what the function's own probes add to its durations, and the uncertainty of that."""
    loop_ns = prices.site_bias_ns if w.by_site else prices.bias_ns
    factor, unsure = bias_factor(w.handlers.typical, by_site=w.by_site)
    step_ns = prices.stepped_bias_ns if w.stepped else 0.0
    probes_ns = loop_ns * factor
    return probes_ns + step_ns, prices.bias_uncertainty * probes_ns + unsure * loop_ns + STEP_ERROR * step_ns


def handler_totals(w: TimedFunction) -> Totals:
    """Return the running totals of the function's handler times."""
    return w.slot.count("handlers_timed"), w.slot.count("handler_ns"), w.slot.count("handler_log")


def measure_handlers(w: TimedFunction, prices: Prices) -> None:
    """Take in how long the function's handlers took since the last time."""
    loop_ns = prices.site_handler_ns if w.by_site else prices.handler_ns
    w.handlers.update(handler_totals(w), loop_ns + w.probe.extra_handler_ns(prices))
