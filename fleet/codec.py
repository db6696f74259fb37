"""Rows of the fleet as bytes: histograms and call paths as varints, all histograms of a row as one structure of arrays.

The numbers are LEB128. Of several histograms first come their numbers of used buckets. Then come the distances between
those buckets, then the counts. A call path is a number: a row holds no names. Bytes are compressed where that makes
them shorter. They may come from anywhere: what is read is bounded, and what no histogram
can be is a ValueError.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from specmine.model.buckets import BUCKETS
from specmine.model.call_path import CallPath, Frame
from specmine.model.histogram import EMPTY, Histogram
from specmine.model.observation import PathHistogram
from specmine.model.split import Split

LARGEST = 8 << 20
"""Bytes of a push or row, inflated."""
_PLAIN, _PACKED = b"\0", b"\1"
_MOST_HISTOGRAMS = 1 << 14
_MOST_COUNT = 1 << 52  # calls, or ns of their time, in a bucket: so that no sum of them exceeds 64 bits
_GROUPS = 10  # of 7 bits in the longest varint


def encode_numbers(numbers: NDArray[np.uint64]) -> bytes:
    """Return numbers as LEB128."""
    shifts = np.arange(_GROUPS, dtype=np.uint64) * np.uint64(7)
    parts = numbers[:, None] >> shifts
    used = parts > 0
    used[:, 0] = True
    groups = (parts & np.uint64(0x7F)).astype(np.uint8)
    more = np.zeros_like(used)
    more[:, :-1] = used[:, 1:]
    groups |= np.where(more, np.uint8(0x80), np.uint8(0))
    return groups[used].tobytes()


def decode_numbers(data: bytes) -> NDArray[np.uint64]:
    """Return the numbers of ``encode_numbers``; ValueError for bytes that are none."""
    if not data:
        return np.empty(0, np.uint64)
    octets = np.frombuffer(data, np.uint8)
    last = octets < 0x80
    if not last[-1]:
        raise ValueError("the last number is cut short")
    ends = np.flatnonzero(last)
    starts = np.concatenate(([0], ends[:-1] + 1))
    lengths = ends - starts + 1
    if lengths.max() > _GROUPS or np.any(octets[ends[lengths == _GROUPS]] > 1):
        raise ValueError("a number has more than 64 bits")
    place = np.arange(len(octets)) - np.repeat(starts, lengths)
    shifted = (octets & np.uint8(0x7F)).astype(np.uint64) << (place.astype(np.uint64) * np.uint64(7))
    return np.add.reduceat(shifted, starts)


def encode_histograms(histograms: Sequence[Histogram]) -> bytes:
    """Return the bytes of some histograms."""
    return _compressed(encode_numbers(_numbers(histograms)))


def decode_histograms(data: bytes, number: int) -> tuple[Histogram, ...]:
    """Return so many histograms of ``encode_histograms``; ValueError if the bytes are not those of so many."""
    histograms, rest = _histograms(decode_numbers(inflated(data)))
    if len(histograms) != number or len(rest):
        raise ValueError(f"{len(histograms)} histograms instead of {number}")
    return histograms


def encode_split(split: Split) -> bytes:
    """Return the bytes of what calls did of their time."""
    return encode_histograms((split.waiting_ns, split.blocked_ns, split.on_cpu))


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


def encode_paths(paths: Sequence[PathHistogram], numbers: Mapping[CallPath, int]) -> bytes:
    """Return the bytes of the histograms of call paths, each path as its number elsewhere."""
    split = [at for at, each in enumerate(paths) if each.split is not None]
    of_splits = [each.split for each in paths if each.split is not None]
    parts = [
        np.array([numbers[each.path] for each in paths], np.uint64),
        np.array([len(split), *split], np.uint64),
        _numbers([one for each in of_splits for one in (each.waiting_ns, each.blocked_ns, each.on_cpu)]),
    ]
    return _compressed(encode_numbers(np.concatenate([_numbers([each.histogram for each in paths]), *parts])))


def decode_paths(data: bytes, paths: Mapping[int, CallPath]) -> tuple[PathHistogram, ...]:
    """Return the histograms of ``encode_paths``.

    Parameters
    ----------
    data : bytes
    paths : mapping
        Number to path.

    Raises
    ------
    ValueError
        If the bytes are none, or a path is unknown or there twice.
    """
    histograms, rest = _histograms(decode_numbers(inflated(data)))
    chosen, rest = rest[: len(histograms)].tolist(), rest[len(histograms) :]
    if len(set(chosen)) < len(histograms) or not len(rest):
        raise ValueError("call paths are cut short, or one is there twice")
    number = int(rest[0])
    split, rest = rest[1 : 1 + number].tolist(), rest[1 + number :]
    parts, rest = _histograms(rest)
    if len(rest) or len(parts) != 3 * number or any(each >= len(chosen) for each in split):
        raise ValueError("splits of call paths are damaged")
    splits = {
        row: Split(waiting_ns=parts[3 * at], blocked_ns=parts[3 * at + 1], on_cpu=parts[3 * at + 2])
        for at, row in enumerate(split)
    }
    try:
        return tuple(
            PathHistogram(path=paths[one], histogram=histogram, split=splits.get(row))
            for row, (one, histogram) in enumerate(zip(chosen, histograms, strict=True))
        )
    except KeyError as error:
        raise ValueError(f"call path {error} is unknown") from error


def inflated(data: bytes, most: int = LARGEST) -> bytes:
    """Return the bytes of ``_compressed``; ValueError if they are none, or more than ``most``."""
    kind, body = data[:1], data[1:]
    if kind == _PLAIN and len(body) <= most:
        return body
    if kind != _PACKED:
        raise ValueError("bytes of no known kind")
    inflater = zlib.decompressobj()
    try:
        found = inflater.decompress(body, most)
    except zlib.error as error:
        raise ValueError(f"damaged bytes: {error}") from error
    if not inflater.eof or inflater.unused_data:
        raise ValueError("bytes are cut short or too many")
    return found


def deflated(data: bytes) -> bytes:
    """Return bytes compressed, if that makes them fewer; ``inflated`` reads them."""
    return _compressed(data)


def _compressed(data: bytes) -> bytes:
    packed = zlib.compress(data, 6)
    return _PACKED + packed if len(packed) < len(data) else _PLAIN + data


def _numbers(histograms: Sequence[Histogram]) -> NDArray[np.uint64]:
    """Return how many there are, their numbers of buckets, the buckets' distances, the counts."""
    sizes = np.array([len(histograms), *(len(each.buckets) for each in histograms)], np.uint64)
    if not histograms:
        return sizes
    buckets = np.concatenate([each.buckets for each in histograms]).astype(np.int64)
    gaps = np.diff(buckets, prepend=0)
    starts = np.cumsum(sizes[1:]) - sizes[1:]
    first = starts[sizes[1:] > 0].astype(np.int64)
    gaps[first] = buckets[first]  # each histogram begins anew
    counts = np.concatenate([each.counts for each in histograms])
    return np.concatenate([sizes, gaps.astype(np.uint64), counts.astype(np.uint64)])


