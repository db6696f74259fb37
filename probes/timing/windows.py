"""Cut what the kernel counts at a function into observations and activity."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from specmine.model.batch import Prices
from specmine.model.buckets import BUCKETS
from specmine.model.call_path import CallPath
from specmine.model.histogram import Histogram
from specmine.model.inside.parts import Inside
from specmine.model.observation import Observation, PathHistogram
from specmine.model.split import Split, sum_of_splits, unbroken
from specmine.probes.kernel.maps import HashMap
from specmine.probes.kernel.structs import MAX_SLOTS
from specmine.probes.symbols.symbolizer import Symbolizer

from .function.costs import bias_ns, measure_handlers, timed_call_ns
from .function.timed_function import TimedFunction
from .function.window import Window
from .hit_watch import HitWatch
from .inside import InsideMeter
from .isolation import CORRECTION_ERROR, Isolation, is_perturbed
from .off_cpu import blocked_calls, by_path, split_of
from .reservoir import CallReservoir
from .return_probes import IDENTITY
from .slot_rows import SlotRows
from .waits import WaitMeter

NAMES_PATIENCE_NS = 5_000_000_000
"""A window whose paths have no names after so long is reported with incomplete paths."""
LEAST_REST = 20
"""Calls of an open window that are kept when its function is given up: what follows may complete it."""
CONTAMINATED_MOST = 5
"""Windows discarded before one is kept with its uncertainty: a recursion contaminates itself."""


@dataclass(slots=True, eq=False)
class _Unnamed:
    """A finished window whose paths have no names yet."""

    timed_function: TimedFunction
    since_ns: int
    observation: Observation
    paths: dict[int, NDArray[np.uint64]]
    splits: dict[int, Split]
    """Of the paths whose calls left their CPU."""


class Windows:
    """The open and the finished windows of all timed functions."""

    def __init__(
        self,
        histogram: NDArray[np.uint64],
        path_histogram: HashMap,
        symbolizer: Symbolizer,
        prices: Prices,
        isolation: Isolation,
        call_samples: CallReservoir,
        inside: InsideMeter,
        off_cpu: SlotRows | None = None,
        waits: WaitMeter | None = None,
        hits: HitWatch | None = None,
    ) -> None:
        """Cut nothing yet. Without ``off_cpu`` calls are not split, without ``waits`` none is followed.

        Without ``hits`` the kernel's hashes are read whether or not anything was hit.
        """
        self._waits, self._hits = waits, hits
        self._histogram = histogram.reshape(MAX_SLOTS, BUCKETS)
        self._path_histogram, self._symbolizer, self._prices = path_histogram, symbolizer, prices
        self._isolation, self._inside, self._off_cpu = isolation, inside, off_cpu
        self.call_samples = call_samples
        self._unnamed: list[_Unnamed] = []
        self.perturbed = 0
        """Timed calls discarded since probes inside them contaminated their durations."""
        self.delivered_ns = 0.0
        """Predicted cost of the calls whose durations are in observations."""

    def leave(self, w: TimedFunction) -> None:
        """Forget what is held of a slot whose function is given up: others get it in turn, all of them in time."""
        self._inside.leave(w.slot.number)
        if self._off_cpu is not None:
            self._off_cpu.take(w.slot.number)

    def forget(self, functions: Collection[str]) -> None:
        """Forget what is held of functions whose files were closed."""
        self._inside.forget(functions)

    def reprice(self, prices: Prices) -> None:
        """Correct durations by new biases."""
        self._prices = prices

    def begin(self, w: TimedFunction, now_ns: int) -> None:
        """Open a window now."""
        self._begin(w, self._snapshot(w, now_ns))

    def _snapshot(self, w: TimedFunction, now_ns: int) -> Window:
        """Return the counters as they are, at which one window ends and the next begins: no call falls between."""
        return Window(
            start_ns=now_ns,
            calls=w.slot.count("calls"),
            timed=w.slot.count("timed"),
            stepped=w.slot.count("stepped"),
            inner=w.slot.count("inner"),
            nested_ns=w.slot.count("nested_ns"),
            unlearnt=w.slot.count("unlearnt"),
            censored=w.open_calls.censored,
            watched_ns=w.attachment.watched_until(now_ns),
            histogram=self._histogram[w.slot.number].copy(),
        )

    def _begin(self, w: TimedFunction, window: Window) -> None:
        w.open_window(window)
        self.call_samples.begin(w.slot.number, window.timed)
        self._inside.begin(w.slot.number)
        if self._off_cpu is not None:
            self._off_cpu.take(w.slot.number)

    def coming(self, w: TimedFunction, now_ns: int) -> None:
        """Take in that a function's probes were asked for."""
        if self._waits is not None:
            self._waits.coming(w, now_ns)

    def on(self, w: TimedFunction) -> None:
        """Take in that a function's probes are on now."""
        self._inside.changed(w, on=True)

    def leaving(self, w: TimedFunction, now_ns: int) -> None:
        """Take in that a function's probes are about to be detached."""
        self._inside.changed(w, on=False)
        if self._waits is not None:
            self._waits.leaving(w, now_ns)

    def is_followed(self, w: TimedFunction) -> bool:
        """Tell whether the waits of a function's calls are followed now."""
        return self._waits is not None and self._waits.follows(w)

    def expect(self, w: TimedFunction) -> None:
        """Take in that callees share the on-phase of a function: their probes are asked for, its own come next."""
        self._inside.expect(w)

    def timed(self, w: TimedFunction) -> int:
        """Return the number of timed calls in the open window."""
        if w.window is not None and w.probe.by_path:
            return w.window.timed_by_path
        return w.in_window("timed")

    def drain(self, functions: Iterable[TimedFunction], now_ns: int) -> None:
        """Take what the kernel holds in hashes: durations by path, what was called, what left its CPU."""
        functions = tuple(functions)
        hit = self._hits is None or self._hits.take_news(now_ns)
        self._inside.drain(functions, hit=hit)
        if not hit:
            return
        self._drain_paths(functions)
        if self._off_cpu is not None:
            slots = {c: w.slot.number for w in functions if w.window is not None for c in w.attachment.cookies}
            self._off_cpu.drain(slots, IDENTITY)

    def _drain_paths(self, functions: Iterable[TimedFunction]) -> None:
        by_identity = {c: w for w in functions if w.probe.by_path for c in w.attachment.cookies}
        if not by_identity:
            return
        keys, values = self._path_histogram.drain()
        columns = (keys[name].tolist() for name in ("cookie", "path", "bucket"))
        for cookie, path, bucket, calls in zip(*columns, values.tolist(), strict=True):
            w = by_identity.get(cookie & IDENTITY)
            if w is not None and w.window is not None:
                w.window.add(path, bucket, calls)
                if self._waits is not None:
                    self._waits.add_path(cookie & IDENTITY, bucket, calls)

    def cut_if_due(self, w: TimedFunction, now_ns: int) -> bool:
        """Cut the window if it holds enough calls, or is old enough and holds some; tell whether it was cut."""
        if w.window is None or not w.probe.timed:
            return False
        timed, age = self.timed(w), now_ns - w.window.start_ns
        full = timed >= w.watch.window_calls
        old = age >= w.watch.window_ns and timed >= w.watch.minimum_calls
        due = full or old or (age >= w.watch.limit_ns and timed > 0)
        if due:
            self.cut(w, now_ns)
        return due

    def cut_rest(self, w: TimedFunction, now_ns: int, *, last: bool = False) -> None:
        """Cut the window of a function whose probes go, if it holds enough; less is enough for its ``last`` one."""
        enough = min(w.watch.minimum_calls, LEAST_REST) if last else w.watch.minimum_calls
        if w.window is not None and w.probe.timed and self.timed(w) >= enough:
            self.cut(w, now_ns)

    def renew(self, w: TimedFunction, now_ns: int, functions: Iterable[TimedFunction]) -> None:
        """Begin a window anew: calls before and after do not mix."""
        if w.window is None:
            return
        self.drain(functions, now_ns)
        self.cut_rest(w, now_ns, last=True)
        if self.timed(w):
            self.begin(w, now_ns)

    def cut(self, w: TimedFunction, now_ns: int) -> None:
        """Make the open window an observation and open the next.

        Of calls that are looked into, and whose durations probes inside contaminate, only what they say of callees is
        kept.
        """
        window = w.window
        if window is None or now_ns <= window.start_ns:
            return
        watched = w.attachment.on_ns or w.sampled
        if not watched:
            w.open_calls.give_up_all()
        after = self._snapshot(w, now_ns)
        calls, timed = after.calls - window.calls, after.timed - window.timed
        by_path = w.probe.by_path
        counts = _sum(window.paths.values()) if by_path else after.histogram - window.histogram
        histogram = Histogram.from_dense(counts)
        nested_ns = (after.nested_ns - window.nested_ns) / max(1, timed)
        if w.by_site and after.inner > window.inner and after.unlearnt > window.unlearnt:
            # calls within one whose return site is not probed were taken for outermost
            self.perturbed += timed
            w.discard_unclear()
            self._begin(w, after)
            return
        measure_handlers(w, self._prices)
        own_ns, known_ns = bias_ns(w, self._prices)
        split, splits, blocked = self._split(w, window, histogram)
        self._inside.take(w, lambda callee: bias_ns(callee, self._prices)[0])
        looked_into = w.shares and w.isolated
        if looked_into or (is_perturbed(nested_ns, histogram.quantile(0.5), known_ns) and self._may_retry(w)):
            self.perturbed += timed
            if not looked_into:
                w.discard_contaminated()
            self._begin(w, after)
            return
        steps = min(timed, after.stepped - window.stepped)
        self.delivered_ns += timed * timed_call_ns(w, self._prices) + steps * self._prices.stepped_ns
        observation = Observation(
            function=w.function.key,
            lifetime=w.lifetime,
            kind=w.watch.kind,
            start_ns=window.start_ns,
            end_ns=now_ns,
            histogram=histogram,
            calls=max(calls, histogram.total),  # a call may have begun in the window before
            watched_ns=after.watched_ns - window.watched_ns,
            inner=after.inner - window.inner,
            censored=max(after.censored - window.censored, 0 if watched else calls - timed),
            bias_ns=own_ns,
            uncertainty_ns=math.hypot(known_ns, CORRECTION_ERROR * nested_ns),
            split=split,
            inside=self._inside.deliver(w) or blocked,
        )
        w.take_owed()
        self._unnamed.append(_Unnamed(w, now_ns, observation, window.paths, splits))
        self.call_samples.take(w, timed, calls, own_ns)
        self._begin(w, after)

    def _may_retry(self, w: TimedFunction) -> bool:
        """Tell whether a contaminated window can be had better without the probes inside the calls."""
        return w.contaminated < CONTAMINATED_MOST and w.may_isolate and bool(self._isolation.inside(w.slot.number))

    def _split(
        self, w: TimedFunction, window: Window, histogram: Histogram
    ) -> tuple[Split | None, dict[int, Split], tuple[Inside, ...]]:
        """Return what the calls of the window did of their time, in all and by path id, and which were blocked."""
        if self._off_cpu is None:
            return None, {}, ()
        rows = self._off_cpu.take(w.slot.number)
        splits = {
            path: split_of(Histogram.from_dense(window.paths[path]), of_path)
            for path, of_path in (by_path(rows) if window.paths else {}).items()
            if path in window.paths
        }
        return split_of(histogram, rows), splits, blocked_calls(histogram, rows)

    def finished(self, now_ns: int) -> tuple[Observation, ...]:
        """Return the observations whose paths have names by now."""
        done: list[Observation] = []
        waiting: list[_Unnamed] = []
        for unnamed in self._unnamed:
            paths = self._named(unnamed, give_up=now_ns - unnamed.since_ns > NAMES_PATIENCE_NS)
            if paths is None:
                waiting.append(unnamed)
            else:
                done.append(replace(unnamed.observation, paths=paths))
        self._unnamed = waiting
        return tuple(done)

    def _named(self, u: _Unnamed, *, give_up: bool) -> tuple[PathHistogram, ...] | None:
        merged: dict[CallPath, NDArray[np.uint64]] = {}
        numbers: dict[CallPath, list[int]] = {}
        for number, counts in u.paths.items():
            path = self._symbolizer.call_path(number, u.timed_function.function)
            if path is None:
                if not give_up:
                    return None
                path = CallPath((u.timed_function.function.frame,), complete=False)
            merged[path] = merged[path] + counts if path in merged else counts
            numbers.setdefault(path, []).append(number)
        order = sorted(merged, key=lambda p: (-int(merged[p].sum()), p))
        return tuple(
            PathHistogram(path=path, histogram=Histogram.from_dense(merged[path]), split=_split_of(u, numbers[path]))
            for path in order
        )


def _split_of(u: _Unnamed, numbers: list[int]) -> Split | None:
    """Return the split of a path from those of its ids, None if none of its calls left the CPU."""
    if not any(number in u.splits for number in numbers):
        return None
    return sum_of_splits(
        [u.splits.get(number) or unbroken(Histogram.from_dense(u.paths[number])) for number in numbers]
    )


def _sum(counts: Iterable[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    return sum(counts, np.zeros(BUCKETS, np.uint64))
