"""The product at work on a program, with all its probes off for some seconds now and then: what do they cost?

The daemon's own loop mines; between it and the kernel side stands a source that takes all probes off in random
phases, as the kernel side itself does between on-phases, and stops the sampling. Time stands still for the loop
meanwhile: it plans, spends and learns as if only the phases with probes had been. What the program did and
the CPU time that it took are read at the ends of each phase, some time after a change.
"""

from __future__ import annotations

import bisect
import random
import select
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.lib.cpu_speed import Reference, ns_a_round
from bench.lib.losses import Pair
from specmine.daemon.controller.events import Reloaded, Stopping
from specmine.daemon.loop import Step
from specmine.model.batch import Batch, Request, Started
from specmine.model.observation import Observation
from specmine.probes.source import BpfSource

SETTLE_S = 0.25
"""What passes after a change before a reading: links that are made, calls that are open."""
_TICK_S = 0.05


def cpu_seconds(pids: Iterable[int]) -> dict[int, float]:
    """Return the CPU time of whole processes, by their clocks; those that have ended are left out."""
    found = {}
    for pid in pids:
        try:
            found[pid] = (
                time.clock_gettime_ns(~pid << 3 | 2) * 1e-9
            )  # the process's CPU-time clock, see clock_getres(2)
        except OSError:
            continue
    return found


