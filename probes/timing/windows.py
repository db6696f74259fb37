"""Cut what the kernel counts at a function into observations and activity."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from specmine.model.batch import Activity, Prices
from specmine.model.buckets import BUCKETS
from specmine.model.call_path import CallPath
from specmine.model.histogram import quantiles
from specmine.model.observation import Kind, Observation, PathHistogram
from specmine.model.split import Split, added, split_or_unbroken
from specmine.probes.calibration.cold_cache import (
    STEP_ERROR,
    bias_factor,
    coldness,
    coldness_for,
    geometric_mean,
    price_factor,
)
from specmine.probes.kernel.maps import HashMap
from specmine.probes.kernel.structs import MAX_SLOTS
from specmine.probes.symbols.symbolizer import Symbolizer

from .isolation import CORRECTION_ERROR, Isolation, is_perturbed
from .off_cpu import OffCpuCounts, by_path, split_of
from .reservoir import CallReservoir
from .timed_function import TimedFunction, Window, cost_ns

NAMES_PATIENCE_NS = 5_000_000_000
"""A window whose paths have no names after so long is told with incomplete paths."""
TELL_NS = 1_000_000_000
"""What goes on without a change is told so often."""
SPOILT_MOST = 5
"""Windows thrown away before what cannot be had better is kept, with its uncertainty: a recursion spoils itself."""
_KEPT = 0.99
"""What one report of activity leaves of the weight of those before."""
_IDENTITY = 0xFFFF_00FF
"""Slot and generation of a cookie, without the flags of the link."""


@dataclass(slots=True, eq=False)
class _Unnamed:
    """A finished window whose paths have no names yet."""

    watched: TimedFunction
    since_ns: int
    observation: Observation
    paths: dict[int, NDArray[np.uint64]]
    splits: dict[int, Split]
    """Of the paths whose calls left their CPU."""


class Windows:
    """The open and the finished windows of all watched functions."""

    def __init__(
        self,
        counters: NDArray[np.void],
        histogram: NDArray[np.uint64],
        path_histogram: HashMap,
        naming: Symbolizer,
        prices: Prices,
        isolation: Isolation,
        call_samples: CallReservoir,
        absences: OffCpuCounts | None = None,
    ) -> None:
        """Read from the kernel's counters; cut nothing yet. Without ``absences`` calls are not split."""
        self._counters = counters
        self._histogram = histogram.reshape(MAX_SLOTS, BUCKETS)
        self._path_histogram, self._symbolizer, self.prices = path_histogram, naming, prices
        self._isolation, self._absences = isolation, absences
        self.call_samples = call_samples
        self._unnamed: list[_Unnamed] = []
        self.overhead_ns = 0.0
        """Predicted cost of all hits so far."""
        self._charged_ns = self._in_loop_ns = 0.0
        self.perturbed = 0
        """Timed calls thrown away since probes within them spoiled their durations."""

    @property
    def factor(self) -> float:
        """What hits have cost lately, relative to calibration's loop."""
        return self._charged_ns / self._in_loop_ns if self._in_loop_ns else 1.0

    def begin(self, w: TimedFunction, now_ns: int) -> None:
        """Open a window now."""
        self._begin(w, self._now(w, now_ns))

    def _now(self, w: TimedFunction, now_ns: int) -> Window:
        """Return the counters as they are, at which one window ends and the next begins: no call falls between."""
        c = self._counters[w.slot]
        return Window(
            start_ns=now_ns,
            calls=int(c["calls"]),
            timed=int(c["timed"]),
            inner=int(c["inner"]),
            nested_ns=int(c["nested_ns"]),
            unlearnt=int(c["unlearnt"]),
            watched_ns=w.watched_until(now_ns),
            histogram=self._histogram[w.slot].copy(),
        )

    def _begin(self, w: TimedFunction, window: Window) -> None:
        w.window = window
        w.paths = {}
        self.call_samples.begin(w.slot, w.window.timed)
        if self._absences is not None:
            self._absences.take(w.slot)

    def timed(self, w: TimedFunction) -> int:
        """Return the number of timed calls in the open window."""
        if w.window is None:
            return 0
        if w.watch.kind is Kind.PATH:
            return sum(int(c.sum()) for c in w.paths.values())
        return int(self._counters[w.slot]["timed"]) - w.window.timed

    def drain(self, everything: Iterable[TimedFunction]) -> None:
        """Take out of the kernel what it keeps in hashes: durations by path, and calls that left their CPU."""
        every = tuple(everything)
        self._drain_paths(every)
        if self._absences is not None:
            self._absences.drain({c: w.slot for w in every if w.window is not None for c in w.cookies}, _IDENTITY)

    def _drain_paths(self, everything: Iterable[TimedFunction]) -> None:
        by_identity = {c: w for w in everything if w.watch.kind is Kind.PATH for c in w.cookies}
        if not by_identity:
            return
        keys, values = self._path_histogram.drain()
        for key, count in zip(keys, values, strict=True):
            w = by_identity.get(int(key["cookie"]) & _IDENTITY)
            if w is not None and w.window is not None:
                counts = w.paths.setdefault(int(key["path"]), np.zeros(BUCKETS, np.uint64))
                counts[int(key["bucket"])] += np.uint64(count)

    def cut_if_due(self, w: TimedFunction, now_ns: int) -> None:
        """Cut the window if it holds enough calls, or is old enough and holds some."""
        if w.window is None or w.watch.kind is Kind.COUNT:
            return
        timed, age = self.timed(w), now_ns - w.window.start_ns
        full = timed >= w.watch.window_calls
        old = age >= w.watch.window_ns and timed >= w.watch.minimum_calls
        if full or old or (age >= w.watch.limit_ns and timed):
            self.cut(w, now_ns)

    def cut_rest(self, w: TimedFunction, now_ns: int) -> None:
        """Cut the window of a function that is no longer watched, if it holds enough."""
        if w.window is not None and w.watch.kind is not Kind.COUNT and self.timed(w) >= w.watch.minimum_calls:
            self.cut(w, now_ns)

    def cut(self, w: TimedFunction, now_ns: int) -> None:
        """Make the open window an observation and open the next."""
        window = w.window
        if window is None or now_ns <= window.start_ns:
            return
        following = self._now(w, now_ns)
        calls, timed = following.calls - window.calls, following.timed - window.timed
        by_path = w.watch.kind is Kind.PATH
        counts = _summed(w.paths.values()) if by_path else following.histogram - window.histogram
        nested_ns = (following.nested_ns - window.nested_ns) / max(1, timed)
        if w.by_site and following.inner > window.inner and following.unlearnt > window.unlearnt:
            # calls within one whose return site is not probed were taken for outermost
            self.perturbed += timed
            w.unclear += 1
            self._begin(w, following)
            return
        self._feel(w)
        bias_ns, known_ns = self._bias_ns(w)
        spoilt = is_perturbed(nested_ns, quantiles(counts, (0.5,))[0], known_ns)
        if spoilt and w.spoilt < SPOILT_MOST and not w.together and self._isolation.inside(w.slot):
            self.perturbed += timed
            w.isolated, w.spoilt = True, w.spoilt + 1
            self._begin(w, following)
            return
        split, splits = self._split(w, counts)
        observation = Observation(
            function=w.function.key,
            lifetime=w.lifetime,
            kind=w.watch.kind,
            start_ns=window.start_ns,
            end_ns=now_ns,
            counts=counts,
            calls=max(calls, int(counts.sum())),  # a call may have begun in the window before
            watched_ns=following.watched_ns - window.watched_ns,
            inner=following.inner - window.inner,
            censored=0 if w.on_ns or w.sampled else max(0, calls - timed),
            bias_ns=bias_ns,
            uncertainty_ns=math.hypot(known_ns, CORRECTION_ERROR * nested_ns),
            split=split,
        )
        self._unnamed.append(_Unnamed(w, now_ns, observation, w.paths, splits))
        self.call_samples.take(w, timed, calls, bias_ns)
        self._begin(w, following)

    def _split(self, w: TimedFunction, counts: NDArray[np.uint64]) -> tuple[Split | None, dict[int, Split]]:
        """Return what the calls of the open window did of their time, in all and by path id."""
        if self._absences is None:
            return None, {}
        rows = self._absences.take(w.slot)
        splits = {path: split_of(w.paths[path], own) for path, own in by_path(rows).items() if path in w.paths}
        return split_of(counts, rows), splits

    def _bias_ns(self, w: TimedFunction) -> tuple[float, float]:
        """Return what the function's own probes add to its durations, and how well that is known."""
        loop_ns = self.prices.site_bias_ns if w.by_site else self.prices.bias_ns
        factor, unsure = bias_factor(w.typical, by_site=w.by_site)
        step_ns = self.prices.stepped_bias_ns if w.stepped else 0.0
        own_ns = loop_ns * factor
        return own_ns + step_ns, self.prices.bias_uncertainty * own_ns + unsure * loop_ns + STEP_ERROR * step_ns

    def _feel(self, w: TimedFunction) -> None:
        """Take in how long the function's handlers took since the last time."""
        c = self._counters[w.slot]
        felt = int(c["paced"]), int(c["pace_ns"]), int(c["pace_log"])
        handlers, took_ns, buckets = (now - before for now, before in zip(felt, w.felt, strict=True))
        w.felt = felt
        loop_ns = self.prices.site_handler_ns if w.by_site else self.prices.handler_ns
        if w.watch.kind is Kind.PATH:
            loop_ns += self.prices.path_handler_ns - self.prices.handler_ns
        if handlers > 0:
            w.coldness = coldness(w.coldness, took_ns, handlers, loop_ns)
            w.typical = coldness(w.typical, handlers * geometric_mean(handlers, buckets), handlers, loop_ns)

    def finished(self, now_ns: int) -> tuple[Observation, ...]:
        """Return the observations whose paths have names by now."""
        done: list[Observation] = []
        waiting: list[_Unnamed] = []
        for u in self._unnamed:
            paths = self._named(u, give_up=now_ns - u.since_ns > NAMES_PATIENCE_NS)
            if paths is None:
                waiting.append(u)
            else:
                done.append(replace(u.observation, paths=paths))
        self._unnamed = waiting
        return tuple(done)

    def _named(self, u: _Unnamed, *, give_up: bool) -> tuple[PathHistogram, ...] | None:
        merged: dict[CallPath, NDArray[np.uint64]] = {}
        numbers: dict[CallPath, list[int]] = {}
        for number, counts in u.paths.items():
            path = self._symbolizer.call_path(number, u.watched.function)
            if path is None:
                if not give_up:
                    return None
                path = CallPath((u.watched.function.frame,), complete=False)
            merged[path] = merged[path] + counts if path in merged else counts
            numbers.setdefault(path, []).append(number)
        order = sorted(merged, key=lambda p: (-int(merged[p].sum()), p))
        return tuple(PathHistogram(path=path, counts=merged[path], split=_split_of(u, numbers[path])) for path in order)

    def start_telling(self, w: TimedFunction) -> None:
        """Begin to account a function's hits now."""
        c = self._counters[w.slot]
        w.told = (int(c["hits"]), int(c["calls"]), int(c["timed"]), 0)
        w.felt = int(c["paced"]), int(c["pace_ns"]), int(c["pace_log"])
        w.coldness = coldness_for(self.factor)
        w.typical = (1 + w.coldness) / 2

    def activity(self, w: TimedFunction, now_ns: int) -> Activity | None:
        """Return what the function's probes did since the last call, None if they were off."""
        c = self._counters[w.slot]
        now = (int(c["hits"]), int(c["calls"]), int(c["timed"]), w.watched_until(now_ns))
        passed = now[3] - w.told[3]
        news = w.limited or not w.on_ns or w.watch.kind is Kind.COUNT
        if (passed < TELL_NS and not news) or (passed == 0 and not w.limited):
            return None
        hits, calls, timed, watched_ns = (a - b for a, b in zip(now, w.told, strict=True))
        self._feel(w)
        cost = cost_ns(w, hits, timed, self.prices)
        self.overhead_ns += cost
        self._charged_ns = _KEPT * self._charged_ns + cost
        self._in_loop_ns = _KEPT * self._in_loop_ns + cost / price_factor(w.coldness, w.watch.kind)
        limited, w.told, w.limited = w.limited, now, False
        return Activity(
            function=w.function.key,
            kind=w.watch.kind,
            watched_ns=watched_ns,
            hits=hits,
            calls=calls,
            cost_ns=cost,
            limited=limited,
        )


def _split_of(u: _Unnamed, numbers: list[int]) -> Split | None:
    """Return the split of a path from those of its ids, None if none of its calls left the CPU."""
    if not any(number in u.splits for number in numbers):
        return None
    return added([split_or_unbroken(u.paths[number], u.splits.get(number)) for number in numbers])


def _summed(counts: Iterable[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    total = np.zeros(BUCKETS, np.uint64)
    for one in counts:
        total += one
    return total
