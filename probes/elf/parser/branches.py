"""Direct branches with 32-bit displacements, found by their opcode bytes without disassembling.

A byte of an operand may look like an opcode, so this finds a little more than there is and never less. That
is the safe side: a place that nothing here reaches is reached by no such branch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .image import Image

_CHUNK = 1 << 24
CALL, JUMP, CONDITIONAL = 0, 1, 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Branches:
    """Possible direct branches, sorted by target."""

    source: NDArray[np.int64]
    """File offset of the opcode."""
    target: NDArray[np.int64]
    kind: NDArray[np.uint8]
    """CALL, JUMP or CONDITIONAL."""

    def into(self, start: int, end: int) -> slice:
        """Return which branches have their target in [start, end)."""
        low, high = np.searchsorted(self.target, (start, end))
        return slice(int(low), int(high))


def find_branches(image: Image) -> Branches:
    """Return every place in the code that may be a call, jmp or jcc with a 32-bit displacement into code."""
    sources: list[NDArray[np.int64]] = []
    targets: list[NDArray[np.int64]] = []
    kinds: list[NDArray[np.uint8]] = []
    data = image.view
    for segment in image.code:
        end = segment.offset + segment.file_size
        for begin in range(segment.offset, end, _CHUNK):
            code = data[begin : min(begin + _CHUNK + 6, end)]
            for kind, found, length in _opcodes(code):
                at = found[(found + length <= len(code)) & (found < _CHUNK)]
                where = at + length - 4
                low = code[where].astype(np.uint32) | code[where + 1].astype(np.uint32) << 8
                high = code[where + 2].astype(np.uint32) | code[where + 3].astype(np.uint32) << 8
                target = begin + at + length + (low | high << 16).astype(np.int32)
                inside = (target >= segment.offset) & (target < end)
                sources.append(begin + at[inside])
                targets.append(target[inside])
                kinds.append(np.full(int(inside.sum()), kind, dtype=np.uint8))
    if not targets:
        empty = np.empty(0, dtype=np.int64)
        return Branches(source=empty, target=empty, kind=np.empty(0, dtype=np.uint8))
    target = np.concatenate(targets)
    order = np.argsort(target, kind="stable")
    return Branches(source=np.concatenate(sources)[order], target=target[order], kind=np.concatenate(kinds)[order])


def _opcodes(code: NDArray[np.uint8]) -> tuple[tuple[int, NDArray[np.int64], int], ...]:
    second = np.flatnonzero((code[1:] & 0xF0) == 0x80)
    return (
        (CALL, np.flatnonzero(code == 0xE8), 5),
        (JUMP, np.flatnonzero(code == 0xE9), 5),
        (CONDITIONAL, second[code[second] == 0x0F], 6),
    )
