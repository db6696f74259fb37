"""Unwind rules for the kernel: .eh_frame (and .debug_frame) to rows of 8 bytes, sorted by file offset.

A row is (pc, info). It holds from file offset ``pc`` to the next row. ``info``, read by ``bpf/walk/unwind.h`` too:

bits 0-2, kind
    0 none: no frame is described here, or its rule cannot be expressed;
    1 CFA = sp + n;  2 CFA = fp + n;
    3 the PLT's expression, which the machine knows;
    4 CFA = \\*(fp + n);  5 CFA = \\*(sp + n) + what a call pushes;
    6 the end: the return address is undefined (_start, clone);
    7 signal frame: the interrupted registers are in the ucontext at sp.
bits 3-4, the caller's fp
    0 unchanged;  1 saved at CFA - 8 k;  2 not known.
bits 5-12, k; bits 13-31, n / 8 as a signed number.

sp and fp are the stack and the frame pointer. The CFA is the caller's sp after the return; the return address stands
below it by what a call pushes. Kinds 0, 6 and 7 have no other bits set. DWARF 5, section 6.4; the LSB's .eh_frame.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specmine.probes.arch.machine import machine
from specmine.probes.elf.facts import RowTable

from .cfa_program import Cie, Program, run_program
from .eh_frame import read_entries
from .image import Image

PAGE_BITS = 8
"""One page index entry for 2**8 bytes of file."""
ENTRY_ROW = 1 | (machine().unwind.pushed >> 3) << 13
"""Rule at the first instruction of an ordinary function: only the call has moved sp, fp is unchanged."""
PLT_ROW = 3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Frames:
    """All that the call frame information of a binary says."""

    starts: NDArray[np.int64]
    """File offsets of the ranges described, ascending, no two equal, shape (ranges,)."""
    sizes: NDArray[np.int64]
    first: NDArray[np.uint32]
    """Info of each range's first row."""
    rows: RowTable
    personality: bool
    """True if a language's own routine takes part in unwinding some range (exceptions, clean-ups)."""


def read_frames(image: Image) -> Frames:
    """Read .eh_frame, then what only .debug_frame describes.

    Nothing in the sections is trusted: what is malformed is left out, ranges that overlap are cut.
    """
    programs: dict[tuple[Cie, bytes], int] = {}
    templates: list[Program] = []
    starts: list[int] = []
    sizes: list[int] = []
    chosen: list[int] = []
    personality = False
    for entry in read_entries(image):
        key = (entry.cie, entry.program)
        template = programs.get(key, -1)
        if template < 0:  # small functions share their programs: many need no second run
            template = programs[key] = len(templates)
            templates.append(run_program(entry.cie, entry.program))
            personality = personality or entry.cie.personality
        starts.append(entry.start)
        sizes.append(entry.size)
        chosen.append(template)
    ranges = _Ranges.of(image, starts, sizes, chosen)
    last = max((each.offset + each.file_size for each in image.code), default=0)
    rows = _rows(ranges, templates, min(last, 1 << 32))
    first = np.array([each.info[0] for each in templates], dtype=np.uint32)
    return Frames(
        starts=ranges.start,
        sizes=ranges.size,
        first=first[ranges.template],
        rows=rows,
        personality=personality,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Ranges:
    start: NDArray[np.int64]
    size: NDArray[np.int64]
    template: NDArray[np.int64]

    @classmethod
    def of(cls, image: Image, starts: list[int], sizes: list[int], templates: list[int]) -> _Ranges:
        """Map addresses to file offsets, sort, and cut so that no two ranges overlap."""
        address = np.array(starts, dtype=np.uint64)
        start = image.code_offsets(address)
        size = np.minimum(np.array(sizes, dtype=np.uint64), np.uint64(1 << 40)).astype(np.int64)
        template = np.array(templates, dtype=np.int64)
        for each in image.code:
            inside = (start >= each.offset) & (start < each.offset + each.file_size)
            size[inside] = np.minimum(size[inside], each.offset + each.file_size - start[inside])
        usable = (start >= 0) & (size > 0) & (start + size < 1 << 32)
        start, size, template = start[usable], size[usable], template[usable]
        # of several ranges with one start the first that was read counts
        start, first = np.unique(start, return_index=True)
        size, template = size[first], template[first]
        if len(start):
            size[:-1] = np.minimum(size[:-1], np.diff(start))
        return cls(start=start, size=size, template=template)


def _rows(ranges: _Ranges, templates: list[Program], last: int) -> RowTable:
    """Lay the programs' rows at their ranges, close each range, merge equal neighbours."""
    pages = np.arange((last >> PAGE_BITS) + 2, dtype=np.int64) << PAGE_BITS
    if not len(ranges.start):
        empty = np.empty(0, dtype=np.uint32)
        return RowTable(pc=empty, info=empty.copy(), pages=np.zeros(len(pages), dtype=np.uint32))
    lengths = np.array([len(each.location) for each in templates], dtype=np.int64)
    begins = np.concatenate(([0], np.cumsum(lengths)[:-1]))
    location = np.concatenate([np.array(each.location, dtype=np.int64) for each in templates])
    rule = np.concatenate([np.array(each.info, dtype=np.uint32) for each in templates])

    counts = lengths[ranges.template]
    shift = begins[ranges.template] - (np.cumsum(counts) - counts)
    source = np.arange(counts.sum()) + np.repeat(shift, counts)
    relative = location[source]
    inside = relative < np.repeat(ranges.size, counts)
    pc = (np.repeat(ranges.start, counts) + relative)[inside]
    info = rule[source][inside]

    end = ranges.start + ranges.size
    open_end = np.append(end[:-1] < ranges.start[1:], True)
    pc = np.concatenate((pc, end[open_end]))
    info = np.concatenate((info, np.zeros(int(open_end.sum()), dtype=np.uint32)))
    order = np.argsort(pc, kind="stable")
    pc, info = pc[order], info[order]
    differs = np.append(True, info[1:] != info[:-1])
    pc, info = pc[differs].astype(np.uint32), info[differs]
    first = np.searchsorted(pc, pages, side="right") - 1
    return RowTable(pc=pc, info=info, pages=np.maximum(first, 0).astype(np.uint32))
