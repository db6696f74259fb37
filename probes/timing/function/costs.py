"""What the hits of a timed function cost the program, and what they add to durations."""

from __future__ import annotations

from specmine.model.batch import Prices
from specmine.model.probe_kind import PROBE_KINDS
from specmine.probes.calibration.cold_cache import STEP_ERROR, bias_factor, nested_factor, price_factor

from .handler_times import Totals
from .slot import Hits
from .timed_function import TimedFunction

LEAST_HITS = 300
"""Hits of a first look at least: they bring the 100 calls from which quantiles are stated, and some in vain."""


def hit_costs_ns(w: TimedFunction, prices: Prices) -> tuple[int, int, int]:
    """Return what hits add to the durations of calls around them, ns: at the entry, the return, and for a single step.

    The last comes on top at each return site that is single-stepped.

    Stack walks excepted: the programs measure those themselves.
    """
    entry, back = w.probe.entry_ns(prices), w.probe.return_ns(prices)
    if w.by_site and w.probe.timed:
        entry, back = prices.site_entry_mean_ns, prices.site_return_mean_ns
    stepped, factor = prices.stepped_mean_ns, nested_factor(w.handlers.typical, w.probe)
    return round(entry * factor + stepped * w.stepped), round(back * factor), round(stepped)


def timed_call_ns(w: TimedFunction, prices: Prices) -> float:
    """Predict what a timed call costs the program; a single step at its return comes on top."""
    return w.probe.price_ns(prices) * price_factor(w.handlers.coldness, w.probe) + prices.stepped_ns * w.stepped


def other_hit_ns(w: TimedFunction, prices: Prices) -> float:
    """Predict what a hit costs that is no part of a timed call, without a single step."""
    return max(prices.count_ns, prices.untimed_ns * w.sampled) * price_factor(w.handlers.coldness, w.probe)


def costs_ns(w: TimedFunction, hits: Hits, prices: Prices) -> dict[str, float]:
    """Predict what hits cost the program, by what they were for: whole timed calls, and the others.

    The kernel counts hits, calls and timed calls apart, so a call that is open at a report may stand in two.
    """
    others = max(0, hits.hits - 2 * hits.timed)
    back_ns = other_hit_ns(w, prices)
    one_ns = back_ns + prices.stepped_ns * w.stepped
    if not w.probe.timed:
        return {"counting": others * one_ns}
    unlearnt = min(hits.unlearnt, others)
    untimed = min(max(0, hits.calls + hits.inner - hits.timed - hits.unlearnt), others - unlearnt)
    passing = others - unlearnt - untimed
    stepped_back = min(hits.stepped, hits.timed)
    passed_ns = passing * back_ns + (hits.stepped - stepped_back) * prices.stepped_ns
    return {
        "timed": hits.timed * timed_call_ns(w, prices) + stepped_back * prices.stepped_ns,
        "unlearnt": unlearnt * one_ns,
        "untimed": untimed * one_ns if w.by_site else (untimed + passing) * one_ns,
        "passing": passed_ns if w.by_site else 0.0,
    }


def burst_hits(w: TimedFunction, prices: Prices) -> int:
    """Return how many hits the function may take at once: in a first look so many as its cost allows.

    Who asks for a look does not know where the calls return to, and often not where the entry's probe is.
    """
    if not w.watch.cost_ns:
        return w.watch.burst_hits
    sites = w.returns.probed if w.by_site else ()
    stepped = sum(site in w.returns.stepped for site in sites) / max(1, len(sites))
    call_ns = timed_call_ns(w, prices) + stepped * prices.stepped_ns
    affordable = PROBE_KINDS[w.watch.kind].hits * w.watch.cost_ns / max(call_ns, 1.0)
    return min(w.watch.burst_hits, max(round(affordable), LEAST_HITS))


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
