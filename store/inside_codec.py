"""What happened inside calls as bytes: a table of names and numbers, then the histograms that it counts on."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

from specmine.model.call_path import Frame
from specmine.model.histogram import EMPTY, Histogram
from specmine.model.inside.parts import CalleeSet, CalleeTime, Inside

from .codec import LARGEST, inflated, packed
from .histogram_reader import LENGTH, DamagedBytes, HistogramReader, Later, read_at_once

_MOST_FRAMES = 4096


def encode_inside(parts: Sequence[Inside]) -> bytes:
    """Return the bytes of what happened inside the calls of one observation."""
    frames = sorted({frame for part in parts for frame in _frames(part)})
    row = {frame: index for index, frame in enumerate(frames)}
    histograms: list[Histogram] = []

    def put(histogram: Histogram) -> int:
        if histogram is EMPTY or not len(histogram.buckets):
            return 0
        histograms.append(histogram)
        return len(histograms)

    table = {
        "frames": [[frame.name, frame.module] for frame in frames],
        "parts": [
            [
                [row[frame] for frame in part.timed],
                [row[frame] for frame in part.partly],
                int(part.split),
                [put(part.calls), put(part.waiting_ns), put(part.blocked_ns)],
                [
                    [
                        [put(each.calls), put(each.blocked_ns), *(row[frame] for frame in each.blocked)],
                        *(
                            [
                                row[one.callee],
                                put(one.calls),
                                put(one.time_ns),
                                put(one.waiting_ns),
                                put(one.blocked_ns),
                            ]
                            for one in each.callees
                        ),
                    ]
                    for each in part.sets
                ],
            ]
            for part in parts
        ],
    }
    head = json.dumps(table, ensure_ascii=True, separators=(",", ":")).encode("ascii")
    return zlib.compress(LENGTH.pack(len(head)) + head + b"".join(map(packed, histograms)), 6)


def decode_inside(blob: bytes) -> tuple[Inside, ...]:
    """Return the parts of ``encode_inside``; DamagedBytes if they are none."""
    return read_at_once(read_inside, blob)


def read_inside(blob: bytes, reader: HistogramReader) -> Later[tuple[Inside, ...]]:
    """Read the bytes of ``decode_inside`` with those of others."""
    data = inflated(blob, LARGEST)
    try:
        (length,) = LENGTH.unpack_from(data, 0)
        table = json.loads(data[LENGTH.size : LENGTH.size + length])
        frames = [Frame(str(name), str(module)) for name, module in table["frames"]]
        if len(frames) > _MOST_FRAMES:
            raise DamagedBytes(f"a stored window has {len(frames)} callees")
        parts: list[Any] = list(table["parts"])
        at, places = LENGTH.size + length, list[int]()
        while at < len(data):
            place, at = reader.take(data, at, 1)
            places.append(place)
    except (struct.error, LookupError, TypeError, ValueError, RecursionError) as error:
        raise _damaged(error) from error

    def made(held: Sequence[Histogram]) -> tuple[Inside, ...]:
        own = [EMPTY, *(held[place] for place in places)]
        try:
            return tuple(_part(part, frames, own) for part in parts)
        except (LookupError, TypeError, ValueError, RecursionError) as error:
            raise _damaged(error) from error

    return made


def _damaged(error: Exception) -> DamagedBytes:
    return DamagedBytes(f"what is stored of the inside of calls is damaged: {error}")


def _frames(part: Inside) -> Iterator[Frame]:
    yield from part.timed
    yield from part.partly
    for each in part.sets:
        yield from (one.callee for one in each.callees)
        yield from each.blocked


def _part(part: Any, frames: list[Frame], held: list[Histogram]) -> Inside:
    timed, partly, split, (calls, waiting, blocked), sets = part
    return Inside(
        calls=held[calls],
        timed=tuple(frames[row] for row in timed),
        partly=tuple(frames[row] for row in partly),
        sets=tuple(_set(of, callees, frames, held) for of, *callees in sets),
        waiting_ns=held[waiting],
        blocked_ns=held[blocked],
        split=bool(split),
    )


def _set(of: Any, callees: list[Any], frames: list[Frame], held: list[Histogram]) -> CalleeSet:
    calls, blocked, *places = [of, 0] if isinstance(of, int) else of  # older stores do not know where calls blocked
    return CalleeSet(
        calls=held[calls],
        callees=tuple(
            CalleeTime(callee=frames[row], calls=held[own], time_ns=held[ns], waiting_ns=held[w], blocked_ns=held[b])
            for row, own, ns, w, b in callees
        ),
        blocked=tuple(frames[row] for row in places),
        blocked_ns=held[blocked],
    )
