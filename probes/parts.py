"""The parts of the kernel side, made and put together once, at the start."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from specmine.model.batch import Prices, Request
from specmine.model.buckets import BUCKETS
from specmine.probes.arch.machine import machine
from specmine.probes.calibration.calibrate import calibrated, kept_prices
from specmine.probes.calibration.recalibrate import Recalibration
from specmine.probes.elf.client import Reader
from specmine.probes.kernel.cache import prepare
from specmine.probes.kernel.later_programs import LaterPrograms
from specmine.probes.kernel.links import Links
from specmine.probes.kernel.loader import SAMPLING, Loaded, load, loaded_earlier
from specmine.probes.kernel.maps import CachedMap, HashMap, RingBuffer, kernel_at_least, map_array
from specmine.probes.kernel.structs import COUNTERS, EPOCHS, MAX_SLOTS, PROCESS, SLOT, UNSENT
from specmine.probes.kernel.tracepoints import Tracepoints
from specmine.probes.process.bystanders import Bystanders
from specmine.probes.process.code_sizes import CodeSizes
from specmine.probes.process.selection import Selection
from specmine.probes.process.self_cpu import SelfCpu
from specmine.probes.process.tracker import ProcessTracker
from specmine.probes.safety.nonlocal_exits import NonlocalExits
from specmine.probes.sampling.factory import profiler_over
from specmine.probes.sampling.profiler import Profiler
from specmine.probes.sampling.wrappers import Wrappers
from specmine.probes.symbols.code_digests import CodeDigests
from specmine.probes.symbols.function_globs import FunctionGlobs
from specmine.probes.symbols.modules import Modules
from specmine.probes.symbols.return_addresses import ReturnAddresses
from specmine.probes.symbols.symbolizer import Symbolizer
from specmine.probes.timing.address_spaces import PROCESSES_PER_LOOK, AddressSpaces
from specmine.probes.timing.factory import registry_over, wait_meter_over
from specmine.probes.timing.registry import Registry
from specmine.probes.timing.waits import WaitMeter

from .later_requests import LaterRequests
from .presence import Presence
from .settings import SourceSettings
from .spending import Spending


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelCounts:
    """What the kernel's programs tell and count beside the rows of slots and samples."""

    outcomes: NDArray[Any]
    """Walks of stacks by how they ended."""
    counters: NDArray[Any]
    """Of each slot and CPU."""
    unsent: NDArray[Any]
    """What ring buffers had no room for."""
    events: RingBuffer
    stacks: RingBuffer
    seen_paths: HashMap


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Everything that a poll asks, in the order in which it is made."""

    loaded: Loaded
    later_requests: LaterRequests
    reader: Reader
    counts: KernelCounts
    links: Links
    modules: Modules
    prices: Prices
    """Those of the start."""
    recalibration: Recalibration
    symbolizer: Symbolizer
    globs: FunctionGlobs
    wrappers: Wrappers
    code_digests: CodeDigests
    programs: ProcessTracker
    bystanders: Bystanders
    profiler: Profiler
    wait_meter: WaitMeter | None
    registry: Registry
    address_spaces: AddressSpaces
    nonlocal_exits: NonlocalExits
    spending: Spending
    presence: Presence


def assembled(
    selections: Sequence[Selection],
    settings: SourceSettings,
    carry_out: Callable[[Request], None],
    own_cpu: SelfCpu,
    note: Callable[[str], None],
    started: ExitStack,
) -> Parts:
    """Load the programs, start the children, and put the parts together; nothing is watched yet.

    Parameters
    ----------
    selections : sequence of Selection
        Which processes are followed.
    settings : SourceSettings
    carry_out : callable
        Gets each request whose programs are loaded.
    own_cpu : SelfCpu
        Takes in what ended children used.
    note : callable
        Gets one line about what a user should know.
    started : ExitStack
        Ends what is started here, the newest first, also if a later part cannot be.

    Raises
    ------
    ProbeError
        If this host cannot.
    """
    machine()
    reader = Reader()
    started.callback(reader.close)
    _warm(reader)
    cache = Path(settings.cache) if settings.cache and prepare(Path(settings.cache)) else None
    loaded, later_requests, known = _loaded(settings, cache, carry_out, own_cpu, started)
    maps = loaded.maps
    slots = map_array(maps["slots"], MAX_SLOTS, SLOT, writable=True)
    counts = _counts(loaded)
    links = Links(loaded)
    started.callback(links.shut)
    tracepoints = Tracepoints(links)
    modules = Modules(reader, loaded, cache)
    started.callback(modules.close)
    reader.check()
    prices = known
    if prices is None:
        prices = calibrated(loaded, links, slots, counts.counters, cache)
        own_cpu.take_ended()  # the calibrating programs
    recalibration = Recalibration(
        interpreter=settings.interpreter, mode=loaded.mode, cache=cache, now_ns=time.monotonic_ns()
    )
    started.callback(recalibration.close)
    symbolizer = Symbolizer(modules)
    epochs = map_array(maps["epochs"], 1, EPOCHS, writable=True)
    programs = ProcessTracker(selections, CachedMap(maps["processes"], "<u4", PROCESS, epochs))
    bystanders = Bystanders()
    return_addresses = ReturnAddresses()
    profiler = profiler_over(loaded, links, symbolizer, return_addresses, note)
    started.callback(profiler.close)
    wait_meter = wait_meter_over(loaded, profiler, symbolizer) if settings.wait_kind else None
    code_sizes = CodeSizes(PROCESSES_PER_LOOK)
    registry = registry_over(
        loaded,
        slots=slots,
        counters=counts.counters,
        prices=prices,
        links=links,
        modules=modules,
        symbolizer=symbolizer,
        tracker=programs,
        bystanders=bystanders,
        isolate=settings.isolate,
        max_open_ns=settings.max_open_ns,
        code_sizes=code_sizes,
        return_addresses=return_addresses,
        waits=wait_meter,
    )
    nonlocal_exits = NonlocalExits(
        links,
        modules,
        programs,
        slots=slots,
        counters=counts.counters,
        prices=prices,
        emulates_nops=kernel_at_least(6, 16),
    )
    return Parts(
        loaded=loaded,
        later_requests=later_requests,
        reader=reader,
        counts=counts,
        links=links,
        modules=modules,
        prices=prices,
        recalibration=recalibration,
        symbolizer=symbolizer,
        globs=FunctionGlobs((*settings.watch, *settings.ignore), modules, symbolizer),
        wrappers=Wrappers(modules, symbolizer),
        code_digests=CodeDigests(modules, symbolizer),
        programs=programs,
        bystanders=bystanders,
        profiler=profiler,
        wait_meter=wait_meter,
        registry=registry,
        address_spaces=AddressSpaces(modules, symbolizer, programs, bystanders, registry, code_sizes),
        nonlocal_exits=nonlocal_exits,
        spending=Spending(registry, profiler, wait_meter, nonlocal_exits, modules, counts.counters),
        presence=Presence(links, tracepoints, registry, nonlocal_exits, profiler, programs, recalibration, note),
    )


def _warm(reader: Reader) -> None:
    """Start the reader's child now: it imports what it needs while the programs are compiled."""
    fd = os.open("/proc/self/exe", os.O_RDONLY | os.O_CLOEXEC)
    reader.request("facts", fd)
    os.close(fd)


