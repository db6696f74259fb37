"""Put together what samples stacks, over the maps of loaded programs."""

from __future__ import annotations

from collections.abc import Callable

from specmine.probes.kernel.links import Links
from specmine.probes.kernel.loader import Loaded
from specmine.probes.kernel.maps import HashMap, map_array
from specmine.probes.kernel.structs import SAMPLE, SAMPLE_VALUE, SETTINGS, SWITCHES, WAIT, WAIT_MARKS
from specmine.probes.symbols.return_addresses import ReturnAddresses
from specmine.probes.symbols.symbolizer import Symbolizer

from .profiler import Profiler


def profiler_over(
    loaded: Loaded,
    links: Links,
    symbolizer: Symbolizer,
    return_addresses: ReturnAddresses | None = None,
    note: Callable[[str], None] = lambda text: None,
) -> Profiler:
    """Return the profiler; it samples nothing yet."""
    maps = loaded.maps
    profiler = Profiler(
        links,
        symbolizer,
        HashMap(maps["samples"], SAMPLE, SAMPLE_VALUE),
        HashMap(maps["waits"], "<u4", WAIT),
        map_array(maps["wait_marks"], WAIT_MARKS, "<u8", writable=True),
        map_array(maps["settings"], 1, SETTINGS, writable=True),
        map_array(maps["switches"], 1, SWITCHES),
        return_addresses,
        note,
    )
    profiler.tracepoint.wakeups = loaded.wakeups
    return profiler
