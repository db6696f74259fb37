"""The kernel side as a whole: programs loaded, processes followed, functions found and watched.

``poll`` is called four to twenty times a second; each part takes in what the kernel told, and gives up what
is complete. Nothing in it waits: names and sites come from the reader's child when they come.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from specmine.model.batch import Batch, FollowWaits, Prices, Request, Sampling, Started, Unwatch, Watch
from specmine.model.buckets import BUCKETS
from specmine.probes.arch.machine import machine
from specmine.probes.calibration.calibrate import calibrated, kept_prices
from specmine.probes.calibration.cold_cache import scaled
from specmine.probes.calibration.recalibrate import Recalibration
from specmine.probes.elf.client import Reader
from specmine.probes.kernel.cache import prepare
from specmine.probes.kernel.later_programs import LaterPrograms
from specmine.probes.kernel.links import Links
from specmine.probes.kernel.loader import LINK_KINDS, SAMPLING, Loaded, load, loaded_earlier
from specmine.probes.kernel.maps import CachedMap, HashMap, RingBuffer, kernel_at_least, map_array
from specmine.probes.kernel.structs import (
    COUNTERS,
    EPOCHS,
    EVENT,
    EVENT_RETURN,
    EVENT_STOP,
    MAX_SLOTS,
    PROCESS,
    SLOT,
    UNSENT,
)
from specmine.probes.kernel.tracepoints import Tracepoints
from specmine.probes.process.bystanders import Bystanders
from specmine.probes.process.code_sizes import CodeSizes
from specmine.probes.process.cpu_shortages import CpuLimits, CpuShortages, no_limits
from specmine.probes.process.host_cpu import HostCpu
from specmine.probes.process.selection import Selection, check_choice
from specmine.probes.process.self_cpu import SelfCpu
from specmine.probes.process.tracker import ProcessTracker
from specmine.probes.safety.nonlocal_exits import NonlocalExits
from specmine.probes.sampling.factory import profiler_over
from specmine.probes.sampling.profiler import NO_FUNCTION, Wrappers
from specmine.probes.symbols.code_digests import CodeDigests
from specmine.probes.symbols.function_globs import FunctionGlobs
from specmine.probes.symbols.modules import Modules
from specmine.probes.symbols.return_addresses import ReturnAddresses
from specmine.probes.symbols.symbolizer import Symbolizer, outcomes
from specmine.probes.timing.address_spaces import PROCESSES_PER_LOOK, AddressSpaces
from specmine.probes.timing.factory import registry_over, wait_meter_over

from .host_facts import UtcOffset, host_facts
from .later_requests import LaterRequests
from .presence import Presence
from .spending import Spending

LOOK_NS = 1_000_000_000
_NOTABLE = 0.1
"""A change of what hits cost in the programs that plans must know of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """What the kernel side needs to know besides the choice of programs."""

    interpreter: str = "/usr/bin/python3"
    """A Python that has bcc."""
    memory_bytes: int = 64 << 20
    links: tuple[str, ...] = LINK_KINDS
    """Kinds of link to try, best first."""
    cache: str = ""
    """Folder for compiled programs and this boot's calibration; '' for none."""
    watch: tuple[str, ...] = ()
    """Globs of functions to watch; they replace sample."""
    ignore: tuple[str, ...] = ()
    isolate: bool = True
    """False: no probes go off for another function's sake; durations they spoil are kept, with their uncertainty."""
    max_open_ns: int = 10_000_000_000
    """A call that has not returned after this time is given up as censored."""
    sampling: bool = True
    """False: nothing will be sampled; what does it is not loaded, since that takes a second."""
    waiting: bool = True
    """False: timed calls are not split into running, waiting and blocked."""
    wait_kind: bool = True
    """False: it is never looked where and for what calls wait."""
    kill_switch: str = ""
    """While there is a file of this path no probe is on; '' for no switch."""