def family(pid: int) -> list[int]:
    """Return a process and all its descendants."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = stat.read_bytes().rpartition(b")")[2].split()  # a name may be no text
        except OSError:
            continue
        children.setdefault(int(words[1]), []).append(int(stat.parent.name))
    found = [pid]
    for each in found:
        found += children.get(each, [])
    return found


class Meter:
    """CPU time and work of a program, and of the reference work on its CPU, read at the ends of phases."""

    def __init__(self, pid: int, work: Callable[[], float], reference: Reference | None = None) -> None:
        self._pid, self._work, self._reference = pid, work, reference
        self._begun: tuple[dict[int, float], float] = ({}, 0.0)
        self._referred = reference.read() if reference else None

    def begin(self) -> None:
        """Read at the beginning of a phase."""
        self._begun = (cpu_seconds(family(self._pid)), self._work())
        self._referred = self._reference.read() if self._reference else None

    def end(self) -> float | None:
        """Return the CPU seconds per unit of work since then; None if a process came or went, or nothing was done."""
        cpu, work = cpu_seconds(family(self._pid)), self._work()
        before, done = self._begun
        if set(cpu) != set(before) or work <= done:
            return None
        return sum(cpu[pid] - before[pid] for pid in cpu) / (work - done)

    def speed(self) -> NDArray[np.float64] | None:
        """Return what the reference work has taken since then, None if there is none."""
        if self._reference is None or self._referred is None:
            return None
        return ns_a_round(self._referred, self._reference.read())


class Phases:
    """Phases with and without probes, in pairs of random order, and what each measured."""

    def __init__(self, meter: Meter, phase_s: float, seed: int) -> None:
        self._meter, self.phase_s, self._chance = meter, phase_s, random.Random(seed)
        self.pairs: list[Pair] = []
        self.dropped = 0

    def run(self) -> Iterator[tuple[bool, float]]:
        """Yield (probes on, seconds) for each stretch of time; read the meter between."""
        while True:
            order = self._chance.sample([True, False], 2)
            found: dict[bool, float] = {}
            speeds: dict[bool, NDArray[np.float64]] = {}
            for on in order:
                yield on, SETTLE_S
                self._meter.begin()
                yield on, self.phase_s
                cost, speed = self._meter.end(), self._meter.speed()
                if cost is not None:
                    found[on] = cost
                if speed is not None:
                    speeds[on] = speed
            if len(found) == 2:
                reference = tuple((speeds[True] / speeds[False]).tolist()) if len(speeds) == 2 else ()
                self.pairs.append(Pair(on=found[True], off=found[False], reference=reference))
            else:
                self.dropped += 1


class Toggled:
    """A live source whose probes are off in some phases, of which its user notices nothing."""

    def __init__(self, inner: BpfSource, pid: int) -> None:
        self.inner, self._pid = inner, pid
        self._stretches: Iterator[tuple[bool, float]] | None = None
        self._until_ns = self.begun_ns = 0
        self._on, self._hertz = True, 0
        self.switched: list[tuple[int, bool]] = []
        """When the probes came on (True) or went, CLOCK_MONOTONIC ns."""
        self._gaps: list[tuple[int, int]] = [(0, 0)]
        """(end of a phase without probes, time hidden until then)."""
        self._off_ns = 0
        self._hidden_cpu_s = self._cpu_at_gap = 0.0
        self._cpu_ns = 0
        self._chance = random.Random(0)

    # time

    def virtual_ns(self, real_ns: int) -> int:
        """Return a time as the loop sees it: within a phase without probes, that of its beginning."""
        place = bisect.bisect_right(self._gaps, (real_ns, 1 << 62))
        hidden_ns = self._gaps[place - 1][1]
        if place < len(self._gaps):
            end_ns, hidden_until_ns = self._gaps[place]
            begun_ns = end_ns - (hidden_until_ns - hidden_ns)
        else:
            begun_ns = real_ns if self._on else self._off_ns
        return min(real_ns, begun_ns) - hidden_ns

    def now_ns(self) -> int:
        """Be the loop's clock."""
        return self.virtual_ns(time.monotonic_ns())

    def sleep_until_ns(self, deadline_ns: int, wake: int = -1) -> None:
        """Be the loop's clock: wakes for the descriptor's news as the true one does, and for the end of a phase."""
        rest_ns = deadline_ns - self.now_ns()
        if self._stretches is not None:
            rest_ns = min(rest_ns, self._until_ns - time.monotonic_ns())
        readable = select.poll()
        if wake >= 0:
            readable.register(wake, select.POLLIN)
        readable.poll(max(0.0, rest_ns * 1e-6))

    # the source

    def begin(self, phases: Phases) -> None:
        """Let the phases begin."""
        self._stretches = phases.run()
        self._until_ns = time.monotonic_ns()

    def start(self) -> Started:
        """Start the kernel side."""
        started = self.inner.start()
        self.begun_ns = started.now_ns
        return started

    def fileno(self, *, urgent: bool = False) -> int:
        """Return what is readable when there is news."""
        return self.inner.fileno()

    def apply(self, request: Request) -> None:
        """Pass a request on; the loop runs only while the probes are on."""
        self.inner.apply(request)

    def close(self) -> None:
        """Close the kernel side."""
        self.inner.close()

    def poll(self, now_ns: int) -> Batch:
        """Poll; pass phases without probes in silence."""
        batches = [self.inner.poll(time.monotonic_ns())]
        while self._stretches is not None and (time.monotonic_ns() >= self._until_ns or not self._on):
            if time.monotonic_ns() >= self._until_ns:
                on, seconds = next(self._stretches)
                if on != self._on:
                    self._switch(on)
                self._until_ns = time.monotonic_ns() + int(seconds * 1e9)
            elif not self._on:
                time.sleep(_TICK_S)
                batches.append(self.inner.poll(time.monotonic_ns()))
                if any(w.attachment.links for w in self.inner.parts.registry.by_function.values()):
                    raise RuntimeError("a probe came on in a phase without probes")
        return self._as_seen(batches)

    def _switch(self, on: bool) -> None:
        now_ns = time.monotonic_ns()
        self._on = on
        self.switched.append((now_ns, on))
        cpu = sum(cpu_seconds(family(self._pid)).values())
        if not on:
            self._off_ns, self._cpu_at_gap = now_ns, cpu
            self._all_off(now_ns)
        else:
            self._hidden_cpu_s += cpu - self._cpu_at_gap
            self._gaps.append((now_ns, self._gaps[-1][1] + now_ns - self._off_ns))
            self._all_on(now_ns - self._off_ns, now_ns)

    def _all_off(self, now_ns: int) -> None:
        """Take all probes and samplers off; nothing comes on by itself."""
        watching, finder = self.inner.parts.registry, self.inner.parts.profiler
        watching.windows.drain(watching.by_function.values(), now_ns)
        for w in watching.by_function.values():
            if not w.attachment.links:
                continue
            off_at_ns, on_ns = w.attachment.off_at_ns, w.watch.on_ns
            rest = max(0, off_at_ns - now_ns) / on_ns if off_at_ns and on_ns else 1.0
            watching._links.detach(w, now_ns)
            # an on-phase that is cut begins anew with the probability of its rest: the share of time on stays the same
            pause_ns = max(0, w.watch.period_ns - w.watch.on_ns)
            again = self._chance.random() < rest
            pause_ns = 0 if again else int(pause_ns * self._chance.uniform(0.5, 1.5))
            w.schedule.attach_at(now_ns + pause_ns)
        watching.switch(off=True)
        self._hertz = finder._hertz
        finder.stop()

    def _all_on(self, hidden_ns: int, now_ns: int) -> None:
        """Go on as if no time had passed."""
        watching, finder = self.inner.parts.registry, self.inner.parts.profiler
        watching.switch(off=self.inner.parts.presence.off)
        for w in watching.by_function.values():
            w.schedule.attach_at(w.schedule.next_on_ns + hidden_ns)
            if w.window is not None:
                w.window.start_ns += hidden_ns
        if self._hertz:
            finder._hertz = self._hertz
            finder.begin(now_ns)

    def _as_seen(self, batches: list[Batch]) -> Batch:
        """Join batches, in the loop's time."""
        last = batches[-1]
        lists = [f.name for f in fields(Batch) if isinstance(getattr(last, f.name), tuple)]
        joined: dict[str, Any] = {
            name: tuple(each for batch in batches for each in getattr(batch, name)) for name in lists
        }
        joined["observations"] = tuple(map(self._observed, joined["observations"]))
        # the kernel side reads CPU times once a second: what is seen must not fall behind what was seen; and what it
        # read in a phase without probes holds time that is hidden at its end only
        if len(batches) == 1:
            self._cpu_ns = max(self._cpu_ns, last.spent.program_cpu_ns - int(self._hidden_cpu_s * 1e9))
        spent = replace(last.spent, program_cpu_ns=self._cpu_ns)
        due_ns = self.virtual_ns(last.due_ns) if last.due_ns else 0
        return replace(last, **joined, now_ns=self.virtual_ns(last.now_ns), spent=spent, due_ns=due_ns)

    def _observed(self, observation: Observation) -> Observation:
        end_ns = self.virtual_ns(observation.end_ns)
        length_ns = observation.end_ns - observation.start_ns
        return replace(observation, start_ns=end_ns - length_ns, end_ns=end_ns)


class Mining:
    """Listens to the loop, lets the phases begin, ends it after so many pairs."""

    def __init__(self, source: Toggled, phases: Phases, pairs: int, warm_s: float) -> None:
        """Let the phases begin when the mining has gone on for ``warm_s``."""
        self._source, self._phases, self._pairs, self._warm_ns = source, phases, pairs, int(warm_s * 1e9)
        self._begun = False

    def inbox(self, now_ns: int) -> Iterable[Reloaded | Stopping]:
        """Stop when all pairs are there, or too many could not be measured."""
        if len(self._phases.pairs) >= self._pairs or self._phases.dropped > self._pairs + 10:
            yield Stopping(now_ns=now_ns, why="deadline")

    def see(self, step: Step) -> None:
        """Let the phases begin once the mining is under way."""
        if not self._begun and step.state.now_ns - step.state.began_ns > self._warm_ns:
            self._begun = True
            self._source.begin(self._phases)