def _histograms(numbers: NDArray[np.uint64]) -> tuple[tuple[Histogram, ...], NDArray[np.uint64]]:
    """Return the histograms that numbers begin with, and the numbers after them."""
    if not len(numbers) or (number := int(numbers[0])) > _MOST_HISTOGRAMS:
        raise ValueError("no number of histograms")
    sizes = numbers[1 : 1 + number].astype(np.int64)
    if len(sizes) < number or (number and not 0 <= int(sizes.min()) <= int(sizes.max()) <= BUCKETS):
        raise ValueError("no sizes of histograms")
    total = int(sizes.sum())
    gaps, rest = numbers[1 + number : 1 + number + total], numbers[1 + number + total :]
    counts, rest = rest[:total], rest[total:]
    if len(counts) < total or np.any(gaps >= BUCKETS) or np.any(counts == 0) or np.any(counts >= _MOST_COUNT):
        raise ValueError("histograms are cut short, or hold what none can")
    ends = np.cumsum(sizes)
    sums = np.cumsum(gaps.astype(np.int64))
    found = []
    for start, end in zip((ends - sizes).tolist(), ends.tolist(), strict=True):
        buckets = sums[start:end] - (sums[start - 1] if start else 0)
        if end > start and (int(buckets[-1]) >= BUCKETS or np.any(gaps[start + 1 : end] == 0)):
            raise ValueError("a histogram has a bucket twice, or beyond the last")
        found.append(_histogram(buckets, counts[start:end]))
    return tuple(found), rest


def _histogram(buckets: NDArray[np.int64], counts: NDArray[np.uint64]) -> Histogram:
    """Return a histogram of checked buckets; its arrays are as those of every histogram, read-only and small."""
    if not len(buckets):
        return EMPTY
    numbers = counts.astype(np.uint32) if int(counts.max()) < 1 << 32 else counts.copy()
    held = Histogram(buckets.astype(np.uint16), numbers)
    held.buckets.flags.writeable = held.counts.flags.writeable = False
    return held
