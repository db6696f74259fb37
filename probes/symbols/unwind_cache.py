"""Unwind rows on disk, so that a restart need not convert them again: bounded, and worth nothing if damaged.

The key is a digest of what the rows are made from (see elf/parser/binary.py), not the build-id alone: a file from a
container can carry any build-id, and would otherwise speak for another.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import struct
from pathlib import Path

import numpy as np

from specmine.probes.elf.facts import RowTable

LARGEST = 64 << 20
"""Bytes of all files together."""
_MAGIC = b"specmine rows 1\n"
_LENGTHS = struct.Struct("<II")
_HEAD = len(_MAGIC) + 32 + _LENGTHS.size
_KEY = re.compile(r"[0-9a-f]{32,64}")
_MAKERS = ("unwind_rows.py", "cfa_program.py", "eh_frame.py")
"""The code that makes the rows: another version of it makes others."""


class RowCache:
    """A folder of row tables by key. Whatever goes wrong with it, the rows are converted again."""

    def __init__(self, folder: Path | None, limit_bytes: int = LARGEST) -> None:
        """Use a folder, made when something is put there; None: keep nothing."""
        self._folder, self._limit = folder, limit_bytes
        here = Path(__file__).parents[1] / "elf" / "parser"
        texts = (here.joinpath(name).read_bytes() for name in _MAKERS) if folder is not None else ()
        self._version = hashlib.sha256(b"".join(texts)).hexdigest()[:16]

    def get(self, key: str) -> RowTable | None:
        """Return the rows, None if they are not there or not whole."""
        path = self._path(key)
        if path is None:
            return None
        try:
            table = unpacked(path.read_bytes())
            os.utime(path)
        except OSError:
            return None
        if table is None:
            with contextlib.suppress(OSError):
                path.unlink()
        return table

    def put(self, key: str, table: RowTable) -> None:
        """Keep the rows; the files not asked for the longest make room."""
        path = self._path(key)
        if path is None:
            return
        data = packed(table)
        if len(data) > self._limit // 4:
            return
        temporary = path.with_name(f"{path.name}.{os.getpid()}")
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            temporary.write_bytes(data)
            temporary.replace(path)
            self._trim()
        except OSError:
            with contextlib.suppress(OSError):
                temporary.unlink()

    def _path(self, key: str) -> Path | None:
        if self._folder is None or not _KEY.fullmatch(key):
            return None
        return self._folder / f"{self._version}-{key}"

    def _trim(self) -> None:
        assert self._folder is not None
        found = [(entry.stat().st_mtime_ns, entry.stat().st_size, entry.path) for entry in os.scandir(self._folder)]
        total = sum(size for _, size, _ in found)
        for _, size, path in sorted(found):
            if total <= self._limit:
                return
            Path(path).unlink(missing_ok=True)
            total -= size


def packed(table: RowTable) -> bytes:
    """Return a table as bytes that tell whether they are whole."""
    body = b"".join(each.tobytes() for each in (table.pc, table.info, table.pages))
    lengths = _LENGTHS.pack(len(table.pc), len(table.pages))
    return _MAGIC + hashlib.sha256(lengths + body).digest() + lengths + body


def unpacked(data: bytes) -> RowTable | None:
    """Return the table, None if a byte is missing or wrong."""
    if len(data) < _HEAD or not data.startswith(_MAGIC):
        return None
    digest, lengths = data[len(_MAGIC) : len(_MAGIC) + 32], data[_HEAD - _LENGTHS.size : _HEAD]
    if hashlib.sha256(data[_HEAD - _LENGTHS.size :]).digest() != digest:
        return None
    rows, pages = _LENGTHS.unpack(lengths)
    if len(data) != _HEAD + 4 * (2 * rows + pages):
        return None
    numbers = np.frombuffer(data, np.uint32, offset=_HEAD)
    return RowTable(pc=numbers[:rows], info=numbers[rows : 2 * rows], pages=numbers[2 * rows :])
