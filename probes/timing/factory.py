"""Put together what times functions, over the maps of loaded programs."""

from __future__ import annotations

import random
from typing import Any

from numpy.typing import NDArray

from specmine.model.batch import Prices
from specmine.probes.kernel.links import Links
from specmine.probes.kernel.loader import SAMPLING, Loaded
from specmine.probes.kernel.maps import CachedMap, HashMap, kernel_at_least, map_array
from specmine.probes.kernel.structs import (
    CALL_SAMPLE_PAGE,
    CALL_WAIT,
    EPOCHS,
    FREE_SLOTS,
    INSIDE_KEY,
    INSIDE_VALUE,
    MAX_SLOTS,
    NEST,
    OFF_CPU,
    OFF_CPU_VALUE,
    PATH_BUCKET,
    RETURN_SITE,
    SAMPLE_VALUE,
    SETTINGS,
    WAIT,
)
from specmine.probes.process.bystanders import Bystanders
from specmine.probes.process.code_sizes import CodeSizes
from specmine.probes.process.tracker import ProcessTracker
from specmine.probes.safety.gate import Gate
from specmine.probes.sampling.profiler import Profiler
from specmine.probes.symbols.modules import Modules
from specmine.probes.symbols.return_addresses import ReturnAddresses
from specmine.probes.symbols.symbolizer import Symbolizer

from .activity import ActivityMeter
from .attacher import Attacher
from .function.open_calls import OpenCalls
from .function.slot import Slot
from .hit_watch import HitWatch
from .inside import InsideMeter
from .isolation import Isolation
from .link_table import LinkTable
from .phases.duty_cycle import DutyCycle
from .placement import Placement
from .process_choice import ProcessChoice
from .registry import Registry
from .reservoir import CallReservoir
from .return_probes import ReturnProbes
from .slot_rows import SlotRows
from .waits import WaitMeter
from .windows import Windows

MAX_PERF = 6
"""Functions timed at once over perf events, which are detached slowly."""


def wait_meter_over(loaded: Loaded, profiler: Profiler, symbolizer: Symbolizer) -> WaitMeter | None:
    """Return what follows where calls wait, None if its programs are not, and will not be, loaded."""
    if "on_switch" not in loaded.programs and SAMPLING not in loaded.later:
        return None
    maps = loaded.maps
    return WaitMeter(
        profiler.tracepoint,
        map_array(maps["settings"], 1, SETTINGS, writable=True),
        HashMap(maps["waits"], "<u4", WAIT),
        HashMap(maps["call_waits"], CALL_WAIT, SAMPLE_VALUE),
        symbolizer,
        map_array(maps["histogram"], loaded.entries["histogram"], "<u8"),
    )


def registry_over(
    loaded: Loaded,
    *,
    slots: NDArray[Any],
    counters: NDArray[Any],
    prices: Prices,
    links: Links,
    modules: Modules,
    symbolizer: Symbolizer,
    tracker: ProcessTracker,
    bystanders: Bystanders,
    isolate: bool,
    max_open_ns: int,
    code_sizes: CodeSizes,
    return_addresses: ReturnAddresses,
    waits: WaitMeter | None = None,
) -> Registry:
    """Return the registry of timed functions; ``isolate``: probes are detached for another function's sake."""
    maps, emulates_nops = loaded.maps, kernel_at_least(6, 16)
    chance = random.Random(0)
    gate = Gate(modules, tracker, mode=loaded.mode, emulates_nops=emulates_nops)
    epochs = map_array(maps["epochs"], 1, EPOCHS, writable=True)
    known_returns = CachedMap(maps["return_sites"], RETURN_SITE, "<u8", epochs)
    returns = ReturnProbes(links, modules, known_returns, gate, return_addresses, emulates_nops=emulates_nops)
    isolation = Isolation(map_array(maps["nests"], MAX_SLOTS, NEST, writable=True))
    windows = Windows(
        map_array(maps["histogram"], loaded.entries["histogram"], "<u8"),
        HashMap(maps["path_histogram"], PATH_BUCKET, "<u8"),
        symbolizer,
        prices,
        isolation,
        CallReservoir(map_array(maps["call_samples"], MAX_SLOTS, CALL_SAMPLE_PAGE, writable=True), random.Random(0)),
        InsideMeter(HashMap(maps["inside"], INSIDE_KEY, INSIDE_VALUE), counters, isolation, split=loaded.waiting),
        SlotRows(HashMap(maps["off_cpu"], OFF_CPU, OFF_CPU_VALUE)) if loaded.waiting else None,
        waits,
        HitWatch(counters),
    )
    activity = ActivityMeter(prices)
    choice = ProcessChoice(modules, tracker, bystanders, gate, chance)
    table = LinkTable(links, returns, windows.leaving)
    attacher = Attacher(gate, choice, table, windows, activity, symbolizer, code_sizes)
    slow = loaded.mode == "perf"
    kernel_slots = [Slot(number, slots, counters) for number in range(MAX_PERF if slow else FREE_SLOTS)]
    duty_cycle = DutyCycle(attacher, choice, windows, isolation, chance)
    return Registry(
        duty_cycle=duty_cycle,
        attacher=attacher,
        links=table,
        returns=returns,
        windows=windows,
        activity=activity,
        isolation=isolation,
        placement=Placement(duty_cycle.functions, attacher, table, gate, modules, tracker, bystanders),
        gate=gate,
        modules=modules,
        symbolizer=symbolizer,
        tracker=tracker,
        bystanders=bystanders,
        slots=[(slot, OpenCalls(slot, max_open_ns)) for slot in kernel_slots],
        isolate=isolate and not slow,
    )