class BpfSource:
    """The live Source."""

    def __init__(
        self, selections: Iterable[Selection], settings: SourceSettings, *, cpu_limits: CpuLimits = no_limits
    ) -> None:
        """Check the choice; nothing is loaded before ``start``. Raises InputError for a choice that cannot be."""
        self._selections = tuple(selections)
        self._settings = settings
        waits = [check_choice(selection) for selection in self._selections]
        self._loaded: Loaded | None = None
        self._look_ns = 0
        self._self_cpu, self._host_cpu = SelfCpu(), HostCpu()
        self._cpu_shortages = CpuShortages(cpu_limits)
        self._utc_offset = UtcOffset()
        self._started = ExitStack()
        """Ends what was started, the newest first."""
        self._notes = [each for each in waits if each]

    # start and stop

    def start(self) -> Started:
        """Load the programs, start the children, find the processes."""
        machine()
        s = self._settings
        self._reader = Reader()
        self._started.callback(self._reader.close)
        self._warm()
        cache = Path(s.cache) if s.cache and prepare(Path(s.cache)) else None
        loaded, known = self._load(cache)
        maps = loaded.maps
        slots = map_array(maps["slots"], MAX_SLOTS, SLOT, writable=True)
        self._open_maps(loaded)
        self._links = Links(loaded)
        self._started.callback(self._links.shut)
        self._tracepoints = Tracepoints(self._links)
        self._modules = Modules(self._reader, loaded, cache)
        self._started.callback(self._modules.close)
        self._wake = self._waking(self._links.fileno(), self._reader.fileno(), self._events.fd)
        self._wake_urgently = self._waking(self._events.fd)
        self._reader.check()
        prices = known or calibrated(loaded, self._links, slots, self._counters, cache)
        self._prices, self._factor = prices, 1.0
        self._recalibration = Recalibration(
            interpreter=s.interpreter, mode=loaded.mode, cache=cache, now_ns=time.monotonic_ns()
        )
        self._started.callback(self._recalibration.close)
        self._symbolizer = Symbolizer(self._modules)
        self._globs = FunctionGlobs((*s.watch, *s.ignore), self._modules, self._symbolizer)
        self._wrappers = Wrappers(self._modules, self._symbolizer)
        self._code_digests = CodeDigests(self._modules, self._symbolizer)
        epochs = map_array(maps["epochs"], 1, EPOCHS, writable=True)
        self._programs = ProcessTracker(self._selections, CachedMap(maps["processes"], "<u4", PROCESS, epochs))
        self._bystanders = Bystanders()
        return_addresses = ReturnAddresses()
        self._profiler = profiler_over(loaded, self._links, self._symbolizer, return_addresses)
        self._wait_meter = wait_meter_over(loaded, self._profiler, self._symbolizer) if s.wait_kind else None
        code_sizes = CodeSizes(PROCESSES_PER_LOOK)
        self._registry = registry_over(
            loaded,
            slots=slots,
            counters=self._counters,
            prices=prices,
            links=self._links,
            modules=self._modules,
            symbolizer=self._symbolizer,
            tracker=self._programs,
            bystanders=self._bystanders,
            isolate=s.isolate,
            max_open_ns=s.max_open_ns,
            code_sizes=code_sizes,
            return_addresses=return_addresses,
            waits=self._wait_meter,
        )
        self._address_spaces = AddressSpaces(
            self._modules, self._symbolizer, self._programs, self._bystanders, self._registry, code_sizes
        )
        self._nonlocal_exits = NonlocalExits(
            self._links,
            self._modules,
            self._programs,
            slots=slots,
            counters=self._counters,
            prices=prices,
            emulates_nops=kernel_at_least(6, 16),
        )
        self._spending = Spending(
            self._registry, self._profiler, self._wait_meter, self._nonlocal_exits, self._modules, self._counters
        )
        self._presence = Presence(
            self._links,
            self._tracepoints,
            self._registry,
            self._nonlocal_exits,
            self._profiler,
            self._programs,
            self._recalibration,
            self._notes.append,
        )
        self._presence.begin(s.kill_switch)
        if known is None:
            self._self_cpu.take_ended()  # the calibrating programs
        now_ns = time.monotonic_ns()
        self._programs.begin(now_ns)
        self._address_spaces.look_around(now_ns)
        return Started(
            now_ns=now_ns,
            host=host_facts(loaded.mode, self._utc_offset),
            prices=prices,
            lifetimes=self._programs.lifetimes(self._address_spaces.build_ids()),
            notes=tuple(loaded.notes),
        )

    def _open_maps(self, loaded: Loaded) -> None:
        """Open what the programs tell and count."""
        maps, entries = loaded.maps, loaded.entries
        self._outcomes = map_array(maps["walk_outcomes"], entries["walk_outcomes"], "<u8")
        self._counters = map_array(maps["counters"], MAX_SLOTS, COUNTERS)
        self._unsent = map_array(maps["unsent"], len(UNSENT), "<u8")
        self._unsent_events = 0
        self._events = RingBuffer(maps["events"], entries["events"])
        self._stacks = RingBuffer(maps["stacks"], entries["stacks"])
        self._seen_paths = HashMap(maps["seen_paths"], "<u8", "<u8")

    def _load(self, cache: Path | None) -> tuple[Loaded, Prices | None]:
        """Load the programs, some of them later if all went well earlier in this boot; also return prices of then."""
        s = self._settings
        earlier = loaded_earlier(cache, s.interpreter) if cache is not None else None
        known = kept_prices(cache, earlier.mode) if cache is not None and earlier is not None else None
        self._loaded = loaded = load(
            interpreter=s.interpreter,
            memory_bytes=s.memory_bytes,
            buckets=BUCKETS,
            modes=s.links,
            cache=cache,
            sampling=s.sampling,
            waiting=s.waiting,
            postponing=known is not None,  # calibration needs all programs
        )
        self._started.callback(loaded.close)
        later = LaterPrograms(loaded, s.interpreter)
        self._started.callback(later.close)
        self._later_requests = LaterRequests(later, self._carry_out)
        self._self_cpu.take_ended()
        if s.sampling and not s.watch:
            later.awaited(SAMPLING, niceness=0)  # nothing is found without samples
        return loaded, known if earlier is not None and earlier.mode == loaded.mode else None

    def _waking(self, *descriptors: int) -> select.epoll:
        """Return what is readable when one of these is."""
        wake = select.epoll()
        self._started.callback(wake.close)
        for each in descriptors:
            wake.register(each, select.EPOLLIN)
        return wake

    def _warm(self) -> None:
        """Start the reader's child now: it imports what it needs while the programs are compiled."""
        fd = os.open("/proc/self/exe", os.O_RDONLY | os.O_CLOEXEC)
        self._reader.request("facts", fd)
        os.close(fd)

    @property
    def _off(self) -> bool:
        """The kill switch is on."""
        return self._presence.off

    def close(self) -> None:
        """Take every probe off and end the children."""
        self._started.close()
        self._loaded = None

    # requests

    def apply(self, request: Request) -> None:
        """Carry out a request of the controller."""
        self._later_requests.apply(request)

    def _carry_out(self, request: Request) -> None:
        """Carry out a request whose programs are loaded."""
        now_ns = time.monotonic_ns()
        if isinstance(request, Watch):
            self._registry.watch(request, now_ns)
        elif isinstance(request, Unwatch):
            self._registry.unwatch(request.function, now_ns)
        elif isinstance(request, Sampling) and self._settings.sampling:
            waits = request.waits if "on_switch" in self._links.programs else 0
            self._profiler.set_rate(request.hertz, now_ns, sample_ns=self._prices.sample_ns, waits=waits)
        elif isinstance(request, FollowWaits) and self._wait_meter is not None:
            self._wait_meter.ask(request.functions, now_ns, most_ns=request.cost_ns, walk_ns=self._prices.sample_ns)

    def _take_later_programs(self) -> None:
        """Hand on the programs that were loaded meanwhile, and carry out what waited for them."""
        programs, notes, used_ns = self._later_requests.take()
        self._notes += notes
        self._self_cpu.add(used_ns)
        if programs:
            self._links.add(programs)
            self._later_requests.resume()

    # polling

    def fileno(self, *, urgent: bool = False) -> int:
        """Return what is readable once a process forked or executed, a link changed, the reader answered.

        ``urgent``: the first two only, and where a debugger may have come.
        """
        return self._wake_urgently.fileno() if urgent else self._wake.fileno()

    def poll(self, now_ns: int) -> Batch:
        """Take in what the kernel and the children told since the last call."""
        assert self._loaded is not None
        self._presence.poll(now_ns)
        self._take_later_programs()
        events = self._events.read()
        if events:
            told = np.frombuffer(b"".join(events), EVENT)
            self._programs.events(told, now_ns)
            self._registry.placement.suspect(told["tgid"][told["type"] == EVENT_STOP])
            for each in told[told["type"] == EVENT_RETURN]:
                value = int(each["value"])
                self._registry.learn_return(value & 0xFFFF_FFFF, value >> 32, int(each["address"]))
        utc_offset_ns = None
        if now_ns >= self._look_ns:
            self._look_ns = now_ns + LOOK_NS
            utc_offset_ns = self._utc_offset.changed()
            self._make_up_for_events()
            self._programs.look_around(now_ns)
            self._bystanders.look_around(now_ns, self._programs.members)
            helpers = {
                "holder": [self._links.pid],
                "reader": self._reader.pids(),
                "calibration": self._recalibration.pids(),
            }
            self._self_cpu.look({"daemon": [os.getpid()], **helpers})
        self._address_spaces.look_around(now_ns)
        gone, forgotten = self._address_spaces.take_gone()
        if gone:
            self._globs.forget(gone)
            self._nonlocal_exits.forget(gone)
            self._wrappers.forget(forgotten)
        self._modules.collect()
        if not self._presence.idle:
            self._nonlocal_exits.follow(self._registry.return_pids(), now_ns)
        self._globs.resolve()
        self._symbolizer.learn(self._stacks.read())
        if self._symbolizer.paths.full:
            self._seen_paths.drain()
            self._symbolizer.paths.turn()
        prices = None if self._presence.idle else self._recalibrated(now_ns)
        observations, activity = self._registry.poll(now_ns)
        found = self._profiler.poll(now_ns)
        meter = self._wait_meter
        waits = () if meter is None or self._presence.idle else meter.poll(self._registry.by_function, now_ns)
        hot_samples = self._wrappers.with_wrappers(tuple(each for each in found if each.function != NO_FUNCTION))
        self._symbolizer.ask()
        self._code_digests.ask()
        refusals = self._registry.take_refusals()
        functions = self._symbolizer.take_functions()
        mapped, unmapped = self._modules.take_builds()
        lifetimes = self._programs.lifetimes(self._address_spaces.build_ids())
        call_samples = self._registry.windows.call_samples
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
            bystander_hits=int(self._counters["bystander_hits"].sum()),
            lost=self._spending.lost(self._unsent),
            unwinding=outcomes(self._outcomes),
            row_bytes=self._modules.row_bytes,
            spent=self._spending.spent(
                self._programs, self._self_cpu, self._prices.sample_ns, loading_ns=self._later_requests.loading_ns
            ),
            ended=self._programs.ended,
            due_ns=min(filter(None, (self._registry.due_ns(), self._presence.due_ns)), default=0),
            safety_ns=self._registry.safety_ns(),
            switched_off=self._off,
            breakpoints=self._presence.breakpoints(),
            prices=prices,
            resident={name: size for name, size in self._self_cpu.resident.items() if name != "daemon"},
            restarts={"holder": self._presence.restarts, "reader": self._reader.restarts},
            notes=self._take_notes(),
            utc_offset_ns=utc_offset_ns,
            host_busy_ns=self._host_cpu.busy_ns(now_ns),
            cpu_shortages=self._cpu_shortages.look(self._programs.members.values(), now_ns),
        )

    def _take_notes(self) -> tuple[str, ...]:
        notes = (*self._notes, *self._reader.take_notes())
        self._notes.clear()  # others append to the very list
        return notes

    def _recalibrated(self, now_ns: int) -> Prices | None:
        """Return what to plan with if that has changed, after everything goes by it."""
        prices = self._recalibration.poll(now_ns)
        if prices is not None:
            self._prices = prices
            self._registry.reprice(prices)
            self._nonlocal_exits.reprice(prices)
        factor = self._registry.activity.factor
        if prices is None and abs(factor / self._factor - 1) < _NOTABLE:
            return None
        self._factor = factor
        return scaled(self._prices, factor)

    def _make_up_for_events(self) -> None:
        """Look at all processes again where forks, execs or exits were not told for want of room."""
        before, self._unsent_events = self._unsent_events, int(self._unsent[UNSENT.index("events")])
        if self._unsent_events != before:
            self._programs.rescan()
