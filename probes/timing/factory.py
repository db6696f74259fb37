"""Put together what watches functions, over the maps of loaded programs."""

from __future__ import annotations

import random
from typing import Any

from numpy.typing import NDArray

from specmine.model.batch import Prices
from specmine.probes.kernel.links import Links
from specmine.probes.kernel.loader import Loaded
from specmine.probes.kernel.maps import HashMap, RememberedMap, kernel_at_least, map_array
from specmine.probes.kernel.structs import (
    ABSENCE,
    ABSENCE_VALUE,
    CHANGES,
    FREE_SLOTS,
    MAX_SLOTS,
    NEST,
    PATH_BUCKET,
    RETURN_SITE,
    SINGLE,
)
from specmine.probes.process.bystanders import Bystanders
from specmine.probes.process.tracker import ProcessTracker
from specmine.probes.safety.gate import Gate
from specmine.probes.symbols.modules import Modules
from specmine.probes.symbols.symbolizer import Symbolizer

from .attachment import Attachments
from .duty_cycle import DutyCycle
from .isolation import Isolation
from .off_cpu import OffCpuCounts
from .process_choice import ProcessChoice
from .rate_limit import RateLimit
from .registry import Registry
from .reservoir import CallReservoir
from .return_sites import ReturnSites
from .windows import Windows

MAX_PERF = 6
"""Functions watched at once over perf events, which come off slowly."""


def registry_over(
    loaded: Loaded,
    *,
    slots: NDArray[Any],
    counters: NDArray[Any],
    prices: Prices,
    links: Links,
    modules: Modules,
    naming: Symbolizer,
    programs: ProcessTracker,
    bystanders: Bystanders,
    isolate: bool,
) -> Registry:
    """Return what watches functions by these parts; ``isolate``: probes go off for another function's sake."""
    maps, emulates_nops = loaded.maps, kernel_at_least(6, 16)
    chance = random.Random(0)
    gate = Gate(modules, programs, mode=loaded.mode, emulates_nops=emulates_nops)
    changes = map_array(maps["changes"], 1, CHANGES, writable=True)
    known_returns = RememberedMap(maps["return_sites"], RETURN_SITE, "<u8", changes)
    returns = ReturnSites(links, modules, known_returns, gate, emulates_nops=emulates_nops)
    buckets = RateLimit(slots, counters, prices)
    isolation = Isolation(map_array(maps["nests"], MAX_SLOTS, NEST, writable=True))
    windows = Windows(
        counters,
        map_array(maps["histogram"], loaded.entries["histogram"], "<u8"),
        HashMap(maps["path_histogram"], PATH_BUCKET, "<u8"),
        naming,
        prices,
        isolation,
        CallReservoir(map_array(maps["singles"], MAX_SLOTS, SINGLE, writable=True), random.Random(0)),
        OffCpuCounts(HashMap(maps["absences"], ABSENCE, ABSENCE_VALUE)) if loaded.waiting else None,
    )
    switching = DutyCycle(
        programs=programs,
        bystanders=bystanders,
        naming=naming,
        gate=gate,
        choosing=ProcessChoice(modules, programs, bystanders, gate, returns, chance),
        windows=windows,
        isolation=isolation,
        returns=returns,
        linking=Attachments(links, returns, buckets),
        buckets=buckets,
        chance=chance,
    )
    slow = loaded.mode == "perf"
    return Registry(switching, modules, isolate=isolate and not slow, places=MAX_PERF if slow else FREE_SLOTS)
