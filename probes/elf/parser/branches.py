"""The direct branches of a file, and where they lead."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specmine.probes.arch.interface import Branch
from specmine.probes.arch.machine import machine

from .image import Image

_CHUNK = 1 << 24
_CODE = machine().instruction_set()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Branches:
    """Possible direct branches, sorted by target."""

    source: NDArray[np.int64]
    """File offset of the opcode."""
    target: NDArray[np.int64]
    kind: NDArray[np.uint8]
    """Values of ``Branch``."""

    def into(self, start: int, end: int) -> slice:
        """Return which branches have their target in [start, end)."""
        low, high = np.searchsorted(self.target, (start, end))
        return slice(int(low), int(high))


def find_branches(image: Image) -> Branches:
    """Return every place in the code that may be a direct branch into code of the same segment."""
    parts: list[tuple[Branch, NDArray[np.int64], NDArray[np.int64]]] = []
    data = image.view
    for segment in image.code:
        end = segment.offset + segment.file_size
        for begin in range(segment.offset, end, _CHUNK):
            code = data[begin : min(begin + _CHUNK + _CODE.BRANCH_SIZE, end)]
            for kind, places, targets in _CODE.direct_branches(code):
                target = begin + targets
                inside = (places < _CHUNK) & (target >= segment.offset) & (target < end)
                parts.append((kind, begin + places[inside], target[inside]))
    if not parts:
        empty = np.empty(0, dtype=np.int64)
        return Branches(source=empty, target=empty, kind=np.empty(0, dtype=np.uint8))
    source = np.concatenate([places for _, places, _ in parts])
    target = np.concatenate([targets for _, _, targets in parts])
    kinds = np.concatenate([np.full(len(places), kind, dtype=np.uint8) for kind, places, _ in parts])
    order = np.argsort(target, kind="stable")
    return Branches(source=source[order], target=target[order], kind=kinds[order])
