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
from dataclasses import replace

import numpy as np

from specmine.model.buckets import BUCKETS
from specmine.model.call_path import CallPath, Frame
from specmine.model.histogram import Histogram
from specmine.model.observation import PathHistogram
from specmine.model.split import Split

from .errors import StoreCorrupt

LENGTH = struct.Struct("<I")
LARGEST = 16 << 20
"""Bytes of the call paths, or of the callees, of one window, inflated."""
_HISTOGRAM = LENGTH.size + 10 * BUCKETS
_DURATIONS = 1 << 20
_MOST_FRAMES = 4096


class DamagedBytes(StoreCorrupt, ValueError):
    """Stored bytes are not what they should be."""


def encode_histogram(histogram: Histogram) -> bytes:
    """Return the bytes of one histogram."""
    return zlib.compress(packed(histogram), 6)


def decode_histogram(blob: bytes) -> Histogram:
    """Return the histogram of ``encode_histogram``; DamagedBytes if they are none."""
    return unpacked(inflated(blob, _HISTOGRAM), 0)[0]


def encode_split(split: Split) -> bytes:
    """Return the bytes of what calls did of their time: its three histograms, one after the other."""
    return zlib.compress(_packed_split(split), 6)


def decode_split(blob: bytes) -> Split:
    """Return the split of ``encode_split``; DamagedBytes if they are none."""
    return _unpacked_split(inflated(blob, 3 * _HISTOGRAM), 0)[0]


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
    data = inflated(blob, LARGEST)
    try:
        (length,) = LENGTH.unpack_from(data, 0)
        at = LENGTH.size + length
        table = json.loads(data[LENGTH.size : at])
        frames = [Frame(name, module) for name, module in table["frames"]]
        histograms = []
        for complete, *rows in table["paths"]:
            if len(rows) > _MOST_FRAMES:
                raise DamagedBytes(f"a stored call path has {len(rows)} frames")
            histogram, at = unpacked(data, at)
            path = CallPath(tuple(frames[row] for row in rows), complete=bool(complete))
            histograms.append(PathHistogram(path=path, histogram=histogram))
        for row in table.get("splits", ()):  # stores of schema 6 and older have none
            split, at = _unpacked_split(data, at)
            histograms[row] = replace(histograms[row], split=split)
    except (struct.error, LookupError, TypeError, ValueError, RecursionError) as error:
        raise DamagedBytes(f"stored call paths are damaged: {error}") from error
    if len({each.path for each in histograms}) < len(histograms):
        raise DamagedBytes("stored call paths are damaged: one is there twice")
    return tuple(histograms)


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


def _unpacked_split(data: bytes, at: int) -> tuple[Split, int]:
    """Return the split that begins at a byte, and where it ends."""
    waiting, at = unpacked(data, at)
    blocked, at = unpacked(data, at)
    on_cpu, at = unpacked(data, at)
    return Split(waiting_ns=waiting, blocked_ns=blocked, on_cpu=on_cpu), at


def unpacked(data: bytes, at: int) -> tuple[Histogram, int]:
    """Return the histogram that begins at a byte, and where it ends."""
    try:
        (used,) = LENGTH.unpack_from(data, at)
        at += LENGTH.size
        buckets, counts = np.frombuffer(data, "<u2", used, at), np.frombuffer(data, "<u8", used, at + 2 * used)
        if used and (buckets[-1] >= BUCKETS or (buckets[1:] <= buckets[:-1]).any() or not counts.all()):
            raise DamagedBytes("a stored histogram is damaged: its buckets or counts are none")
        histogram = Histogram.from_ascending(buckets, counts)
    except (struct.error, ValueError) as error:
        raise DamagedBytes(f"a stored histogram is damaged: {error}") from error
    return histogram, at + 10 * used


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
