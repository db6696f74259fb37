"""A push as it is received: bytes to values, checked. They come from a host that may lie or be damaged."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from specmine.model.batch import CallSamples, Lifetime, boot_of
from specmine.model.call_path import CallPath
from specmine.model.json_codec import decode
from specmine.model.observation import Kind, Observation
from specmine.store import EnvironmentVector, ExperimentWindow, Host, LifetimeSummary
from specmine.store.codec import encode_histogram
from specmine.store.inside_codec import decode_inside

from .checked_values import BadPush, Reader, integer, name_of, real, text_of
from .codec import decode_histograms, decode_paths, decode_split, deflated, inflated
from .folding import FoldedRow
from .push import BYTES, HEAD, HELD, SCHEMA, SUMMARY, key_of, record_text
from .row_tables import PathTable, RowTable, path_table, row_table

_LATEST_UTC_NS = 1 << 62  # in the year 2116
_ERRORS = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, struct.error)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HeldRecord:
    """A record that a host tells of itself."""

    record: Any
    key: tuple[str, str]
    """Its type, and its key as text."""
    data: bytes
    """Its JSON, compressed."""


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
        ends, paths = np.cumsum(self.table.path_number).tolist(), self.paths.paths(range(len(self.paths.sizes)))
        return tuple(self._row(at, [paths[one] for one in self.table.path[start:end].tolist()])
                     for at, (start, end) in enumerate(zip([0, *ends][: len(ends)], ends, strict=True)))  # fmt: skip

    def _row(self, at: int, paths: list[CallPath]) -> FoldedRow:
        table = self.table
        counts, split, by_path, inside = (table.blobs[name][at] for name in BYTES)
        assert counts is not None
        seen = Observation(
            function=self.functions[table.function[at]], lifetime=self.lifetimes[table.lifetime[at]],
            kind=Kind(table.kind[at]), histogram=decode_histograms(counts, 1)[0],
            **{name: int(values[at]) for name, values in table.whole.items()},
            bias_ns=float(table.real["bias_ns"][at]), uncertainty_ns=float(table.real["uncertainty_ns"][at]),
            split=None if split is None else decode_split(split),
            paths=() if by_path is None else decode_paths(by_path, paths),
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


def _read(data: bytes) -> ReceivedPush:
    raw = inflated(data)
    (length,) = HEAD.unpack_from(raw)
    head = json.loads(raw[HEAD.size : HEAD.size + length])
    if head["schema"] != SCHEMA:
        raise BadPush(f"not a {SCHEMA}")
    reader = Reader(raw, HEAD.size + length)
    functions = tuple(name_of(each) for each in head["functions"])
    lifetimes = tuple(name_of(each) for each in head["lifetimes"])
    frames, of_frames, number, of_table, of_rows = (integer(each) for each in head["paths"])
    names = reader.take(of_frames).decode().split("\0")  # the last is what follows the last zero byte
    if len(names) != 2 * frames + 1 or names[-1]:
        raise BadPush("names of frames are cut short")
    paths = path_table(list(zip(names[:-1:2], names[1::2], strict=True)), number, reader.take(of_table))
    chosen = reader.take(of_rows)
    summaries = tuple(_summary(each, reader, functions, lifetimes) for each in head["summaries"])
    table = row_table(head["rows"], reader, (len(functions), len(lifetimes), number), chosen)
    if reader.at != len(raw):
        raise BadPush("bytes after the last row")
    return ReceivedPush(
        held=tuple(_held(text_of(what), text_of(text)) for what, text in head["records"]),
        functions=functions, lifetimes=lifetimes, paths=paths, summaries=summaries, table=table,
        lost=integer(head["lost"]), version=text_of(head["version"])[:64],
    )  # fmt: skip


def _held(what: str, text: str) -> HeldRecord:
    # most hosts of a fleet have the same functions
    return _same(what, text) if what == "Function" else _record(what, text)


def _record(what: str, text: str) -> HeldRecord:
    record = decode(HELD[what], json.loads(text))
    key = key_of(record)
    for part in key:
        name_of(part)
    if isinstance(record, Lifetime):
        name_of(record.build_id or "-")
    return HeldRecord(record=record, key=key, data=deflated(record_text(record).encode("ascii")))


_same: Callable[[str, str], HeldRecord] = lru_cache(maxsize=20_000)(_record)


def _summary(
    values: Sequence[Any], reader: Reader, functions: Sequence[str], lifetimes: Sequence[str]
) -> LifetimeSummary:
    function, lifetime, kind, *numbers, bias, length = values
    start, end, calls, watched = numbers
    early, later = decode_histograms(reader.take(length), 2)
    found = (integer(start, _LATEST_UTC_NS), integer(end, _LATEST_UTC_NS), integer(calls), integer(watched))
    return LifetimeSummary(
        function=functions[integer(function)], lifetime=lifetimes[integer(lifetime)], kind=Kind(kind),
        **dict(zip(SUMMARY, found, strict=True)), bias_ns=real(bias),
        packed_early=encode_histogram(early), packed_later=encode_histogram(later),
    )  # fmt: skip
