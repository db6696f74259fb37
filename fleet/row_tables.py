"""Call paths and rows of a push as tables, field by field.

What rows hold is checked for all rows at once, and stays the bytes that came: the database holds the same form.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specmine.model.call_path import CallPath, Frame
from specmine.model.observation import Kind
from specmine.store.inside_codec import decode_inside

from .blocks import block_of
from .checked_values import LARGEST_INT, LONGEST_KEY, BadPush, Reader, column, listed, reals
from .codec import path_block, portions
from .push import BYTES, LARGEST_ROWS, REAL, WHOLE
from .varints import Places, decode_parts, has_twice, unsigned

_MOST_CALLS, _LONGEST_NS = 1 << 40, 1 << 50  # of one row: sums over all hosts still fit 64 bits
_MOST_WINDOWS = 1 << 31
_KINDS = frozenset(each.value for each in Kind)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PathTable:
    """Call paths as places in a list of frames."""

    frames: list[tuple[str, str]]
    """Name and module of each."""
    complete: NDArray[np.bool_]
    sizes: Places
    """Frames of each path."""
    places: Places
    """The frames of all paths, one path after the other."""

    def paths(self, numbers: Iterable[int]) -> list[CallPath]:
        """Return some of them."""
        frames, ends = [Frame(*each) for each in self.frames], np.cumsum(self.sizes).tolist()
        starts, places, complete = [0, *ends], self.places.tolist(), self.complete.tolist()
        return [
            CallPath(tuple(frames[at] for at in places[starts[one] : ends[one]]), complete=complete[one])
            for one in numbers
        ]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowTable:
    """The rows of a push, field by field."""

    function: Places
    """Place in the push's list of functions."""
    lifetime: Places
    kind: list[str]
    windows: Places
    whole: Mapping[str, Places]
    """The fields of ``WHOLE``."""
    real: Mapping[str, NDArray[np.float64]]
    timed: Places
    blobs: Mapping[str, list[bytes | None]]
    """The fields of ``BYTES``, as the codec writes them."""
    path_number: Places
    """Call paths of each row."""
    path: Places
    """Which they are, row by row."""

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.kind)


def path_table(frames: list[tuple[str, str]], number: int, data: bytes) -> PathTable:
    """Return the call paths in some bytes, checked."""
    values, _ = decode_parts([data])
    if len(values) < number or np.any(values[:number] >= LONGEST_KEY * 1000):
        raise BadPush("call paths are cut short")
    sizes = (values[:number] >> np.uint64(1)).astype(np.int64)
    places = values[number:]
    if len(places) != int(sizes.sum()) or np.any(places >= len(frames)):
        raise BadPush("call paths are cut short, or have an unknown frame")
    return PathTable(
        frames=frames, complete=(values[:number] & np.uint64(1)) == 1, sizes=sizes, places=places.astype(np.int64),
    )  # fmt: skip


def row_table(head: Mapping[str, Any], reader: Reader, known: tuple[int, int, int], chosen: bytes) -> RowTable:
    """Return rows, checked; ``known``: how many functions, lifetimes and paths the push has."""
    functions, lifetimes, paths = known
    kind = head["kind"]
    number = len(kind)
    whole = {name: column(head[name], number, LARGEST_INT) for name in WHOLE}
    windows = column(head["windows"], number, _MOST_WINDOWS)
    if not set(kind) <= _KINDS or np.any(windows == 0):
        raise BadPush("a row has an unknown kind, or no window")
    if np.any(whole["end_ns"] <= whole["start_ns"]) or np.any(whole["watched_ns"] >= _LONGEST_NS):
        raise BadPush("a window ends before it starts, or is too long")
    if any(np.any(whole[name] >= _MOST_CALLS) for name in ("calls", "inner", "censored")):
        raise BadPush("no window holds so many calls")
    blobs = {name: [reader.take(size) if size else None for size in listed(head[name], number)] for name in BYTES}
    timed = _timed(blobs["counts"])
    if np.any(timed > whole["calls"]):
        raise BadPush("more calls were timed than counted")
    _check_splits(blobs["split"])
    for each in blobs["inside"]:
        if each is not None:
            decode_inside(each)
    path_number, path = _paths_of_rows(blobs["paths"], chosen, paths)
    return RowTable(
        function=column(head["function"], number, functions), lifetime=column(head["lifetime"], number, lifetimes),
        kind=kind, windows=windows, whole=whole, real={name: reals(head[name], number) for name in REAL},
        timed=timed, blobs=blobs, path_number=path_number, path=path,
    )  # fmt: skip


def _timed(counts: list[bytes | None]) -> Places:
    """Return the calls of each row's histogram."""
    timed = np.zeros(len(counts), np.int64)
    for places, raws in portions([each or b"" for each in counts], LARGEST_ROWS):
        block = block_of(raws)
        if np.any(block.number != 1):
            raise BadPush("a row has not one histogram")
        timed[places] = block.totals
    return timed


def _check_splits(splits: list[bytes | None]) -> None:
    for _, raws in portions([each for each in splits if each is not None], LARGEST_ROWS):
        if np.any(block_of(raws).number != 3):
            raise BadPush("a split has not three histograms")


def _paths_of_rows(blobs: list[bytes | None], chosen: bytes, known: int) -> tuple[Places, Places]:
    """Return how many call paths each row has, and which they are, row by row."""
    number = np.zeros(len(blobs), np.int64)
    filled = [at for at, each in enumerate(blobs) if each is not None]
    for places, raws in portions([each for each in blobs if each is not None], LARGEST_ROWS):
        block = path_block(raws).paths
        if np.any(block.totals >= _MOST_CALLS):
            raise BadPush("no window holds so many calls")
        number[[filled[at] for at in places]] = block.number
    distances = unsigned(decode_parts([chosen])[0])
    if len(distances) != int(number.sum()) or np.any(np.abs(distances) > known):
        raise BadPush("call paths of rows are cut short")
    sums = np.concatenate(([0], np.cumsum(distances)))
    path = sums[1:] - np.repeat(sums[np.cumsum(number) - number], number)
    row = np.repeat(np.arange(len(blobs)), number)
    if np.any(path < 0) or np.any(path >= known) or has_twice(row * (known + 1) + path):
        raise BadPush("a call path is unknown, or there twice")
    return number, path
