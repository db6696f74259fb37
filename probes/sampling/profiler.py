"""Where wall-clock time goes: samples of the CPU clock and waits, summed per function."""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from specmine.model.batch import HotSample
from specmine.model.function import Function
from specmine.probes.kernel.links import Links
from specmine.probes.kernel.maps import HashMap
from specmine.probes.kernel.structs import SWITCHES_A_TIMED
from specmine.probes.symbols.modules import Modules
from specmine.probes.symbols.return_addresses import ReturnAddresses
from specmine.probes.symbols.symbolizer import RUNTIME, Symbolizer

from .switches import SwitchTracepoint

SUM_NS = 500_000_000
"""Samples are summed over so long before they are told."""
PATIENCE_NS = 3_000_000_000
"""A sum whose names are still outstanding after so long is told without them."""
WAITS = 20
"""Waits followed in a second on average: a stack walk costs more than a timed call."""
_FIRST_WAITS, _FIRST_SUMS = 50, 4
"""Waits followed in each of the first sums."""
_QUIET = 0.125
_LOOP_SHARE = 0.9
NO_FUNCTION = ""
"""Stands for what a JIT made."""
SELDOM = 20
"""Waits are followed at least in one sum of so many."""
_IDLE_NS = 50_000_000
"""A main loop's wait for work lasts longer than this on average; waits for a lock that servers share do not."""


@dataclass(slots=True)
class _Sum:
    """What was found for one function."""

    samples: int = 0
    cpu_samples: int = 0
    busy_samples: int = 0
    on_cpu: float = 0.0
    off_cpu: float = 0.0
    inclusive: float = 0.0
    callers: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    callees: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    waits: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    """Waiting time with the function innermost, by path."""
    wait_count: int = 0


