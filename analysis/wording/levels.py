"""How long calls take, in words: half of them within so long, and the range in which that is normal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specmine.model.text import duration_range, three_digits

Quantiles = Mapping[str, Any]
"""Of a specification: name to ``seconds``, ``low`` and ``high``."""
WORDS = {"p50": "median", "p90": "p90", "p99": "p99"}

WIDEST = 10.0
"""A range that reaches further from its quantile, in times, says nothing yet."""


def sentence(quantiles: Quantiles, uncertainty: float = 0.0) -> str:
    """Return ``half of the calls within 38 us, 99 % within 61 us``; '' where nothing is known.

    Quantiles within the uncertainty of the probes' own cost, in s, are told as ``under 0.25 us``.
    """
    if not quantiles.get("p50"):
        return ""
    told = f"half of the calls {_bound(quantiles, 'p50', uncertainty)}"
    tail = next((name for name in ("p99", "p90") if quantiles.get(name)), None)
    return told if tail is None else f"{told}, {tail[1:]} % {_bound(quantiles, tail, uncertainty)}"


def _bound(quantiles: Quantiles, name: str, uncertainty: float) -> str:
    told = seconds(quantiles, name, uncertainty)
    return f"under {told[1:]}" if told.startswith("<") else f"within {told}"


def normal(quantiles: Quantiles) -> str:
    """Return ``median 35-41 us, p99 55-68 us``; '' while no range is known."""
    known = [f"{WORDS[name]} {span}" for name in ("p50", "p99") if (span := normal_range(quantiles, name))]
    return ", ".join(known)


def normal_range(quantiles: Quantiles, name: str) -> str:
    """Return the range in which windows of an unchanged program stay, '' while it is not known."""
    each = quantiles.get(name)
    if not each or each.get("low") is None or each.get("high") is None:
        return ""
    if each["high"] > WIDEST * each["seconds"] or WIDEST * each["low"] < each["seconds"]:
        return ""
    return duration_range(float(each["low"]), float(each["high"]))


def seconds(quantiles: Quantiles, name: str, uncertainty: float = 0.0) -> str:
    """Return a quantile in three digits; ``-`` where it is not known, ``<0.25 us`` within the uncertainty in s.

    Where the median is such a bound, so is a quantile below that: the median is never shown above it.
    """
    each = quantiles.get(name)
    if not each:
        return "-"
    value = float(each["seconds"])
    median = float((quantiles.get("p50") or each)["seconds"])
    least = uncertainty + median if median < uncertainty else uncertainty
    return f"<{three_digits(value + uncertainty)}" if value < least else three_digits(value)


def uncertainty_of(entry: Mapping[str, Any]) -> float:
    """Return how well the probes' own cost in the durations of a function is known, in s; 0: nothing was subtracted."""
    return float(entry.get("uncertainty_seconds") or 0.0)


def present(entry: Mapping[str, Any]) -> Quantiles:
    """Return how long calls take now: by the newest windows, or by all where nothing is asserted yet."""
    return entry.get("observed") or entry.get("quantiles") or {}


def asserted(entry: Mapping[str, Any]) -> Quantiles:
    """Return how long calls usually take."""
    return entry.get("quantiles") or {}
