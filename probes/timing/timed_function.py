"""One function under watch, and what its hits cost."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from specmine.model.batch import Prices, Watch
from specmine.model.function import Function
from specmine.model.observation import Kind
from specmine.probes.calibration.cold_cache import nested_factor, price_factor
from specmine.probes.symbols.modules import Module


@dataclass(slots=True, eq=False)
class Window:
    """Counters at the start of a window."""

    start_ns: int
    calls: int
    timed: int
    inner: int
    nested_ns: int
    unlearnt: int
    watched_ns: int
    histogram: NDArray[np.uint64]


@dataclass(slots=True, eq=False)
class TimedFunction:
    """One function under watch, with its slot in the kernel's arrays."""

    function: Function
    module: Module
    watch: Watch
    slot: int
    cookies: tuple[int, ...] = ()
    """Of this attachment and the one before: slot and generation, without the flags of a link."""
    lifetime: str = ""
    """The lifetime that is watched now."""
    site: int = 0
    """File offset of the probe."""
    stepped: bool = False
    ready: bool = False
    """The site is known and the gate has let it pass."""
    by_site: bool = False
    """Returns are timed by ordinary probes at return sites, not by replacing return addresses."""
    isolated: bool = False
    """Probes within its calls spoil its durations: it is timed while they are off."""
    spoilt: int = 0
    """Windows thrown away for that."""
    unclear: int = 0
    """Windows thrown away since calls of a recursion began where no return site was probed."""
    coldness: float = 1.0
    """What its handlers take here on average over what they take in a loop (see coldness.py): tells their price."""
    typical: float = 1.0
    """The same by the geometric mean: tells what they leave in most durations."""
    together: bool = False
    """They cannot be taken off fast enough: what is measured beside them is kept, with its uncertainty."""
    stepped_returns: bool = False
    """Some return site is single-stepped."""
    site_links: set[int] = field(default_factory=set)
    links: dict[int, int] = field(default_factory=dict)
    """Link number -> pid, 0 for all."""
    on_ns: int = 0
    """Since when the probes are on, 0 while they are off."""
    watched_ns: int = 0
    """How long they were on before that."""
    next_on_ns: int = 0
    off_at_ns: int = 0
    rotate_ns: int = 0
    look_ns: int = 0
    """When its traps are to be held against its calls again."""
    limited: bool = False
    """The kernel's bucket ran empty since the last activity."""
    window: Window | None = None
    paths: dict[int, NDArray[np.uint64]] = field(default_factory=dict)
    """Kind PATH: durations of the open window by path id."""
    told: tuple[int, int, int, int] = (0, 0, 0, 0)
    """hits, calls, timed, watched_ns at the last activity."""
    felt: tuple[int, int, int] = (0, 0, 0)
    """Handlers measured, the ns that they took, and the buckets of those, at the last look at them."""
    compared_ns: int = 0
    """When its code is to be compared with the file again."""
    filled_ns: int = 0
    """When the bucket was last poured into."""

    @property
    def sampled(self) -> bool:
        """True if some of its calls are timed and the others only counted."""
        return self.watch.timed_share < 1 and not self.by_site and not self.function.unsampled

    def watched_until(self, now_ns: int) -> int:
        """Return how long the probes were on in all, ns."""
        return self.watched_ns + (now_ns - self.on_ns if self.on_ns else 0)

    def switch_off(self, now_ns: int) -> None:
        """Note that the probes are off."""
        self.watched_ns = self.watched_until(now_ns)
        self.on_ns = 0


def hit_costs_ns(w: TimedFunction, prices: Prices) -> tuple[int, int]:
    """Return what a hit at the function's entry, and at its return, adds to the durations of calls around it, ns.

    Walks excepted: the programs measure those themselves.
    """
    entry, back = {
        Kind.COUNT: (prices.count_mean_ns, 0.0),
        Kind.TIME: (prices.entry_mean_ns, prices.return_mean_ns),
        Kind.PATH: (prices.entry_mean_ns, prices.return_mean_ns),
    }[w.watch.kind]
    if w.by_site and w.watch.kind is not Kind.COUNT:
        entry, back = prices.site_entry_mean_ns, prices.site_return_mean_ns
    stepped, factor = prices.stepped_mean_ns, nested_factor(w.typical, w.watch.kind)
    return round(entry * factor + stepped * w.stepped), round(back * factor + stepped * w.stepped_returns)


def cost_ns(w: TimedFunction, hits: int, timed: int, prices: Prices) -> float:
    """Predict what hits cost the program: whole timed calls by their price, the rest as entries."""
    entries = max(timed, hits - timed)
    price = {Kind.COUNT: prices.count_ns, Kind.TIME: prices.time_ns, Kind.PATH: prices.path_ns}[w.watch.kind]
    cost = timed * price + max(0, entries - timed) * max(prices.count_ns, prices.untimed_ns * w.sampled)
    cost *= price_factor(w.coldness, w.watch.kind)
    cost += entries * prices.stepped_ns if w.stepped else 0.0
    return cost + (timed * prices.stepped_ns if w.stepped_returns else 0.0)
