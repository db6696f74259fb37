"""Durations in CSV (RFC 4180): ``function,path,duration_ns[,time_ns,lifetime,build,host]`` in any order of columns.

Where the names stand before the numbers, which is how people write it, a line is cut at its last commas and what
stands before them is looked up as it is, quotes included; any other line goes through Python's csv module.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from operator import itemgetter
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from specmine.model.errors import InputError

from .csv_columns import Lines
from .records import Chunk, Faults, Names

NAMES, ORIGIN = ("function", "path", "lifetime"), ("build", "host")
DURATION, TIME = "duration_ns", "time_ns"
BLOCK = 1 << 20
_LONGEST = 1 << 24
"""A quote that is still open after so many bytes is no quote."""
csv.field_size_limit(_LONGEST)
_DECIMAL = re.compile(rb"\+?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_TIME = re.compile(r"[+-]?\d{1,19}")
_LARGEST = 1e18
LATEST_NS = 2**63 - 1
"""The last moment that a time may tell."""


def read_csv(
    file: BinaryIO, names: Names, faults: Faults, *, required: Sequence[str] = (), with_origin: bool = False
) -> Iterator[Chunk]:
    """Yield the calls of a CSV file.

    Parameters
    ----------
    file : binary file
        At its start, after a byte order mark.
    names : Names
        Takes up functions, paths and lifetimes.
    faults : Faults
        Takes up bad lines: a wrong number of fields, no duration, one that is no decimal number or below 0.
    required : sequence of str
        Columns that must be there besides ``duration_ns``; a file without a header is an error then.
    with_origin : bool
        Read the columns ``build`` and ``host``: lifetimes of two builds or hosts are two, whatever they are called.

    Raises
    ------
    InputError
        If the header lacks a column, or at a bad line that is not to be skipped.
    """
    blocks = _blocks(file)
    first = next(blocks, b"")
    lines = _Lines(_header(first, faults, required), names, faults, NAMES + ORIGIN if with_origin else NAMES)
    if lines.columns:
        yield from lines.chunks(_after_header(first))
        for block in blocks:
            yield from lines.chunks(block)


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    """Yield the file in pieces that end at the end of a record."""
    rest = b""
    while data := file.read(BLOCK):
        data = rest + data
        end = data.rfind(b"\n") + 1
        if end == 0 or (data.count(b'"', 0, end) % 2 and len(data) < _LONGEST):
            rest = data
            continue
        yield data[:end]
        rest = data[end:]
    if rest:
        yield rest


def _why(error: csv.Error, lines_read: int) -> str:
    """Return what is wrong with a record at which the csv module gave up."""
    if lines_read > 1 or "end of data" in str(error):
        return "a quote opens in this line and does not close where its field ends"
    if "new-line character" in str(error):
        return "a carriage return stands inside this line, though other lines end by line feeds; make all ends alike"
    return str(error)


def _header(block: bytes, faults: Faults, required: Sequence[str]) -> list[str]:
    """Return the names of the columns, none for an empty file."""
    if b"\0" in block.split(b"\n", 1)[0]:
        raise InputError(f"{faults.source} is a binary file, not CSV", remedy="name a text file with a header line")
    try:
        row = next(csv.reader([_text(block.split(b"\n", 1)[0])]), []) if block.strip() else []
    except csv.Error as error:
        raise InputError(f"{faults.source}: line 1: {_why(error, 1)}") from None
    columns = [name.strip().lower() for name in row]
    if required and not columns:
        raise InputError(f"{faults.source} is empty", remedy=f"the first line names the columns: {','.join(required)}")
    missing = [name for name in dict.fromkeys((*required, DURATION)) if name not in columns]
    if columns and missing:
        raise InputError(
            f"{faults.source}: line 1: no column {', '.join(missing)} in the header",
            remedy="see docs/analyze.md for the formats that are read",
        )
    repeated = next((name for name in (*NAMES, *ORIGIN, DURATION, TIME) if columns.count(name) > 1), None)
    if repeated:
        raise InputError(f"{faults.source}: line 1: two columns are called {repeated}")
    return columns


def _after_header(block: bytes) -> bytes:
    return block.split(b"\n", 1)[1] if b"\n" in block else b""


class _Lines:
    """Turns blocks of lines into chunks, and counts the lines."""

    def __init__(self, columns: list[str], names: Names, faults: Faults, texts: tuple[str, ...]) -> None:
        self.columns = columns
        self._texts = texts
        """Columns of names: ``NAMES``, with ``ORIGIN`` behind it if that is read."""
        self._names, self._faults = names, faults
        self._at = 2
        """Number of the next line."""
        self._place = {name: place for place, name in enumerate(columns) if name in (*texts, DURATION, TIME)}
        named = [place for name, place in self._place.items() if name in texts]
        self._head = len(named)
        self._names_first = sorted(named) == list(range(len(named)))
        self._hashes = np.array([np.iinfo(np.uint64).max], dtype=np.uint64)
        self._index = np.array([-1], dtype=np.int64)
        """From the hash of the names of a line to an index into the next two; -1 for names that cannot be read."""
        self._keys: dict[tuple[str, ...], int] = {}
        self._paths: list[int] = []
        self._lifetimes: list[int] = []

    def chunks(self, block: bytes) -> Iterator[Chunk]:
        """Yield the calls of some whole lines."""
        block = block.replace(b"\r\n", b"\n")
        start, count = self._at, block.count(b"\n") + (not block.endswith(b"\n") and bool(block))
        chunk = self._by_cutting(block) if self._names_first else None
        if chunk is not None:
            yield chunk
        else:
            yield from self._by_rows(block, start)
        self._at = start + count

    def _by_cutting(self, block: bytes) -> Chunk | None:
        """Return the calls, None if there is anything in these lines that this way cannot be sure of."""
        try:
            lines = Lines(block, named=self._head > 0, tail=len(self.columns) - self._head)
        except ValueError:
            return None
        field = {name: lines.tail[place - self._head] for name, place in self._place.items() if name not in self._texts}
        if b'"' in block and any(lines.has(each, b'"') for each in lines.tail):
            return None
        durations = lines.decimals(field[DURATION])
        times = lines.whole_numbers(field[TIME]) if TIME in field else None
        if durations is None or durations.max(initial=0) > _LARGEST or (TIME in field and times is None):
            return None
        numbers = self._numbers(lines)
        return self._chunk(numbers, durations, times) if numbers.min(initial=0) >= 0 else None

    def _numbers(self, lines: Lines) -> NDArray[np.int64]:
        """Return for each line the index of its path and lifetime; -1 for what is not so many whole fields."""
        hashes = lines.hashes(lines.head)
        place = np.minimum(np.searchsorted(self._hashes, hashes), len(self._hashes) - 1)
        new = np.flatnonzero(self._hashes[place] != hashes)
        if len(new):
            unknown, first = np.unique(hashes[new], return_index=True)
            order = np.argsort(first)  # names are numbered in the order in which they appear
            numbers = [self._number_of(lines.text(lines.head, int(new[each]))) for each in first[order]]
            every = np.concatenate((self._hashes, unknown[order]))
            index = np.concatenate((self._index, np.array(numbers, dtype=np.int64)))
            sorting = np.argsort(every, kind="stable")
            self._hashes, self._index = every[sorting], index[sorting]
            place = np.searchsorted(self._hashes, hashes)
        return self._index[place]

    def _number_of(self, head: bytes) -> int:
        """Return the index of the names before the numbers, -1 if they are not as many whole fields."""
        text = _text(head)
        quotes = text.count('"')
        try:
            rows = list(csv.reader([text])) if head else [[""] * self._head]
        except csv.Error:
            return -1
        # a quote inside a field may belong to one that began on an earlier line, or goes on in the next
        if len(rows) != 1 or len(rows[0]) != self._head or quotes % 2 or (quotes and not _whole(head)):
            return -1
        return self._key(rows[0])

    def _key(self, row: Sequence[str]) -> int:
        """Return the index of the path and lifetime of a row."""
        key = tuple(row[self._place[name]] if name in self._place else "" for name in self._texts)
        if key not in self._keys:
            self._keys[key] = len(self._paths)
            function, path, *lifetime = key
            self._paths.append(self._names.path_of_text(function, path))
            self._lifetimes.append(self._names.lifetime(*lifetime))
        return self._keys[key]

    def _chunk(
        self, numbers: NDArray[np.int64], durations: NDArray[np.float64], times: NDArray[np.int64] | None
    ) -> Chunk:
        return Chunk(
            paths=np.array(self._paths, dtype=np.int32)[numbers],
            durations_ns=durations,
            lifetimes=np.array(self._lifetimes, dtype=np.int32)[numbers],
            times_ns=times,
        )

    def _by_rows(self, block: bytes, start: int) -> Iterator[Chunk]:
        """Yield the calls read by the csv module; each field is looked at, bad lines get their number."""
        text = _text(block)
        rows = self._good_rows(self._records(text.split("\n"), start))
        while some := list(islice(rows, 1 << 16)):
            keys, durations, times = zip(*some, strict=True)
            yield self._chunk(
                np.array(keys, dtype=np.int64),
                np.array(durations, dtype=np.float64),
                np.array(times, dtype=np.int64) if TIME in self._place else None,
            )

    def _records(self, lines: Sequence[str], start: int) -> Iterator[tuple[int, list[str]]]:
        """Yield the records with the number of their first line.

        A record that cannot be cut into fields is a bad line, the one where it begins: there a quote was opened that
        belongs to no field. Reading goes on with the next line, so that the rest of the file is not lost.
        """
        at = 0
        while at < len(lines):
            reader = csv.reader((line + "\n" for line in islice(lines, at, None)), strict=True)
            begun = 0
            try:
                for row in reader:
                    if row:
                        yield start + at + begun, row
                    begun = reader.line_num
            except csv.Error as error:
                self._faults.bad(start + at + begun, _why(error, lines_read=reader.line_num - begun))
            else:
                return
            at += begun + 1

    def _good_rows(self, records: Iterator[tuple[int, list[str]]]) -> Iterator[tuple[int, float, int]]:
        at_duration, at_time, width = self._place[DURATION], self._place.get(TIME), len(self.columns)
        keys, texts_of = self._keys, itemgetter(*(self._place.get(name, -1) for name in self._texts))
        for line, row in records:
            if len(row) != width:
                self._faults.bad(line, f"{len(row)} fields, but the header has {width}")
                continue
            duration, why = decimal(row[at_duration])
            if why:
                self._faults.bad(line, why)
                continue
            time_ns = 0
            if at_time is not None:
                time_ns, why = whole_ns(row[at_time])
                if why:
                    self._faults.bad(line, why)
                    continue
            row.append("")
            key = keys.get(texts_of(row))
            yield (self._key(row) if key is None else key), duration, time_ns


def decimal(text: str) -> tuple[float, str]:
    """Return a duration in ns and '', or anything and why it is none."""
    if text.isdecimal() and text.isascii() and len(text) < 18:
        return float(text), ""
    data = text.strip().encode(errors="replace")  # JSON may hold half of a character
    if not data:
        return 0.0, f"no {DURATION}"
    if not _DECIMAL.fullmatch(data):
        return 0.0, f"{DURATION} is {text[:40]!r}, not a decimal number of at least 0"
    value = float(data)
    return (value, "") if value <= _LARGEST else (0.0, f"{DURATION} is {text[:40]!r}, more than thirty years")


def whole_ns(text: str) -> tuple[int, str]:
    """Return a time in ns and '', or anything and why it is none."""
    if not _TIME.fullmatch(text.strip()) or abs(int(text)) > LATEST_NS:
        return 0, f"{TIME} is {text[:40]!r}, not a whole number of ns"
    return int(text), ""


def _whole(head: bytes) -> bool:
    """Return whether every quote of some fields opens or closes one of them."""
    return re.fullmatch(rb'(?:"(?:[^"]|"")*"|[^",]*)(?:,(?:"(?:[^"]|"")*"|[^",]*))*', head) is not None


def _text(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")
