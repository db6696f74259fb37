"""Histograms as bytes: only the buckets that hold something, compressed.

A histogram is its number of used buckets (uint32), their indices (uint16 each) and their counts (uint64
each), little-endian. Single durations are uint64 each. A call path's frames are indices into a table of names
that is stored once, at the head.

A file may come from anywhere: what is read is bounded, and what no histogram can be is refused.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Sequence

import numpy as np

from specmine.model.buckets import BUCKETS
from specmine.model.call_path import CallPath, Frame
from specmine.model.histogram import Histogram
from specmine.model.observation import PathHistogram
from specmine.model.split import Split

from .histogram_reader import LENGTH, DamagedBytes, HistogramReader, Later, read_at_once

LARGEST = 16 << 20
"""Bytes of the call paths, or of the callees, of one window, inflated."""
_HISTOGRAM = LENGTH.size + 10 * BUCKETS
_DURATIONS = 1 << 20
_MOST_FRAMES = 4096


def encode_histogram(histogram: Histogram) -> bytes:
    """Return the bytes of one histogram."""
    return zlib.compress(packed(histogram), 6)


def decode_histogram(blob: bytes) -> Histogram:
    """Return the histogram of ``encode_histogram``; DamagedBytes if they are none."""
    return read_at_once(read_histogram, blob)


def read_histogram(blob: bytes, reader: HistogramReader) -> Later[Histogram]:
    """Read the bytes of ``decode_histogram`` with those of others."""
    first, _ = reader.take(inflated(blob, _HISTOGRAM), 0, 1)
    return lambda held: held[first]


def encode_split(split: Split) -> bytes:
    """Return the bytes of what calls did of their time: its three histograms, one after the other."""
    return zlib.compress(_packed_split(split), 6)


def decode_split(blob: bytes) -> Split:
    """Return the split of ``encode_split``; DamagedBytes if they are none."""
    return read_at_once(read_split, blob)


def read_split(blob: bytes, reader: HistogramReader) -> Later[Split]:
    """Read the bytes of ``decode_split`` with those of others."""
    first, _ = reader.take(inflated(blob, 3 * _HISTOGRAM), 0, 3)
    return lambda held: _split(held, first)


def encode_paths(paths: Sequence[PathHistogram]) -> bytes:
    """Return the bytes of the histograms of call paths, paths included, and of what their calls did of their time."""
    frames = sorted({frame for each in paths for frame in each.path.frames})
    row = {frame: index for index, frame in enumerate(frames)}
    table = {
        "frames": [[frame.name, frame.module] for frame in frames],
        "paths": [[int(each.path.complete), *(row[frame] for frame in each.path.frames)] for each in paths],
        "splits": [index for index, each in enumerate(paths) if each.split is not None],
    }
    head = json.dumps(table, ensure_ascii=True, separators=(",", ":")).encode("ascii")
    histograms = b"".join(packed(each.histogram) for each in paths)
    splits = b"".join(_packed_split(each.split) for each in paths if each.split is not None)
    return zlib.compress(LENGTH.pack(len(head)) + head + histograms + splits, 6)


def decode_paths(blob: bytes) -> tuple[PathHistogram, ...]:
    """Return the histograms of ``encode_paths``; DamagedBytes if they are none."""
    return read_at_once(read_paths, blob)


def read_paths(blob: bytes, reader: HistogramReader) -> Later[tuple[PathHistogram, ...]]:
    """Read the bytes of ``decode_paths`` with those of others."""
    data = inflated(blob, LARGEST)
    try:
        (length,) = LENGTH.unpack_from(data, 0)
        at = LENGTH.size + length
        paths, split = _named(data[LENGTH.size : at], reader)
        whole, at = reader.take(data, at, len(paths))
        parts, _ = reader.take(data, at, 3 * len(split))
        first = {row: parts + 3 * place for place, row in enumerate(split)}
    except (struct.error, LookupError, TypeError, ValueError, RecursionError) as error:
        raise DamagedBytes(f"stored call paths are damaged: {error}") from error
    if not first.keys() <= set(range(len(paths))):
        raise DamagedBytes("stored call paths are damaged: the split of none")
    return lambda held: tuple(
        PathHistogram(path=path, histogram=held[whole + row], split=_split(held, first[row]) if row in first else None)
        for row, path in enumerate(paths)
    )


def _named(head: bytes, reader: HistogramReader) -> tuple[Sequence[CallPath], Sequence[int]]:
    """Return the call paths that a head names, and which of them have a split; windows of a function share heads."""
    found = reader.named.get(head)
    if found is None:
        table = json.loads(head)
        frames = [Frame(name, module) for name, module in table["frames"]]
        rows, split = table["paths"], table.get("splits", ())  # stores of schema 6 and older have no splits
        if any(len(row) > 1 + _MOST_FRAMES for row in rows):
            raise DamagedBytes(f"a stored call path has more than {_MOST_FRAMES} frames")
        paths = tuple(CallPath(tuple(frames[at] for at in row[1:]), complete=bool(row[0])) for row in rows)
        if len(set(paths)) < len(paths):
            raise DamagedBytes("a stored call path is there twice")
        found = reader.named[head] = paths, tuple(split)
    return found


def encode_durations(durations: Sequence[int]) -> bytes:
    """Return the bytes of durations in ns, in their order."""
    return zlib.compress(np.asarray(durations, dtype="<u8").tobytes(), 6)


def decode_durations(blob: bytes) -> tuple[int, ...]:
    """Return the durations of ``encode_durations``; DamagedBytes if they are none."""
    return tuple(np.frombuffer(inflated(blob, _DURATIONS), dtype="<u8").tolist())


def packed(histogram: Histogram) -> bytes:
    """Return the bytes of one histogram, not compressed."""
    used, counts = histogram.buckets, histogram.counts
    return LENGTH.pack(len(used)) + used.astype("<u2").tobytes() + counts.astype("<u8").tobytes()


def _packed_split(split: Split) -> bytes:
    return b"".join(packed(each) for each in (split.waiting_ns, split.blocked_ns, split.on_cpu))


def _split(held: Sequence[Histogram], first: int) -> Split:
    waiting, blocked, on_cpu = held[first : first + 3]
    return Split(waiting_ns=waiting, blocked_ns=blocked, on_cpu=on_cpu)


def inflated(blob: bytes, most: int) -> bytes:
    """Return compressed bytes as they were; DamagedBytes if they are none, or more than ``most``."""
    inflater = zlib.decompressobj()
    try:
        data = inflater.decompress(blob, most)
    except zlib.error as error:
        raise DamagedBytes(f"stored bytes are damaged: {error}") from error
    if not inflater.eof:
        raise DamagedBytes("stored bytes are cut short or too large")
    return data
