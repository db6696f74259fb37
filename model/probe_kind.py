"""The kinds of probe: one value each, with its programs, price and traps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .batch import Prices
from .observation import Kind


def _nothing(prices: Prices) -> float:
    return 0.0


@dataclass(frozen=True, slots=True)
class Programs:
    """The BPF programs of a probe over one kind of link."""

    link: str
    """session, multi or perf."""
    entry: str
    back: str | None = None
    """At the return; None: there is none, or one program serves both ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeKind:
    """All that differs between one kind of probe and another."""

    kind: Kind
    """Its name in recordings and requests."""
    hits: int
    """Traps of one call: the entry, and the return if it is timed."""
    timed: bool
    """It gives durations, and so observations; else it gives activity only."""
    by_path: bool = False
    """Durations are counted by call path."""
    price_ns: Callable[[Prices], float]
    """Of one call."""
    price_slope: float
    """How the price of a call grows with coldness (see probes/calibration/cold_cache.py)."""
    entry_ns: Callable[[Prices], float]
    """What a hit at the entry adds to the durations of calls around it."""
    return_ns: Callable[[Prices], float] = _nothing
    """The same at the return."""
    extra_handler_ns: Callable[[Prices], float] = _nothing
    """How much longer its return handler takes in calibration's loop than that of a timed call."""
    programs: Mapping[str, Programs]
    """By the kind of link that this host uses for timing."""
    entry_at_site: str = ""
    """BPF program at the entry where returns are timed at return sites; '': returns are not timed."""


COUNTED = ProbeKind(
    kind=Kind.COUNT,
    hits=1,
    timed=False,
    price_ns=lambda prices: prices.count_ns,
    price_slope=1.25,
    entry_ns=lambda prices: prices.count_mean_ns,
    programs={
        "session": Programs("multi", "call_count"),
        "multi": Programs("multi", "call_count"),
        "perf": Programs("perf", "call_count"),
    },
)
TIMED = ProbeKind(
    kind=Kind.TIME,
    hits=2,
    timed=True,
    price_ns=lambda prices: prices.time_ns,
    price_slope=1.25,
    entry_ns=lambda prices: prices.entry_mean_ns,
    return_ns=lambda prices: prices.return_mean_ns,
    programs={
        "session": Programs("session", "call_time_session"),
        "multi": Programs("multi", "call_time_entry", "call_time_return"),
        "perf": Programs("perf", "call_time_entry", "call_time_return"),
    },
    entry_at_site="call_time_site",
)
TIMED_BY_PATH = ProbeKind(
    kind=Kind.PATH,
    hits=2,
    timed=True,
    by_path=True,
    price_ns=lambda prices: prices.path_ns,
    price_slope=1.2,
    entry_ns=lambda prices: prices.entry_mean_ns,
    return_ns=lambda prices: prices.return_mean_ns,
    extra_handler_ns=lambda prices: prices.path_handler_ns - prices.handler_ns,
    programs={
        "session": Programs("session", "call_path_session"),
        "multi": Programs("multi", "call_path_entry", "call_path_return"),
        "perf": Programs("perf", "call_path_entry", "call_path_return"),
    },
    entry_at_site="call_path_site",
)
PROBE_KINDS: Mapping[Kind, ProbeKind] = {probe.kind: probe for probe in (COUNTED, TIMED, TIMED_BY_PATH)}
