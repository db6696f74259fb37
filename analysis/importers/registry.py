"""Which format a recording has, and the reader for it."""

from __future__ import annotations

import gzip
import io
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from specmine.model.errors import InputError

from .csv import DURATION, read_csv
from .ndjson import read_ndjson
from .otlp import read_otlp
from .perf import FOLDED, HEAD, read_perf
from .records import Chunk, Faults, Names
from .uftrace import read_chrome, read_replay

Reader = Callable[[BinaryIO, Names, Faults], Iterator[Chunk]]

FORMATS = ("csv", "ndjson", "uftrace", "perf", "bpftrace", "otlp")
"""What ``--from`` takes."""
_READERS: dict[str, Reader] = {
    "csv": read_csv,
    "ndjson": read_ndjson,
    "perf": read_perf,
    "bpftrace": read_perf,
    "otlp": read_otlp,
}
_SNIFFED = 1 << 16
_GZIP, _BOM = b"\x1f\x8b", b"\xef\xbb\xbf"
_WIDE = (b"\xff\xfe", b"\xfe\xff")
_REPLAY = re.compile(rb"\[ *\d+\][^|\n]*\| *\S.*[;{}]|^# *DURATION .*FUNCTION", re.MULTILINE)


@contextmanager
def opened(path: str) -> Iterator[tuple[BinaryIO, Callable[[], int], int | None]]:
    """Open a recording, ``-`` for standard input; gzip is unpacked, a byte order mark passed over.

    Yields
    ------
    file, position, size
        What to read; how many bytes of the file have been read; how many it has, None for a pipe.

    Raises
    ------
    InputError
        If it cannot be opened, or is in UTF-16.
    """
    try:
        raw = sys.stdin.buffer if path == "-" else Path(path).open("rb")  # noqa: SIM115  (closed below)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    try:
        counted = _Counted(raw)
        plain = io.BufferedReader(counted, 1 << 20)
        file: BinaryIO = plain
        if plain.peek(2)[:2] == _GZIP:
            file = io.BufferedReader(cast("io.RawIOBase", gzip.GzipFile(fileobj=plain)), 1 << 20)
        head = cast("io.BufferedReader", file).peek(4)[:4]
        if head[:2] in _WIDE:
            raise InputError(f"{path} is in UTF-16", remedy="convert it to UTF-8")
        if head[:3] == _BOM:
            file.read(3)
        start = cast("io.BufferedReader", file).peek(_SNIFFED)
        if b"\r" in start and b"\n" not in start:  # lines end as on old Macintoshes
            file = io.BufferedReader(_LineFeeds(file), 1 << 20)
        yield file, lambda: counted.count, _size(raw)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error
    finally:
        if path != "-":
            raw.close()


def reader_of(file: BinaryIO, source: str, wanted: str | None) -> tuple[str, Reader]:
    """Return the format of a recording and its reader.

    Parameters
    ----------
    file : binary file
        From ``opened``; nothing is taken from it.
    source : str
        What the file is called.
    wanted : str, optional
        One of ``FORMATS``; by default it is recognised by the beginning of the file.

    Raises
    ------
    InputError
        If it is not recognised.
    """
    head = cast("io.BufferedReader", file).peek(_SNIFFED)[:_SNIFFED]
    found = wanted or _sniffed(head)
    if found is None:
        raise InputError(f"cannot tell the format of {source}", remedy=f"say --from {'|'.join(FORMATS)}")
    if found == "uftrace":
        return found, read_chrome if head.lstrip()[:1] in (b"{", b"[") else read_replay
    return found, _READERS[found]


def _sniffed(head: bytes) -> str | None:
    text = head.lstrip()
    return next((name for name, looks_so in _LOOKS if looks_so(text, text.split(b"\n", 1)[0])), None)


def _looks_like_perf(text: bytes, first: bytes) -> bool:
    lines = text.split(b"\n")[:-1] or [first]  # the last may be cut off
    words = [line.decode("utf-8", "replace") for line in lines]
    return any(HEAD.match(line.strip()) or (";" in line and FOLDED.match(line)) for line in words)


_LOOKS: tuple[tuple[str, Callable[[bytes, bytes], bool]], ...] = (
    ("csv", lambda text, _: not text),  # of which an empty file is the simplest
    ("otlp", lambda text, _: text[:1] == b"{" and b'"resourceSpans"' in text),
    ("uftrace", lambda text, _: text[:1] in (b"{", b"[") and (b'"traceEvents"' in text or b'"ph"' in text)),
    ("ndjson", lambda text, _: text[:1] == b"{"),
    ("csv", lambda _, first: DURATION.encode() in first.lower() and b"|" not in first),
    ("uftrace", lambda text, _: _REPLAY.search(text) is not None),
    ("perf", _looks_like_perf),
    ("csv", lambda _, first: b"," in first),  # whose reader says what its header lacks
)
"""What the beginning of each format looks like; the first that fits is it."""


def _size(raw: BinaryIO) -> int | None:
    try:
        return Path(str(raw.name)).stat().st_size if raw.name not in ("<stdin>", 0) else None
    except (OSError, AttributeError):
        return None


class _LineFeeds(io.RawIOBase):
    """Ends lines with line feeds that end with carriage returns."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: object) -> int:
        """Read into a buffer."""
        view = memoryview(buffer)  # type: ignore[arg-type]
        data = self._file.read(len(view)).replace(b"\r", b"\n")
        view[: len(data)] = data
        return len(data)


class _Counted(io.RawIOBase):
    """Counts what is read."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.count = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: object) -> int:
        """Read into a buffer."""
        view = memoryview(buffer)  # type: ignore[arg-type]
        number = self._file.readinto(view)  # type: ignore[attr-defined]
        self.count += number or 0
        return int(number or 0)