class Profiler:
    """Samples while asked to."""

    def __init__(
        self,
        links: Links,
        naming: Symbolizer,
        samples: HashMap,
        waits: HashMap,
        marks: NDArray[np.uint64],
        settings: NDArray[np.void],
        switches: NDArray[np.void],
        returns: ReturnAddresses | None = None,
    ) -> None:
        """Sample nothing yet; ``returns`` takes in where the calls on sampled stacks return to."""
        self._returns = returns
        self._links, self._symbolizer = links, naming
        self._samples, self._waits = samples, waits
        self._settings, self._switches = settings, switches
        self._clock: list[int] = []
        self.tracepoint = SwitchTracepoint(links, waits, marks, switches)
        self._follows = False
        """The tracepoint is on for this sum."""
        self._hertz, self._sample_ns, self._most_waits = 0, 0.0, 0
        self._due_ns = 0
        self._every, self._one_in, self._turn, self._sums = 8, 1, 0, 0
        self._before = switches[0].copy()
        """Of the switches, at the start of this sum."""
        self._open: list[tuple[int, NDArray[np.void], NDArray[np.void]]] = []
        self.sampled = 0
        """Stacks walked: samples of the clock, each a trap of its own in the thread that it hit, and waits."""

    def set_rate(self, hertz: int, now_ns: int, *, sample_ns: float, waits: int = WAITS) -> None:
        """Sample at this rate per busy CPU, for so much a sample, and follow so many waits a second; 0 stops."""
        if hertz == self._hertz:
            return
        if self._clock:
            self._end_sum(now_ns)
        self.stop()
        self._hertz, self._sample_ns, self._most_waits = hertz, sample_ns, waits
        if hertz:
            self._samples.drain()
            self.begin(now_ns)

    def begin(self, now_ns: int) -> None:
        """Put the clock and the tracepoint on, for a new sum."""
        self._clock = [self._links.clock(self._hertz)]
        self._begin_sum(now_ns)

    def stop(self) -> None:
        """Take the clock and the tracepoint off."""
        self._take_off()
        self._hertz = 0

    def _take_off(self) -> None:
        for number in self._clock:
            self._links.close(number)
        self._clock = []
        self._follow(on=False)

    def resume(self, now_ns: int) -> None:
        """Begin anew after the holder took everything off, except what was requested before that was known."""
        self._take_off()
        self.tracepoint.resume()
        self._turn = 0
        if self._hertz:
            self._samples.drain()
            self.begin(now_ns)

    def passes_ns(self) -> tuple[float, float]:
        """Return what the switch tracepoint has cost watched programs, and everybody, ns."""
        return self.tracepoint.passes_ns()

    def _begin_sum(self, now_ns: int) -> None:
        """Have the tracepoint on in one sum of so many that it stays cheap."""
        self._due_ns = now_ns + SUM_NS
        self._before = self._switches[0].copy()
        wanted = bool(self._most_waits) and self._turn % self._one_in == 0
        self._turn += 1
        self._follow(on=wanted)
        self._settings["period_ns"][0] = 1_000_000_000 // self._hertz

    def _follow(self, *, on: bool) -> None:
        self._settings["wait_every"][0] = self._every if on else 0
        self.tracepoint.want("profiler", on=on)
        self._follows = on

    def poll(self, now_ns: int) -> tuple[HotSample, ...]:
        """Return the hot_samples whose names are known by now; of ``NO_FUNCTION`` those of code made at run time."""
        if self._hertz and now_ns >= self._due_ns:
            self._end_sum(now_ns)
            self._begin_sum(now_ns)
        told: tuple[HotSample, ...] = ()
        while self._open:
            since, keys, values = self._open[0]
            sums = self._summed(keys, values, give_up=now_ns - since > PATIENCE_NS)
            if sums is None:
                break
            self._open.pop(0)
            told += sums
        return told

    def _end_sum(self, now_ns: int) -> None:
        keys, values = self._samples.drain()
        waiting = keys["waiting"] == 1
        samples, seen = int(values["count"][~waiting].sum()), int(values["count"][waiting].sum())
        self.sampled += samples + round(seen / self._every)
        if self._follows:
            keys, values = self._with_open(keys, values, now_ns)
            self._sums += 1
            self._one_in = self._affordable(samples)
            # each wait that is followed costs a stack walk: follow so few that it stays cheap
            usual = min(_FIRST_WAITS, max(1, round(self._most_waits * SUM_NS * 1e-9 * self._one_in)))
            followed = _FIRST_WAITS if self._sums < _FIRST_SUMS else usual
            # few waits stand for hundreds each, so there may be none by chance; of each two passes one begins a wait
            passed = SWITCHES_A_TIMED * (int(self._switches[0]["own"]) - int(self._before["own"]))
            self._every = max(1, round(max(seen, passed / 2) / followed))
        if len(keys):
            self._open.append((now_ns, keys, values))

    def _with_open(
        self, keys: NDArray[np.void], values: NDArray[np.void], now_ns: int
    ) -> tuple[NDArray[np.void], NDArray[np.void]]:
        """Add the waits that go on, since the last sum at most; those of sums that are not followed are like these."""
        waits, since = self._waits.entries()
        waits, since = waits[since["weight"] > 0], since[since["weight"] > 0]
        if len(waits):
            begun = np.maximum(since["start"], np.uint64(self._due_ns - SUM_NS))
            still = np.clip(now_ns - begun.astype(np.int64), 0, None) * since["weight"]
            more = np.zeros(len(waits), keys.dtype)
            more["path"], more["program"], more["waiting"] = since["path"], since["program"], 1
            extra = np.zeros(len(waits), values.dtype)
            extra["count"], extra["ns"] = since["weight"], still.astype(np.uint64)
            keys, values = np.concatenate([keys, more]), np.concatenate([values, extra])
        for what in ("count", "ns"):
            values[what][keys["waiting"] == 1] *= np.uint64(self._one_in)
        return keys, values

    def _affordable(self, samples: int) -> int:
        """Return in one sum of how many waits may be followed.

        The tracepoint may cost watched programs what the samples of the clock cost them, or would if they were busy for
        an eighth of a CPU, and all others what samples of all CPUs would.
        """
        passed = {name: int(self._switches[0][name]) - int(self._before[name]) for name in ("timed", "ns", "own")}
        if not passed["timed"]:
            return 1
        one = SWITCHES_A_TIMED * passed["ns"] / passed["timed"]
        usual = self._hertz * SUM_NS * 1e-9
        own = one * passed["own"] / (self._sample_ns * max(samples, _QUIET * usual))
        everybody = one * passed["timed"] / (self._sample_ns * usual * (os.cpu_count() or 1))
        return min(SELDOM, max(1, math.ceil(max(own, everybody))))

    def _summed(
        self, keys: NDArray[np.void], values: NDArray[np.void], *, give_up: bool
    ) -> tuple[HotSample, ...] | None:
        sums: dict[str, _Sum] = defaultdict(_Sum)
        pending = False
        columns = (keys["path"], keys["waiting"] != 0, values["count"], values["ns"])
        for path, waiting, count, ns in zip(*(column.tolist() for column in columns), strict=True):
            stack = self._symbolizer.stack(path, exact=True)
            if stack is None:
                pending = True
                continue
            named = [f.key if isinstance(f, Function) else "" for f in stack]
            if RUNTIME in stack[:1]:
                _add_leaf(sums[NO_FUNCTION], path, waiting, count, ns)
            if self._returns is not None:
                self._returns.note_stack(named, self._symbolizer.addresses(path)[0])
            self._add(sums, path, named, waiting, count, ns)
        if pending and not give_up:
            return None
        return tuple(_finding(key, s, sums) for key, s in sorted(sums.items()))

    @staticmethod
    def _add(sums: dict[str, _Sum], path: int, named: list[str], waiting: bool, count: int, ns: float) -> None:
        if not named:  # no stack could be taken
            return
        if named[0]:
            _add_leaf(sums[named[0]], path, waiting, count, ns)
        seen: set[str] = set()
        for inner, outer in zip(named, [*named[1:], ""], strict=True):
            if not inner or inner in seen:  # recursion: time counts once
                continue
            seen.add(inner)
            one = sums[inner]
            one.samples += count
            one.busy_samples += 0 if waiting else count
            one.inclusive += ns
            if outer:
                one.callers[outer] += ns
            if outer not in seen and outer:
                sums[outer].callees[inner] += ns


