"""Put together what watches functions, over the maps of loaded programs."""

from __future__ import annotations

import random
from typing import Any

from numpy.typing import NDArray

from specmine.probes.batch import Prices
from specmine.probes.bystanders import Bystanders
from specmine.probes.gate import Gate
from specmine.probes.kernel import HashMap, RememberedMap, kernel_at_least, map_array
from specmine.probes.layout import (
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
from specmine.probes.links import Links
from specmine.probes.loading import Loaded
from specmine.probes.modules import Modules
from specmine.probes.naming import Naming
from specmine.probes.programs import Programs

from .absences import Absences
from .buckets import Buckets
from .choosing import Choosing
from .isolation import Isolation
from .linking import Linking
from .returns import ReturnSites
from .singles import SingleDurations
from .switching import Switching
from .table import Watching
from .windows import Windows

MAX_PERF = 6
"""Functions watched at once over perf events, which come off slowly."""


def watching_over(
    loaded: Loaded,
    *,
    slots: NDArray[Any],
    counters: NDArray[Any],
    prices: Prices,
    links: Links,
    modules: Modules,
    naming: Naming,
    programs: Programs,
    bystanders: Bystanders,
    isolate: bool,
) -> Watching:
    """Return what watches functions by these parts; ``isolate``: probes go off for another function's sake."""
    maps, emulates_nops = loaded.maps, kernel_at_least(6, 16)
    chance = random.Random(0)
    gate = Gate(modules, programs, mode=loaded.mode, emulates_nops=emulates_nops)
    changes = map_array(maps["changes"], 1, CHANGES, writable=True)
    known_returns = RememberedMap(maps["return_sites"], RETURN_SITE, "<u8", changes)
    returns = ReturnSites(links, modules, known_returns, gate, emulates_nops=emulates_nops)
    buckets = Buckets(slots, counters, prices)
    isolation = Isolation(map_array(maps["nests"], MAX_SLOTS, NEST, writable=True))
    windows = Windows(
        counters,
        map_array(maps["histogram"], loaded.entries["histogram"], "<u8"),
        HashMap(maps["path_histogram"], PATH_BUCKET, "<u8"),
        naming,
        prices,
        isolation,
        SingleDurations(map_array(maps["singles"], MAX_SLOTS, SINGLE, writable=True), random.Random(0)),
        Absences(HashMap(maps["absences"], ABSENCE, ABSENCE_VALUE)) if loaded.waiting else None,
    )
    switching = Switching(
        programs=programs,
        bystanders=bystanders,
        naming=naming,
        gate=gate,
        choosing=Choosing(modules, programs, bystanders, gate, returns, chance),
        windows=windows,
        isolation=isolation,
        returns=returns,
        linking=Linking(links, returns, buckets),
        buckets=buckets,
        chance=chance,
    )
    slow = loaded.mode == "perf"
    return Watching(switching, modules, isolate=isolate and not slow, places=MAX_PERF if slow else FREE_SLOTS)
