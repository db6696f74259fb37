"""Files of /proc as bytes, cut into lines at newlines only.

Names in them hold any byte but the newline, which the kernel escapes or refuses. ``str.splitlines`` also cuts at form
feeds and other characters, text files at carriage returns: there a name could make up lines of its own.
"""

from __future__ import annotations

import os
from pathlib import Path

PROC = Path("/proc")
"""Paths with process ids in them are made as text: a ``Path`` has each of its parts kept by ``sys.intern``."""

_PART = 1 << 16


def read_proc(path: Path | str) -> bytes:
    """Return what a file of /proc says; OSError if it may not be read, or its process has ended."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = []
        while part := os.read(fd, _PART):  # a file object costs as much as all of it, and this is often called
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(fd)


def proc_lines(text: bytes) -> list[bytes]:
    """Return the lines, each without its newline."""
    return text.removesuffix(b"\n").split(b"\n")


def path_as_text(path: str) -> str:
    """Return a path that can be stored and shown: bytes that are no UTF-8 are written by their codes (``\\xff``)."""
    return os.fsencode(path).decode(errors="backslashreplace")
