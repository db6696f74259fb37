"""``specmine.push/1``: what a host sends at once. Pure: values to bytes; ``received`` has the way back.

A push is whole by itself: it brings the names of all call paths that its rows refer to. Its head is JSON, with a list
for each field of its rows. Behind it are bytes: the call paths, which of them each row has, then what each row holds.
All of it is compressed, and has at most 1 MiB.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from specmine import __version__
from specmine.model.batch import CallSamples, Lifetime
from specmine.model.call_path import CallPath, Frame
from specmine.model.function import Function
from specmine.model.json_codec import encode
from specmine.model.split import Split
from specmine.store import (
    Build,
    Document,
    EnvironmentVector,
    ExperimentWindow,
    FunctionProfile,
    Host,
    LifetimeSummary,
    StoredViolation,
)
from specmine.store.codec import read_histogram
from specmine.store.histogram_reader import HistogramReader
from specmine.store.inside_codec import encode_inside

from .codec import LARGEST, bytes_of_paths, deflated, encode_path_numbers, histogram_bytes, parts_of
from .folding import FoldedRow
from .varints import encode_numbers

SCHEMA = "specmine.push/1"
MOST_BYTES = 1 << 20
LARGEST_ROWS = 32 << 20
"""Bytes of all rows of a push, inflated."""
HELD: Mapping[str, type] = {
    each.__name__: each
    for each in (
        Host, Build, Lifetime, Function, Document, FunctionProfile, EnvironmentVector, ExperimentWindow, CallSamples,
        StoredViolation,
    )
}  # fmt: skip
"""Records that a host tells of itself, by name; of each key the newest counts."""
_KEYS: Mapping[str, tuple[str, ...]] = {
    "Host": ("boot_id",),
    "Build": ("build_id",),
    "Lifetime": ("id",),
    "Function": ("key",),
    "Document": ("name",),
    "FunctionProfile": ("build_id", "function"),
    "EnvironmentVector": ("boot_id", "since_utc_ns"),
    "ExperimentWindow": ("boot_id", "start_ns", "name"),
    "CallSamples": ("function", "lifetime"),
    "StoredViolation": ("id",),
}
HEAD = struct.Struct("<I")
WHOLE = ("start_ns", "end_ns", "calls", "watched_ns", "inner", "censored")
"""Fields of a row that are whole numbers."""
REAL = ("bias_ns", "uncertainty_ns")
BYTES = ("counts", "split", "paths", "inside")
"""What a row holds as bytes; the head has their lengths, 0 for none."""
SUMMARY = ("start_utc_ns", "end_utc_ns", "calls", "watched_ns")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Push:
    """What a host sends at once."""

    records: tuple[Any, ...] = ()
    """Of the types of ``HELD``."""
    summaries: tuple[LifetimeSummary, ...] = ()
    rows: tuple[FoldedRow, ...] = ()
    lost: int = 0
    """Pushes that the host gave up because too much waited."""
    version: str = __version__
    """Of the host's specmine."""


@dataclass(slots=True)
class _Writer:
    blobs: list[bytes] = field(default_factory=list)
    inflated: int = 0

    def put(self, data: bytes) -> int:
        """Append bytes; return their length."""
        self.blobs.append(data)
        return len(data)

    def put_rows(self, rows: Iterable[bytes | None]) -> list[int]:
        """Append bytes of the codec, each compressed; return their lengths, 0 for none."""
        lengths = []
        for raw in rows:
            self.inflated += len(raw or b"")
            lengths.append(0 if raw is None else self.put(deflated(raw)))
        return lengths


def key_of(record: Any) -> tuple[str, str]:
    """Return the type of a record and its key, as text."""
    what = type(record).__name__
    return what, "\x1f".join(str(getattr(record, name)) for name in _KEYS[what])


def record_text(record: Any) -> str:
    """Return a record as JSON."""
    return json.dumps(encode(record), ensure_ascii=True, separators=(",", ":"), allow_nan=False)


def encode_push(push: Push) -> bytes:
    """Return the bytes of a push."""
    return deflated(_packed(push)[0])


