"""Recordings: one JSON object a line; the first line names the schema and the version.

Each other line holds an event and the actions that followed it. The events hold what the kernel side reported, so
``RecordedSource`` can take the place of the kernel side in a loop. A file whose name ends in .gz is compressed;
nothing in it depends on the time of writing.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from specmine.model.batch import Batch, Request, Started
from specmine.model.errors import InputError
from specmine.model.json_codec import decode

SCHEMA = "specmine.recording/1"


class Recorder:
    """Writes a recording; each line is on disk before the next event."""

    def __init__(self, path: str | Path, header: Mapping[str, Any]) -> None:
        """Create the file; InputError if it cannot be written."""
        self.path = Path(path)
        try:
            self._raw = self.path.open("wb")
        except OSError as error:
            raise InputError(f"cannot write the recording {path}: {error.strerror}") from error
        self._file: IO[bytes] | gzip.GzipFile = self._raw
        if self.path.suffix == ".gz":
            self._file = gzip.GzipFile(filename="", mode="wb", fileobj=self._raw, compresslevel=6, mtime=0)
        self.write({"schema": SCHEMA, **header})

    def write(self, line: Mapping[str, Any]) -> None:
        """Append one line; InputError if the disk refuses it."""
        text = json.dumps(line, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        try:
            self._file.write(text.encode() + b"\n")
            if self._file is self._raw:
                self._raw.flush()
        except OSError as error:
            raise InputError(f"cannot write the recording {self.path}: {error.strerror}") from error

    def close(self) -> None:
        """Finish the file."""
        if self._file is not self._raw:
            self._file.close()
        self._raw.close()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Finish the file."""
        self.close()


def read_recording(path: str | Path) -> tuple[dict[str, Any], Iterator[dict[str, Any]]]:
    """Open a recording.

    Returns
    -------
    dict, iterator of dict
        The first line and the others. A last line cut short by a crash ends the recording.

    Raises
    ------
    InputError
        If the file cannot be read or is no recording; while iterating, if a line is damaged: its number.
    """
    lines = _lines(Path(path))
    header = next(lines, None)
    if header is None or header.get("schema") != SCHEMA:
        lines.close()
        found = header.get("schema") if header else "an empty file"
        raise InputError(f"{path} is not a recording ({SCHEMA}) but {found}", remedy="make one with --record")
    return header, lines


def _lines(path: Path) -> Generator[dict[str, Any], None, None]:
    number = 0
    try:
        with _opened(path) as file:
            for line in file:
                number += 1
                if not line.endswith(b"\n"):
                    return
                yield _object(line, f"{path}: line {number}")
    except EOFError:
        return  # a compressed file that was not closed
    except (OSError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot read the recording {path} after line {number}: {reason}") from error


@contextmanager
def _opened(path: Path) -> Generator[Iterable[bytes], None, None]:
    with path.open("rb") as raw:
        if raw.peek(2)[:2] == b"\x1f\x8b":
            with gzip.GzipFile(fileobj=raw) as file:
                yield file
        else:
            yield raw


def _object(line: bytes, where: str) -> dict[str, Any]:
    try:
        value = json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where} is not JSON", remedy="the file is damaged") from error
    if not isinstance(value, dict):
        raise InputError(f"{where} is not a JSON object", remedy="the file is damaged")
    return value


def _refuse(constant: str) -> None:
    """Refuse NaN and infinity: Python would read them, and no recording holds them."""
    raise ValueError(f"{constant} is no number")


class RecordedSource:
    """A Source that repeats the batches of a recording; requests to it change nothing."""

    def __init__(self, path: str | Path) -> None:
        """Read the file; InputError if it is not a recording of a source."""
        self.header, lines = read_recording(path)
        self._started: Started | None = None
        self._batches: list[Batch] = []
        self._next = 0
        try:
            for line in lines:
                event = line.get("event", {})
                if event.get("kind") == "begun":
                    self._started = decode(Started, event["started"])
                elif event.get("kind") == "arrived":
                    self._batches.append(decode(Batch, event["batch"]))
        except (ValueError, LookupError, AttributeError, TypeError) as error:
            raise InputError(f"{path}: {error}", remedy="it was made by another version") from error
        if self._started is None:
            raise InputError(f"{path} holds no start of a source")

    @property
    def times_ns(self) -> tuple[int, ...]:
        """When each batch was taken, CLOCK_MONOTONIC ns."""
        return tuple(batch.now_ns for batch in self._batches)

    def start(self) -> Started:
        """Return what the source knew at its start."""
        if self._started is None:
            raise InputError("the recording holds no start of a source")
        return self._started

    def poll(self, now_ns: int) -> Batch:
        """Return the next batch as it was recorded; after the last one, an empty one that has ended."""
        if self._next >= len(self._batches):
            last = self._batches[-1] if self._batches else None
            return Batch(now_ns=max(now_ns, last.now_ns if last else 0), ended=True)
        batch = self._batches[self._next]
        self._next += 1
        return batch

    def fileno(self, *, urgent: bool = False) -> int:
        """Return -1: nothing happens unasked."""
        return -1

    def apply(self, request: Request) -> None:
        """Do nothing: what was recorded cannot be asked again."""

    def close(self) -> None:
        """Do nothing."""
