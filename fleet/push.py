"""``specmine.push/1``: what a host sends at once. Pure: values to bytes and back.

A push is whole by itself: it brings the names of all call paths that its rows refer to. Its head is JSON, its rows are
bytes behind it; all of it is compressed, and has at most 1 MiB.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from specmine import __version__
from specmine.model.batch import CallSamples, Lifetime, boot_of
from specmine.model.call_path import CallPath, Frame
from specmine.model.function import Function
from specmine.model.json_codec import decode, encode
from specmine.model.observation import Kind, Observation
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
from specmine.store.codec import decode_histogram, encode_histogram
from specmine.store.inside_codec import decode_inside, encode_inside

from .codec import (
    LARGEST,
    decode_histograms,
    decode_paths,
    decode_split,
    deflated,
    encode_histograms,
    encode_paths,
    encode_split,
    inflated,
)
from .folding import FoldedRow

SCHEMA = "specmine.push/1"
MOST_BYTES = 1 << 20
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
_HEAD = struct.Struct("<I")
_LONGEST_KEY = 512
_LARGEST_INT = 1 << 60
_LATEST_UTC_NS = 1 << 62  # in the year 2116
_MOST_CALLS, _LONGEST_NS = 1 << 40, 1 << 50  # of one row: sums over all hosts still fit 64 bits


class BadPush(ValueError):
    """Bytes that are no push, or say what none may."""


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

    def put(self, data: bytes | None) -> int | None:
        """Append bytes; return their length."""
        if data is None:
            return None
        self.blobs.append(data)
        return len(data)


def key_of(record: Any) -> tuple[str, str]:
    """Return the type of a record and its key, as text."""
    what = type(record).__name__
    return what, "\x1f".join(str(getattr(record, name)) for name in _KEYS[what])


def encode_push(push: Push) -> bytes:
    """Return the bytes of a push."""
    return deflated(_packed(push))


def _packed(push: Push) -> bytes:
    paths = list(dict.fromkeys(one.path for row in push.rows for one in row.observation.paths))
    numbers = {path: at for at, path in enumerate(paths)}
    frames = sorted({frame for path in paths for frame in path.frames})
    number = {frame: at for at, frame in enumerate(frames)}
    writer = _Writer()
    head = {
        "schema": SCHEMA,
        "version": push.version,
        "lost": push.lost,
        "records": [[type(each).__name__, encode(each)] for each in push.records],
        "frames": [[each.name, each.module] for each in frames],
        "paths": [[int(path.complete), *(number[frame] for frame in path.frames)] for path in paths],
        "summaries": [_summary(each, writer) for each in push.summaries],
        "rows": [_row(each, writer, numbers) for each in push.rows],
    }
    text = json.dumps(head, ensure_ascii=True, separators=(",", ":"), allow_nan=False).encode("ascii")
    return _HEAD.pack(len(text)) + text + b"".join(writer.blobs)


def decode_push(data: bytes) -> Push:
    """Return the push of ``encode_push``.

    Raises
    ------
    BadPush
        If the bytes are none.
    """
    try:
        raw = inflated(data)
        (length,) = _HEAD.unpack_from(raw)
        head = json.loads(raw[_HEAD.size : _HEAD.size + length])
        if head["schema"] != SCHEMA:
            raise BadPush(f"not a {SCHEMA}")
        reader = _Reader(raw, _HEAD.size + length)
        frames = [Frame(_text(name), _text(module)) for name, module in head["frames"]]
        paths = [CallPath(tuple(frames[at] for at in rest), complete=one == 1) for one, *rest in head["paths"]]
        push = Push(
            records=tuple(_record(what, document) for what, document in head["records"]),
            summaries=tuple(_read_summary(each, reader) for each in head["summaries"]),
            rows=tuple(_read_row(each, reader, dict(enumerate(paths))) for each in head["rows"]),
            lost=_integer(head["lost"]),
            version=_text(head["version"])[:64],
        )
        if reader.at != len(raw):
            raise BadPush("bytes after the last row")
        return push
    except BadPush:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, struct.error) as error:
        raise BadPush(f"not a push: {error}"[:300]) from error


def pushes_of(push: Push, most: int = MOST_BYTES) -> Iterator[bytes]:
    """Yield the bytes of a push, of its halves if they are too many, and so on; records come before rows."""
    raw = _packed(push)
    data = deflated(raw) if len(raw) <= LARGEST else b""
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


@dataclass(slots=True)
class _Reader:
    raw: bytes
    at: int

    def take(self, length: object) -> bytes:
        """Return the next bytes."""
        size = _integer(length)
        found = self.raw[self.at : self.at + size]
        if len(found) < size:
            raise BadPush("rows are cut short")
        self.at += size
        return found


def _record(what: str, document: Any) -> Any:
    record = decode(HELD[what], document)
    for part in key_of(record):
        _name(part)
    if isinstance(record, Lifetime):
        _name(record.build_id or "-")
    return record


_ROW = ("start_ns", "end_ns", "calls", "watched_ns", "inner", "censored", "bias_ns", "uncertainty_ns")


def _row(row: FoldedRow, writer: _Writer, numbers: Mapping[CallPath, int]) -> list[Any]:
    seen = row.observation
    return [
        seen.function, seen.lifetime, seen.kind.value, row.windows, *(getattr(seen, name) for name in _ROW),
        writer.put(encode_histograms((seen.histogram,))),
        writer.put(None if seen.split is None else encode_split(seen.split)),
        writer.put(encode_paths(seen.paths, numbers) if seen.paths else None),
        writer.put(encode_inside(seen.inside) if seen.inside else None),
    ]  # fmt: skip


def _read_row(values: Sequence[Any], reader: _Reader, paths: Mapping[int, CallPath]) -> FoldedRow:
    function, lifetime, kind, windows, *numbers, counts, split, by_path, inside = values
    start, end, calls, watched, inner, censored = (_integer(each) for each in numbers[:6])
    bias, uncertainty = (_real(each) for each in numbers[6:])
    (histogram,) = decode_histograms(reader.take(counts), 1)
    of_split = None if split is None else decode_split(reader.take(split))
    of_paths = () if by_path is None else decode_paths(reader.take(by_path), paths)
    within = () if inside is None else decode_inside(reader.take(inside))
    seen = Observation(
        function=_name(function), lifetime=_name(lifetime), kind=Kind(kind), start_ns=start, end_ns=end,
        histogram=histogram, calls=calls, watched_ns=watched, inner=inner, censored=censored, bias_ns=bias,
        uncertainty_ns=uncertainty, paths=of_paths, split=of_split,
        inside=within,
    )  # fmt: skip
    if max(calls, inner, censored) >= _MOST_CALLS or watched >= _LONGEST_NS:
        raise BadPush("no window holds so many calls")
    if seen.timed > seen.calls or not 0 < (number := _integer(windows)) < 1 << 31:
        raise BadPush("more calls were timed than counted, or no window holds them")
    return FoldedRow(observation=seen, windows=number)


_SUMMARY = ("start_utc_ns", "end_utc_ns", "calls", "watched_ns")


def _summary(summary: LifetimeSummary, writer: _Writer) -> list[Any]:
    return [
        summary.function, summary.lifetime, summary.kind.value, *(getattr(summary, name) for name in _SUMMARY),
        summary.bias_ns,
        writer.put(encode_histograms((decode_histogram(summary.packed_early), decode_histogram(summary.packed_later)))),
    ]  # fmt: skip


def _read_summary(values: Sequence[Any], reader: _Reader) -> LifetimeSummary:
    function, lifetime, kind, start, end, calls, watched, bias, length = values
    early, later = decode_histograms(reader.take(length), 2)
    return LifetimeSummary(
        function=_name(function), lifetime=_name(lifetime), kind=Kind(kind),
        start_utc_ns=_integer(start, _LATEST_UTC_NS), end_utc_ns=_integer(end, _LATEST_UTC_NS), calls=_integer(calls),
        watched_ns=_integer(watched), bias_ns=_real(bias),
        packed_early=encode_histogram(early), packed_later=encode_histogram(later),
    )  # fmt: skip


def boots_of(push: Push) -> set[str]:
    """Return the boots that a push speaks of: of its hosts, lifetimes, rows and summaries."""
    boots = {each.boot_id for each in push.records if isinstance(each, Host | EnvironmentVector | ExperimentWindow)}
    boots |= {boot_of(each.id) for each in push.records if isinstance(each, Lifetime)}
    boots |= {boot_of(each.lifetime) for each in push.records if isinstance(each, CallSamples)}
    boots |= {boot_of(each.observation.lifetime) for each in push.rows}
    return boots | {boot_of(each.lifetime) for each in push.summaries}


def _integer(value: object, most: int = _LARGEST_INT) -> int:
    if type(value) is not int or not 0 <= value < most:
        raise BadPush(f"{value!r:.40} is no number")
    return value


def _real(value: object) -> float:
    if not isinstance(value, int | float) or not abs(value) < 1e15:
        raise BadPush(f"{value!r:.40} is no number")
    return float(value)


def _text(value: object) -> str:
    if type(value) is not str:
        raise BadPush("a name is no text")
    value.encode()  # half a surrogate pair is no text either
    return value


def _name(value: object) -> str:
    name = _text(value)
    if not 0 < len(name) <= _LONGEST_KEY or "\0" in name:
        raise BadPush("a key is empty or too long")
    return name
