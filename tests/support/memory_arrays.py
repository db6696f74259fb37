"""The kernel's arrays of unwind rows as files in memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from specmine.probes.kernel.loader import Loaded
from specmine.probes.kernel.structs import LAYOUT


@contextmanager
def arrays(rows: int, pages: int) -> Iterator[Loaded]:
    """Give files in memory in place of the kernel's arrays, so many bytes as the kernel would map."""
    entries = {"rows": rows, "page_index": pages, "layouts": 8}
    sizes = {"rows": 8, "page_index": 8, "layouts": LAYOUT.itemsize}
    maps = {}
    for name, count in entries.items():
        maps[name] = os.memfd_create(name)
        os.truncate(maps[name], -(-count * sizes[name] // 4096) * 4096)
    loaded = Loaded(mode="", maps=maps, entries=entries, programs={}, notes=(), seconds=0)
    try:
        yield loaded
    finally:
        loaded.close()
