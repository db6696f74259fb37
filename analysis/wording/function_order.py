"""In which order functions are listed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from specmine.analysis.documents import Entry

from .levels import present
from .states import change_of, rank_of

MOSTLY = 0.5
"""Share of a function's time that waits for work from which nobody could make it shorter."""
SORTS: dict[str, Callable[[Entry], Any]] = {
    "state": lambda each: (rank_of(each), change_of(each) == "faster", not present(each), *by_work(each), -_rate(each)),
    "time": lambda each: (-_time(each), -_rate(each)),
    "calls": lambda each: (-_rate(each), -int(each.get("calls") or 0)),
    "median": lambda each: -_quantile(each, "p50"),
    "p99": lambda each: -_quantile(each, "p99"),
    "name": lambda each: (str(each.get("function")), str(each.get("module"))),
}
"""Orders of the list by name; those by numbers begin with the largest."""


def by_work(entry: Entry) -> tuple[bool, float]:
    """Return a key that begins with what works most: event loops and waits for work come last."""
    idle = float(entry.get("idle_share") or 0.0)
    return idle > MOSTLY, -_time(entry) * (1.0 - idle)


def _time(entry: Entry) -> float:
    return float(entry.get("time_share") or 0.0)


def _rate(entry: Entry) -> float:
    return float(entry.get("rate_per_second") or 0.0)


def _quantile(entry: Entry, name: str) -> float:
    each = present(entry).get(name)
    return float(each["seconds"]) if each else 0.0