def _loaded(
    settings: SourceSettings,
    cache: Path | None,
    carry_out: Callable[[Request], None],
    own_cpu: SelfCpu,
    started: ExitStack,
) -> tuple[Loaded, LaterRequests, Prices | None]:
    """Load the programs, some of them later if all went well earlier in this boot; also return prices of then."""
    earlier = loaded_earlier(cache, settings.interpreter) if cache is not None else None
    known = kept_prices(cache, earlier.mode) if cache is not None and earlier is not None else None
    loaded = load(
        interpreter=settings.interpreter,
        memory_bytes=settings.memory_bytes,
        buckets=BUCKETS,
        modes=settings.links,
        cache=cache,
        sampling=settings.sampling,
        waiting=settings.waiting,
        postponing=known is not None,  # calibration needs all programs
    )
    started.callback(loaded.close)
    later = LaterPrograms(loaded, settings.interpreter)
    started.callback(later.close)
    own_cpu.take_ended()
    if settings.sampling and not settings.watch:
        later.awaited(SAMPLING, niceness=0)  # nothing is found without samples
    is_same = earlier is not None and earlier.mode == loaded.mode
    return loaded, LaterRequests(later, carry_out), known if is_same else None


def _counts(loaded: Loaded) -> KernelCounts:
    """Open what the programs tell and count."""
    maps, entries = loaded.maps, loaded.entries
    return KernelCounts(
        outcomes=map_array(maps["walk_outcomes"], entries["walk_outcomes"], "<u8"),
        counters=map_array(maps["counters"], MAX_SLOTS, COUNTERS),
        unsent=map_array(maps["unsent"], len(UNSENT), "<u8"),
        events=RingBuffer(maps["events"], entries["events"]),
        stacks=RingBuffer(maps["stacks"], entries["stacks"]),
        seen_paths=HashMap(maps["seen_paths"], "<u8", "<u8"),
    )
