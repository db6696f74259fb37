"""Rows of the fleet as bytes: histograms and call paths as varints, all histograms of a row as one structure of arrays.

``blocks`` reads and writes the numbers. A row holds no names: its call paths are a list of numbers beside it. Bytes are
compressed where that makes them shorter. They may come from anywhere: what is read is bounded, and what no histogram
can be is a ValueError. What is checked here once is copied as it came.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from specmine.model.call_path import CallPath, Frame
from specmine.model.histogram import Histogram
from specmine.model.observation import PathHistogram
from specmine.model.split import Split

from .blocks import Block, block_at, block_bytes, block_from, block_numbers, block_of
from .varints import Numbers, Places, decode_parts, encode_numbers, encode_parts, signed, spans, unsigned

T = TypeVar("T")
LARGEST = 8 << 20
"""Bytes of a push or row, inflated."""
WRITTEN_AT_ONCE = 1 << 14
"""Used buckets of rows that are written together."""
AT_ONCE = 1 << 17
"""Inflated bytes of rows that are read together: more would not be faster, and takes memory."""
_PLAIN, _PACKED = b"\0", b"\1"
_LARGEST_HISTOGRAM = 16 << 10  # every bucket used, and each count as large as it may be


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PathBlock:
    """The histograms of call paths of some rows."""

    paths: Block
    """A histogram for each path."""
    split: Places
    """Which of the row's paths have a split, row by row."""
    splits: Block
    """Three histograms for each of those."""


def encode_histograms(histograms: Sequence[Histogram]) -> bytes:
    """Return the bytes of some histograms."""
    (raw,) = histogram_bytes([histograms])
    return deflated(raw)


def histogram_bytes(rows: Iterable[Sequence[Histogram]]) -> Iterator[bytes]:
    """Yield the bytes of the histograms of each row, not compressed: of many rows much faster than one by one."""
    for some in _written_together(rows, lambda row: row):
        yield from block_bytes(_block(some))


def _written_together(rows: Iterable[T], histograms: Callable[[T], Sequence[Histogram]]) -> Iterator[list[T]]:
    """Yield rows, some at a time: all at once would take much memory."""
    some, used = list[T](), 0
    for row in rows:
        some.append(row)
        used += sum(len(each.buckets) for each in histograms(row))
        if used > WRITTEN_AT_ONCE:
            yield some
            some, used = [], 0
    if some:
        yield some


def _block(rows: Sequence[Sequence[Histogram]]) -> Block:
    return block_from([each for row in rows for each in row], np.array([len(row) for row in rows], np.int64))


def decode_histograms(data: bytes, number: int) -> tuple[Histogram, ...]:
    """Return so many histograms of ``encode_histograms``; ValueError if the bytes are not those of so many."""
    found = block_of([inflated(data, (1 + number) * _LARGEST_HISTOGRAM)]).histograms()
    if len(found) != number:
        raise ValueError(f"{len(found)} histograms instead of {number}")
    return tuple(found)


def encode_split(split: Split) -> bytes:
    """Return the bytes of what calls did of their time."""
    return encode_histograms(parts_of(split))


def parts_of(split: Split) -> tuple[Histogram, Histogram, Histogram]:
    """Return the histograms of what calls did of their time, in the order in which they are written."""
    return split.waiting_ns, split.blocked_ns, split.on_cpu


def decode_split(data: bytes) -> Split:
    """Return the split of ``encode_split``; ValueError if it is none."""
    waiting, blocked, on_cpu = decode_histograms(data, 3)
    return Split(waiting_ns=waiting, blocked_ns=blocked, on_cpu=on_cpu)


def frames_bytes(path: CallPath) -> bytes:
    """Return the frames of a path as JSON, in the one form that its hash is made of."""
    names = [[each.name, each.module] for each in path.frames]
    return json.dumps([int(path.complete), names], ensure_ascii=True, separators=(",", ":")).encode("ascii")


def path_hash(path: CallPath) -> int:
    """Return the hash of a path: 64 bits, signed as PostgreSQL has them."""
    return int.from_bytes(hashlib.blake2b(frames_bytes(path), digest_size=8).digest(), "little", signed=True)


def path_of(data: bytes) -> CallPath:
    """Return the path of ``frames_bytes``; ValueError for anything else."""
    try:
        complete, names = json.loads(data)
        if not all(type(name) is str and type(module) is str for name, module in names):
            raise ValueError("a frame is no text")
        return CallPath(tuple(Frame(name, module) for name, module in names), complete=complete == 1)
    except (TypeError, RecursionError) as error:
        raise ValueError(f"not a call path: {error}") from error


def encode_path_numbers(numbers: Sequence[int]) -> bytes:
    """Return the numbers of a row's call paths as the distances between them."""
    these = np.array(numbers, np.int64)
    return encode_numbers(signed(these - np.concatenate(([0], these))[:-1]))


def decode_path_numbers(data: bytes) -> list[int]:
    """Return the numbers of ``encode_path_numbers``; ValueError if they are none."""
    numbers, _ = decode_parts([data])
    found: list[int] = np.cumsum(unsigned(numbers)).tolist()
    return found


def encode_paths(paths: Sequence[PathHistogram]) -> bytes:
    """Return the bytes of the histograms of call paths. Which paths these are stands elsewhere."""
    (raw,) = bytes_of_paths([paths])
    return deflated(raw)