def _add_leaf(leaf: _Sum, path: int, waiting: bool, count: int, ns: float) -> None:
    """Add time with this function innermost."""
    if waiting:
        leaf.off_cpu += ns
        leaf.waits[path] += ns
        leaf.wait_count += count
    else:
        leaf.on_cpu += ns
        leaf.cpu_samples += count


class Wrappers:
    """Names the functions that jump to a hot one: they are called, yet stand on no stack."""

    def __init__(self, modules: Modules, naming: Symbolizer) -> None:
        """Know none."""
        self._modules, self._symbolizer = modules, naming
        self._wrappers: dict[str, tuple[str, ...]] = {}

    def with_wrappers(self, hot_samples: tuple[HotSample, ...]) -> tuple[HotSample, ...]:
        """Return the hot_samples, and for each function that is innermost somewhere the same for its wrappers.

        Whether anybody calls these is not known, and they have no time of their own: they come after what is.
        """
        more = []
        for one in hot_samples:
            if one.on_cpu_ns + one.off_cpu_ns:
                if one.function not in self._wrappers:
                    self._ask(one.function)
                around = replace(one, on_cpu_ns=0.0, off_cpu_ns=0.0, cpu_samples=0, is_wrapper=True)
                more += [replace(around, function=key) for key in self._wrappers[one.function]]
        return (*hot_samples, *more)

    def forget(self, functions: Collection[str]) -> None:
        """Forget functions whose files were closed."""
        for key in functions:
            self._wrappers.pop(key, None)

    def _ask(self, key: str) -> None:
        self._wrappers[key] = ()
        module, function = self._symbolizer.module_of[key], self._symbolizer.functions[key]

        def then(answer: object) -> None:
            if isinstance(answer, list) and not module.gone:
                self._wrappers[key] = tuple(self._symbolizer.admit(module, facts).key for facts in answer)

        self._modules.ask("wrappers", module.fd, then, offsets=[function.offset], module=module.name)


def _finding(key: str, s: _Sum, sums: Mapping[str, _Sum]) -> HotSample:
    callers = sorted(s.callers.items(), key=lambda item: (-item[1], item[0]))
    largest = max(s.waits.values(), default=0.0)
    called = ((callee, ns) for callee, ns in s.callees.items() if ns)  # a stack may stand for no time
    return HotSample(
        function=key,
        samples=s.samples,
        cpu_samples=s.cpu_samples,
        busy_samples=s.busy_samples,
        callee_ns=max((ns * min(1.0, ns / sums[callee].inclusive) for callee, ns in called), default=0.0),
        on_cpu_ns=s.on_cpu,
        off_cpu_ns=s.off_cpu,
        inclusive_ns=s.inclusive,
        callers=tuple((k, v) for k, v in callers[:8]),
        loop_bottom=s.off_cpu > _LOOP_SHARE * s.inclusive
        and largest > _LOOP_SHARE * s.off_cpu
        and s.off_cpu > _IDLE_NS * max(1, s.wait_count),
    )
