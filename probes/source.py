"""The kernel side as a whole: programs loaded, processes followed, functions found and watched.

``poll`` is called from three times a second to once in three. Each part takes in what the kernel told, and gives up
what is complete. Nothing in it waits: names and sites come from the reader's child when they come.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Iterable
from contextlib import ExitStack

import numpy as np

from specmine.model.batch import Batch, FollowWaits, Prices, Request, Sampling, Started, Unwatch, Watch
from specmine.probes.calibration.cold_cache import scaled
from specmine.probes.kernel.structs import EVENT, EVENT_RETURN, EVENT_STOP, UNSENT
from specmine.probes.process.cpu_shortages import CpuLimits, CpuShortages, no_limits
from specmine.probes.process.host_cpu import HostCpu
from specmine.probes.process.selection import Selection, check_choice
from specmine.probes.process.self_cpu import SelfCpu
from specmine.probes.sampling.profiler import NO_FUNCTION
from specmine.probes.symbols.symbolizer import outcomes

from .host_facts import UtcOffset, host_facts
from .parts import Parts, assembled
from .settings import SourceSettings

LOOK_NS = 1_000_000_000
_NOTABLE = 0.1
"""A change of what hits cost in the programs that plans must know of."""


class BpfSource:
    """The live Source."""

    def __init__(
        self, selections: Iterable[Selection], settings: SourceSettings, *, cpu_limits: CpuLimits = no_limits
    ) -> None:
        """Check the choice; nothing is loaded before ``start``. Raises InputError for a choice that cannot be."""
        self._selections = tuple(selections)
        self._settings = settings
        waits = [check_choice(selection) for selection in self._selections]
        self._parts: Parts | None = None
        self._look_ns = self._unsent_events = 0
        self._self_cpu, self._host_cpu = SelfCpu(), HostCpu()
        self._cpu_shortages = CpuShortages(cpu_limits)
        self._utc_offset = UtcOffset()
        self._started = ExitStack()
        """Ends what was started, the newest first."""
        self._notes = [each for each in waits if each]

    # start and stop

    def start(self) -> Started:
        """Load the programs, start the children, find the processes."""
        parts = assembled(
            self._selections, self._settings, self._carry_out, self._self_cpu, self._notes.append, self._started
        )
        self._wake = self._waking(parts.links.fileno(), parts.reader.fileno(), parts.counts.events.fd)
        self._wake_urgently = self._waking(parts.counts.events.fd)
        self._parts, self._prices, self._factor = parts, parts.prices, 1.0
        parts.presence.begin(self._settings.kill_switch)
        now_ns = time.monotonic_ns()
        parts.programs.begin(now_ns)
        parts.address_spaces.look_around(now_ns)
        return Started(
            now_ns=now_ns,
            host=host_facts(parts.loaded.mode, self._utc_offset),
            prices=parts.prices,
            lifetimes=parts.programs.lifetimes(parts.address_spaces.build_ids()),
            notes=tuple(parts.loaded.notes),
        )

    def _waking(self, *descriptors: int) -> select.epoll:
        """Return what is readable when one of these is."""
        wake = select.epoll()
        self._started.callback(wake.close)
        for each in descriptors:
            wake.register(each, select.EPOLLIN)
        return wake

    @property
    def parts(self) -> Parts:
        """The parts, from ``start`` on."""
        assert self._parts is not None
        return self._parts

    def close(self) -> None:
        """Take every probe off and end the children."""
        self._started.close()

    # requests

    def apply(self, request: Request) -> None:
        """Carry out a request of the controller."""
        self.parts.later_requests.apply(request)

    def _carry_out(self, request: Request) -> None:
        """Carry out a request whose programs are loaded."""
        parts, now_ns = self.parts, time.monotonic_ns()
        if isinstance(request, Watch):
            parts.registry.watch(request, now_ns)
        elif isinstance(request, Unwatch):
            parts.registry.unwatch(request.function, now_ns)
        elif isinstance(request, Sampling) and self._settings.sampling:
            parts.profiler.set_rate(request.hertz, now_ns, sample_ns=self._prices.sample_ns, waits=request.waits)
        elif isinstance(request, FollowWaits) and parts.wait_meter is not None:
            parts.wait_meter.ask(request.functions, now_ns, most_ns=request.cost_ns, walk_ns=self._prices.sample_ns)

    def _take_later_programs(self, parts: Parts) -> None:
        """Hand on the programs that were loaded meanwhile, and carry out what waited for them."""
        programs, notes, used_ns = parts.later_requests.take()
        self._notes += notes
        self._self_cpu.add(used_ns)
        if programs:
            parts.links.add(programs)
            parts.later_requests.resume()

    # polling

    def fileno(self, *, urgent: bool = False) -> int:
        """Return what is readable once a process forked or executed, a link changed, the reader answered.

        ``urgent``: the first two only, and where a debugger may have come.
        """
        return self._wake_urgently.fileno() if urgent else self._wake.fileno()

    def poll(self, now_ns: int) -> Batch:
        """Take in what the kernel and the children told since the last call."""
        parts = self.parts
        parts.presence.poll(now_ns)
        self._take_later_programs(parts)
        _take_events(parts, now_ns)
        utc_offset_ns = None
        if now_ns >= self._look_ns:
            self._look_ns = now_ns + LOOK_NS
            utc_offset_ns = self._utc_offset.changed()
            self._look_around(parts, now_ns)
        parts.address_spaces.look_around(now_ns)
        gone, forgotten = parts.address_spaces.take_gone()
        if gone:
            parts.globs.forget(gone)
            parts.nonlocal_exits.forget(gone)
            parts.wrappers.forget(forgotten)
        parts.modules.collect()
        if not parts.presence.idle:
            parts.nonlocal_exits.follow(parts.registry.return_pids(), now_ns)
        parts.globs.resolve()
        parts.symbolizer.learn(parts.counts.stacks.read())
        if parts.symbolizer.paths.full:
            parts.counts.seen_paths.drain()
            parts.symbolizer.paths.turn()
        prices = None if parts.presence.idle else self._recalibrated(parts, now_ns)
        observations, activity = parts.registry.poll(now_ns)
        found = parts.profiler.poll(now_ns, is_idle=parts.presence.idle)
        meter = parts.wait_meter
        waits = () if meter is None or parts.presence.idle else meter.poll(parts.registry.by_function, now_ns)
        hot_samples = parts.wrappers.with_wrappers(tuple(each for each in found if each.function != NO_FUNCTION))
        parts.symbolizer.ask()
        parts.code_digests.ask()
        refusals = parts.registry.take_refusals()
        functions = parts.symbolizer.take_functions()
        mapped, unmapped = parts.modules.take_builds()
        lifetimes = parts.programs.lifetimes(parts.address_spaces.build_ids())
        call_samples = parts.registry.windows.call_samples
        call_samples.end((each.id for each in lifetimes if not each.processes), now_ns)
        return Batch(
            now_ns=now_ns,
            observations=tuple(observations),
            activity=tuple(activity),
            call_samples=call_samples.news(),
            hot_samples=hot_samples,
            waits=waits,
            runtime=tuple(each for each in found if each.function == NO_FUNCTION),
            functions=functions,
            mapped=mapped,
            unmapped=unmapped,
            refusals=refusals,
            lifetimes=lifetimes,
            bystander_hits=int(parts.counts.counters["bystander_hits"].sum()),
            lost=parts.spending.lost(parts.counts.unsent),
            unwinding=outcomes(parts.counts.outcomes),
            row_bytes=parts.modules.row_bytes,
            spent=parts.spending.spent(
                parts.programs, self._self_cpu, self._prices.sample_ns, loading_ns=parts.later_requests.loading_ns
            ),
            ended=parts.programs.ended,
            due_ns=min(filter(None, (parts.registry.due_ns(), parts.presence.due_ns)), default=0),
            safety_ns=parts.registry.safety_ns(),
            switched_off=parts.presence.off,
            breakpoints=parts.presence.breakpoints(),
            prices=prices,
            resident={name: size for name, size in self._self_cpu.resident.items() if name != "daemon"},
            restarts={"holder": parts.presence.restarts, "reader": parts.reader.restarts},
            notes=self._take_notes(parts),
            utc_offset_ns=utc_offset_ns,
            host_busy_ns=self._host_cpu.busy_ns(now_ns),
            cpu_shortages=self._cpu_shortages.look(parts.programs.members.values(), now_ns),
        )

    def _take_notes(self, parts: Parts) -> tuple[str, ...]:
        notes = (*self._notes, *parts.reader.take_notes())
        self._notes.clear()  # others append to the very list
        return notes

    def _recalibrated(self, parts: Parts, now_ns: int) -> Prices | None:
        """Return what to plan with if that has changed, after everything goes by it."""
        prices = parts.recalibration.poll(now_ns)
        if prices is not None:
            self._prices = prices
            parts.registry.reprice(prices)
            parts.nonlocal_exits.reprice(prices)
        factor = parts.registry.activity.factor
        if prices is None and abs(factor / self._factor - 1) < _NOTABLE:
            return None
        self._factor = factor
        return scaled(self._prices, factor)

    def _look_around(self, parts: Parts, now_ns: int) -> None:
        """Look at processes: at all where forks, execs or exits were not told for want of room, and at our own."""
        before, self._unsent_events = self._unsent_events, int(parts.counts.unsent[UNSENT.index("events")])
        if self._unsent_events != before:
            parts.programs.rescan()
        parts.programs.look_around(now_ns)
        parts.bystanders.look_around(now_ns, parts.programs.members)
        helpers = {
            "holder": [parts.links.pid],
            "reader": parts.reader.pids(),
            "calibration": parts.recalibration.pids(),
        }
        self._self_cpu.look({"daemon": [os.getpid()], **helpers})


def _take_events(parts: Parts, now_ns: int) -> None:
    """Take in what the kernel's programs told: of processes, and of places that calls return to."""
    events = parts.counts.events.read()
    if not events:
        return
    told = np.frombuffer(b"".join(events), EVENT)
    parts.programs.events(told, now_ns)
    parts.registry.placement.suspect(told["tgid"][told["type"] == EVENT_STOP])
    for each in told[told["type"] == EVENT_RETURN]:
        value = int(each["value"])
        parts.registry.learn_return(value & 0xFFFF_FFFF, value >> 32, int(each["address"]))