def bytes_of_paths(rows: Iterable[Sequence[PathHistogram]]) -> Iterator[bytes]:
    """Yield the bytes of the call paths of each row, not compressed."""
    for some in _written_together(rows, lambda row: [each.histogram for each in row]):
        yield from _bytes_of_paths(some)


def _bytes_of_paths(rows: Sequence[Sequence[PathHistogram]]) -> list[bytes]:
    split = [[at for at, each in enumerate(row) if each.split is not None] for row in rows]
    of_splits = [[one for each in row if each.split is not None for one in parts_of(each.split)] for row in rows]
    parts = zip(
        _row_numbers(_block([[each.histogram for each in row] for row in rows])),
        (np.array([len(each), *each], np.uint64) for each in split),
        _row_numbers(_block(of_splits)),
        strict=True,
    )
    numbers = [np.concatenate(each) for each in parts]
    sizes = np.array([len(each) for each in numbers], np.int64)
    return encode_parts(np.concatenate([np.empty(0, np.uint64), *numbers]), sizes)


def _row_numbers(block: Block) -> list[Numbers]:
    numbers, width = block_numbers(block)
    ends = np.cumsum(width)
    return [numbers[end - one : end] for one, end in zip(width.tolist(), ends.tolist(), strict=True)]


def path_block(raws: list[bytes]) -> PathBlock:
    """Return the call paths of rows, given their inflated bytes; ValueError if they are damaged."""
    values, sizes = decode_parts(raws)
    ends = np.cumsum(sizes)
    paths, at = block_at(values, ends - sizes, ends)
    if np.any(at >= ends) or np.any(values[at] > paths.number.astype(np.uint64)):
        raise ValueError("call paths are cut short")
    number = values[at].astype(np.int64)
    if np.any(at + 1 + number > ends):
        raise ValueError("call paths are cut short")
    split = values[spans(at + 1, number)].astype(np.int64)
    row = np.repeat(np.arange(len(raws)), number)
    backwards = (np.diff(split, prepend=-1) <= 0) & (np.diff(row, prepend=-1) == 0)
    if np.any(backwards) or np.any(split < 0) or np.any(split >= paths.number[row]):
        raise ValueError("splits of call paths are damaged")
    splits, after = block_at(values, at + 1 + number, ends)
    if np.any(after != ends) or np.any(splits.number != 3 * number):
        raise ValueError("splits of call paths are damaged")
    return PathBlock(paths=paths, split=split, splits=splits)


def path_bytes(block: Block) -> list[bytes]:
    """Return the bytes of rows of call paths without splits."""
    numbers, width = block_numbers(block)
    starts = np.cumsum(width) - width
    whole = np.zeros(len(numbers) + 2 * len(width), np.uint64)
    whole[spans(starts + 2 * np.arange(len(width)), width)] = numbers  # no split, and no histogram of one
    return encode_parts(whole, width + 2)


def decode_paths(data: bytes, paths: Sequence[CallPath]) -> tuple[PathHistogram, ...]:
    """Return the histograms of ``encode_paths``; ValueError if they are damaged, or not those of so many paths."""
    block = path_block([inflated(data)])
    histograms, parts = block.paths.histograms(), block.splits.histograms()
    if len(histograms) != len(paths) or len(set(paths)) < len(paths):
        raise ValueError(f"{len(histograms)} histograms of {len(paths)} call paths, or one is there twice")
    splits = {
        row: Split(waiting_ns=parts[3 * at], blocked_ns=parts[3 * at + 1], on_cpu=parts[3 * at + 2])
        for at, row in enumerate(block.split.tolist())
    }
    return tuple(
        PathHistogram(path=path, histogram=histogram, split=splits.get(row))
        for row, (path, histogram) in enumerate(zip(paths, histograms, strict=True))
    )


def portions(blobs: Sequence[bytes], most: int) -> Iterator[tuple[list[int], list[bytes]]]:
    """Yield the places of blobs with their inflated bytes, some at a time.

    Raises
    ------
    ValueError
        If a blob is damaged, or all of them inflate to more than ``most`` bytes.
    """
    places: list[int] = []
    raws: list[bytes] = []
    size = 0
    for place, blob in enumerate(blobs):
        raw = inflated(blob, min(most, LARGEST))
        most -= len(raw)
        if raws and size + len(raw) > AT_ONCE:
            yield places, raws
            places, raws, size = [], [], 0
        places.append(place)
        raws.append(raw)
        size += len(raw)
    if raws:
        yield places, raws


def inflated(data: bytes, most: int = LARGEST) -> bytes:
    """Return the bytes of ``deflated``; ValueError if they are none, or more than ``most``."""
    kind, body = data[:1], data[1:]
    if kind == _PLAIN and len(body) <= most:
        return body
    if kind != _PACKED:
        raise ValueError("bytes of no known kind")
    inflater = zlib.decompressobj()
    try:
        found = inflater.decompress(body, max(1, most))
    except zlib.error as error:
        raise ValueError(f"damaged bytes: {error}") from error
    if not inflater.eof or inflater.unused_data:
        raise ValueError("bytes are cut short or too many")
    return found


def deflated(data: bytes) -> bytes:
    """Return bytes compressed, if that makes them fewer."""
    packed = zlib.compress(data, 6)
    return _PACKED + packed if len(packed) < len(data) else _PLAIN + data
