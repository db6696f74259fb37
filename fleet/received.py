"""A push as it is received: bytes to values, checked. They come from a host that may lie or be damaged.

What rows hold is checked for all rows at once, and stays the bytes that came: the database holds the same form.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specmine.model.batch import CallSamples, Lifetime, boot_of
from specmine.model.call_path import CallPath, Frame
from specmine.model.json_codec import decode
from specmine.model.observation import Kind, Observation
from specmine.store import EnvironmentVector, ExperimentWindow, Host, LifetimeSummary
from specmine.store.codec import encode_histogram
from specmine.store.inside_codec import decode_inside

from .blocks import block_of
from .codec import decode_histograms, decode_paths, decode_split, deflated, inflated, path_block, portions
from .folding import FoldedRow
from .push import BYTES, HEAD, HELD, LARGEST_ROWS, REAL, SCHEMA, SUMMARY, WHOLE, key_of, record_text
from .varints import Places, decode_parts, unsigned

_LONGEST_KEY = 512
_LARGEST_INT = 1 << 60
_LATEST_UTC_NS = 1 << 62  # in the year 2116
_MOST_CALLS, _LONGEST_NS = 1 << 40, 1 << 50  # of one row: sums over all hosts still fit 64 bits
_MOST_WINDOWS = 1 << 31
_MOST_REAL = 1e15
_KINDS = frozenset(each.value for each in Kind)
_ERRORS = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, struct.error)


class BadPush(ValueError):
    """Bytes that are no push, or say what none may."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HeldRecord:
    """A record that a host tells of itself."""

    record: Any
    key: tuple[str, str]
    """Its type, and its key as text."""
    data: bytes
    """Its JSON, compressed."""


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

    def path(self, number: int) -> CallPath:
        """Return one of them."""
        end = int(self.sizes[: number + 1].sum())
        chosen = self.places[end - int(self.sizes[number]) : end].tolist()
        frames = tuple(Frame(*self.frames[at]) for at in chosen)
        return CallPath(frames, complete=bool(self.complete[number]))


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReceivedPush:
    """What a host sent at once."""

    held: tuple[HeldRecord, ...]
    functions: tuple[str, ...]
    """Keys that rows and summaries speak of."""
    lifetimes: tuple[str, ...]
    paths: PathTable
    summaries: tuple[LifetimeSummary, ...]
    table: RowTable
    lost: int
    version: str

    @property
    def records(self) -> tuple[Any, ...]:
        """The records themselves."""
        return tuple(each.record for each in self.held)

    @property
    def rows(self) -> tuple[FoldedRow, ...]:
        """The rows as values."""
        ends = np.cumsum(self.table.path_number).tolist()
        return tuple(self._row(at, self.table.path[start:end].tolist())
                     for at, (start, end) in enumerate(zip([0, *ends][: len(ends)], ends, strict=True)))  # fmt: skip

    def _row(self, at: int, paths: Sequence[int]) -> FoldedRow:
        table = self.table
        counts, split, by_path, inside = (table.blobs[name][at] for name in BYTES)
        assert counts is not None
        seen = Observation(
            function=self.functions[table.function[at]], lifetime=self.lifetimes[table.lifetime[at]],
            kind=Kind(table.kind[at]), histogram=decode_histograms(counts, 1)[0],
            **{name: int(values[at]) for name, values in table.whole.items()},
            bias_ns=float(table.real["bias_ns"][at]), uncertainty_ns=float(table.real["uncertainty_ns"][at]),
            split=None if split is None else decode_split(split),
            paths=() if by_path is None else decode_paths(by_path, [self.paths.path(each) for each in paths]),
            inside=() if inside is None else decode_inside(inside),
        )  # fmt: skip
        return FoldedRow(observation=seen, windows=int(table.windows[at]))


def decode_push(data: bytes) -> ReceivedPush:
    """Return the push of ``encode_push``.

    Raises
    ------
    BadPush
        If the bytes are none.
    """
    try:
        return _read(data)
    except BadPush:
        raise
    except _ERRORS as error:
        raise BadPush(f"not a push: {error}"[:300]) from error


def boots_of(push: ReceivedPush) -> set[str]:
    """Return the boots that a push speaks of: of its hosts, lifetimes, rows and summaries."""
    records = push.records
    boots = {each.boot_id for each in records if isinstance(each, Host | EnvironmentVector | ExperimentWindow)}
    boots |= {boot_of(each.id) for each in records if isinstance(each, Lifetime)}
    boots |= {boot_of(each.lifetime) for each in records if isinstance(each, CallSamples)}
    return boots | {boot_of(each) for each in push.lifetimes}


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


def _read(data: bytes) -> ReceivedPush:
    raw = inflated(data)
    (length,) = HEAD.unpack_from(raw)
    head = json.loads(raw[HEAD.size : HEAD.size + length])
    if head["schema"] != SCHEMA:
        raise BadPush(f"not a {SCHEMA}")
    reader = _Reader(raw, HEAD.size + length)
    functions = tuple(_name(each) for each in head["functions"])
    lifetimes = tuple(_name(each) for each in head["lifetimes"])
    frames, of_frames, number, of_table, of_rows = (_integer(each) for each in head["paths"])
    names = reader.take(of_frames).decode().split("\0")  # the last is what follows the last zero byte
    if len(names) != 2 * frames + 1 or names[-1]:
        raise BadPush("names of frames are cut short")
    paths = _path_table(list(zip(names[:-1:2], names[1::2], strict=True)), number, reader.take(of_table))
    chosen = reader.take(of_rows)
    summaries = tuple(_summary(each, reader, functions, lifetimes) for each in head["summaries"])
    table = _rows(head["rows"], reader, (len(functions), len(lifetimes), number), chosen)
    if reader.at != len(raw):
        raise BadPush("bytes after the last row")
    return ReceivedPush(
        held=tuple(_held(_text(what), _text(text)) for what, text in head["records"]),
        functions=functions, lifetimes=lifetimes, paths=paths, summaries=summaries, table=table,
        lost=_integer(head["lost"]), version=_text(head["version"])[:64],
    )  # fmt: skip