def _packed(push: Push) -> tuple[bytes, int]:
    """Return the bytes of a push, and how many those of its rows are when they are inflated."""
    seen = [each.observation for each in push.rows]
    paths = list(dict.fromkeys(one.path for each in seen for one in each.paths))
    numbers = {path: at for at, path in enumerate(paths)}
    frames = sorted({frame for path in paths for frame in path.frames})
    functions = sorted({each.function for each in seen} | {each.function for each in push.summaries})
    lifetimes = sorted({each.lifetime for each in seen} | {each.lifetime for each in push.summaries})
    function, lifetime = _places(functions), _places(lifetimes)
    writer = _Writer()
    names = writer.put(_frame_names(frames))
    table = writer.put(_path_table(paths, frames))
    of_rows = writer.put(b"".join(encode_path_numbers([numbers[one.path] for one in each.paths]) for each in seen))
    head = {
        "schema": SCHEMA,
        "version": push.version,
        "lost": push.lost,
        "records": [[type(each).__name__, record_text(each)] for each in push.records],
        "functions": functions,
        "lifetimes": lifetimes,
        "paths": [len(frames), names, len(paths), table, of_rows],
        "summaries": _summaries(push.summaries, writer, function, lifetime),
        "rows": {
            "function": [function[each.function] for each in seen],
            "lifetime": [lifetime[each.lifetime] for each in seen],
            "kind": [each.kind.value for each in seen],
            "windows": [each.windows for each in push.rows],
            **{name: [getattr(each, name) for each in seen] for name in (*WHOLE, *REAL)},
            "counts": writer.put_rows(histogram_bytes([(each.histogram,) for each in seen])),
            "split": writer.put_rows(_split_bytes([each.split for each in seen])),
            "paths": writer.put_rows(
                raw if each.paths else None
                for each, raw in zip(seen, bytes_of_paths([each.paths for each in seen]), strict=True)
            ),
            "inside": [writer.put(encode_inside(each.inside)) if each.inside else 0 for each in seen],
        },
    }
    text = json.dumps(head, ensure_ascii=True, separators=(",", ":"), allow_nan=False).encode("ascii")
    return HEAD.pack(len(text)) + text + b"".join(writer.blobs), writer.inflated


def _places(names: Sequence[str]) -> dict[str, int]:
    return {name: at for at, name in enumerate(names)}


def _frame_names(frames: Sequence[Frame]) -> bytes:
    """Return the names and modules of frames, with a zero byte after each."""
    texts = [text.replace("\0", "") + "\0" for each in frames for text in (each.name, each.module)]
    return "".join(texts).encode("utf-8", "backslashreplace")


def _path_table(paths: Sequence[CallPath], frames: Sequence[Frame]) -> bytes:
    """Return paths as numbers: twice the frames of each, one more if it is complete; then the frames of all."""
    place = {frame: at for at, frame in enumerate(frames)}
    sizes = [2 * len(path.frames) + int(path.complete) for path in paths]
    return encode_numbers(np.array([*sizes, *(place[each] for path in paths for each in path.frames)], np.uint64))


def pushes_of(push: Push, most: int = MOST_BYTES) -> Iterator[bytes]:
    """Yield the bytes of a push, of its halves if they are too many, and so on; records come before rows."""
    raw, of_rows = _packed(push)
    data = deflated(raw) if len(raw) <= LARGEST and of_rows <= LARGEST_ROWS else b""
    if data and len(data) <= most:
        yield data
        return
    for part in _halves(push):
        yield from pushes_of(part, most)


def _halves(push: Push) -> tuple[Push, ...]:
    whole = Push(version=push.version)
    parts = (
        replace(whole, records=push.records),
        replace(whole, summaries=push.summaries),
        replace(whole, rows=push.rows),
    )
    filled = tuple(each for each in parts if each.records or each.summaries or each.rows)
    if len(filled) > 1:
        return filled
    for name in ("records", "summaries", "rows"):
        values = getattr(push, name)
        if len(values) > 1:
            middle = len(values) // 2
            return replace(whole, **{name: values[:middle]}), replace(whole, **{name: values[middle:]})
    return (replace(whole, lost=1),)  # one record alone is too large: it is given up


def _split_bytes(splits: Sequence[Split | None]) -> Iterator[bytes | None]:
    raws = histogram_bytes(parts_of(each) for each in splits if each is not None)
    return (None if each is None else next(raws) for each in splits)


def _summaries(
    summaries: Sequence[LifetimeSummary], writer: _Writer, function: Mapping[str, int], lifetime: Mapping[str, int]
) -> list[list[Any]]:
    reader = HistogramReader()
    later = [
        (read_histogram(each.packed_early, reader), read_histogram(each.packed_later, reader)) for each in summaries
    ]
    held = reader.histograms()
    raws = histogram_bytes([(early(held), rest(held)) for early, rest in later])
    return [
        [
            function[each.function], lifetime[each.lifetime], each.kind.value,
            *(getattr(each, name) for name in SUMMARY), each.bias_ns, writer.put(deflated(raw)),
        ]
        for each, raw in zip(summaries, raws, strict=True)
    ]  # fmt: skip