def _held(what: str, text: str) -> HeldRecord:
    # most hosts of a fleet have the same functions
    return _same(what, text) if what == "Function" else _record(what, text)


def _record(what: str, text: str) -> HeldRecord:
    record = decode(HELD[what], json.loads(text))
    key = key_of(record)
    for part in key:
        _name(part)
    if isinstance(record, Lifetime):
        _name(record.build_id or "-")
    return HeldRecord(record=record, key=key, data=deflated(record_text(record).encode("ascii")))


_same: Callable[[str, str], HeldRecord] = lru_cache(maxsize=20_000)(_record)


def _path_table(frames: list[tuple[str, str]], number: int, data: bytes) -> PathTable:
    values, _ = decode_parts([data])
    if len(values) < number or np.any(values[:number] >= _LONGEST_KEY * 1000):
        raise BadPush("call paths are cut short")
    sizes = (values[:number] >> np.uint64(1)).astype(np.int64)
    places = values[number:]
    if len(places) != int(sizes.sum()) or np.any(places >= len(frames)):
        raise BadPush("call paths are cut short, or have an unknown frame")
    return PathTable(
        frames=frames, complete=(values[:number] & np.uint64(1)) == 1, sizes=sizes, places=places.astype(np.int64),
    )  # fmt: skip


def _rows(head: Mapping[str, Any], reader: _Reader, known: tuple[int, int, int], chosen: bytes) -> RowTable:
    functions, lifetimes, paths = known
    kind = head["kind"]
    number = len(kind)
    whole = {name: _column(head[name], number, _LARGEST_INT) for name in WHOLE}
    windows = _column(head["windows"], number, _MOST_WINDOWS)
    if not set(kind) <= _KINDS or np.any(windows == 0):
        raise BadPush("a row has an unknown kind, or no window")
    if np.any(whole["end_ns"] <= whole["start_ns"]) or np.any(whole["watched_ns"] >= _LONGEST_NS):
        raise BadPush("a window ends before it starts, or is too long")
    if any(np.any(whole[name] >= _MOST_CALLS) for name in ("calls", "inner", "censored")):
        raise BadPush("no window holds so many calls")
    blobs = {name: [reader.take(size) if size else None for size in _listed(head[name], number)] for name in BYTES}
    timed = _timed(blobs["counts"])
    if np.any(timed > whole["calls"]):
        raise BadPush("more calls were timed than counted")
    _check_splits(blobs["split"])
    for each in blobs["inside"]:
        if each is not None:
            decode_inside(each)
    path_number, path = _paths_of_rows(blobs["paths"], chosen, paths)
    return RowTable(
        function=_column(head["function"], number, functions), lifetime=_column(head["lifetime"], number, lifetimes),
        kind=kind, windows=windows, whole=whole, real={name: _reals(head[name], number) for name in REAL},
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
    if np.any(path < 0) or np.any(path >= known) or len(np.unique(row * (known + 1) + path)) < len(path):
        raise BadPush("a call path is unknown, or there twice")
    return number, path


def _summary(
    values: Sequence[Any], reader: _Reader, functions: Sequence[str], lifetimes: Sequence[str]
) -> LifetimeSummary:
    function, lifetime, kind, *numbers, bias, length = values
    start, end, calls, watched = numbers
    early, later = decode_histograms(reader.take(length), 2)
    found = (_integer(start, _LATEST_UTC_NS), _integer(end, _LATEST_UTC_NS), _integer(calls), _integer(watched))
    return LifetimeSummary(
        function=functions[_integer(function)], lifetime=lifetimes[_integer(lifetime)], kind=Kind(kind),
        **dict(zip(SUMMARY, found, strict=True)), bias_ns=_real(bias),
        packed_early=encode_histogram(early), packed_later=encode_histogram(later),
    )  # fmt: skip


def _listed(values: Any, number: int) -> list[Any]:
    if type(values) is not list or len(values) != number:
        raise BadPush("fields of rows have different lengths")
    return values


def _column(values: Any, number: int, most: int) -> Places:
    if not number:
        return np.zeros(len(_listed(values, 0)), np.int64)
    found = np.array(_listed(values, number))
    if found.dtype != np.int64 or found.ndim != 1 or int(found.min()) < 0 or int(found.max()) >= most:
        raise BadPush("a field of a row is no number, or too large")
    return found


def _reals(values: Any, number: int) -> NDArray[np.float64]:
    if not number:
        return np.zeros(len(_listed(values, 0)))
    found = np.array(_listed(values, number))
    if found.dtype.kind not in "if" or found.ndim != 1 or not bool(np.all(np.abs(found) < _MOST_REAL)):
        raise BadPush("a field of a row is no number, or too large")
    return found.astype(np.float64)


def _integer(value: object, most: int = _LARGEST_INT) -> int:
    if type(value) is not int or not 0 <= value < most:
        raise BadPush(f"{value!r:.40} is no number")
    return value


def _real(value: object) -> float:
    if not isinstance(value, int | float) or not abs(value) < _MOST_REAL:
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
