"""The mappings of a process, and the files behind them."""

from __future__ import annotations

import ctypes
import mmap
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

from .proc_files import PROC, path_as_text, proc_lines, read_proc
from .regular_file import open_regular

FileId = tuple[int, int]
"""(device, inode) of a file: its identity while it is mapped, whatever its path says."""

_LINE = re.compile(rb"([0-9a-f]+)-([0-9a-f]+) (\S{4}) ([0-9a-f]+) ([0-9a-f]+):([0-9a-f]+) (\d+) *(.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapping:
    """One mapping of a process."""

    start: int
    end: int
    offset: int
    file: FileId
    path: str
    """As the kernel shows it; '' for memory without a file."""


def parse_mapping(line: bytes, rights: bytes = b"") -> tuple[bytes, Mapping] | None:
    """Return (rights, mapping) of a line of ``maps`` or ``smaps``.

    Parameters
    ----------
    line : bytes
    rights : bytes
        All of these are asked for, such as ``b"x"``.

    Returns
    -------
    tuple or None
        None for a line that is no mapping, or one without these rights.
    """
    at = line.find(b" ") + 1
    if rights.translate(None, line[at : at + 4]):  # some are missing: most lines end here
        return None
    match = _LINE.fullmatch(line)
    if match is None:
        return None
    start, end, held, offset, major, minor, inode, path = match.groups()
    return held, Mapping(
        start=int(start, 16),
        end=int(end, 16),
        offset=int(offset, 16),
        file=(os.makedev(int(major, 16), int(minor, 16)), int(inode)),
        path=os.fsdecode(path),
    )


def mappings(pid: int | str, rights: bytes = b"") -> Iterator[Mapping]:
    """Yield the mappings of a process by address; none for the dead. PermissionError if not allowed."""
    try:
        text = read_proc(f"{PROC}/{pid}/maps")
    except (FileNotFoundError, ProcessLookupError):
        return
    for line in proc_lines(text):
        parsed = parse_mapping(line, rights)
        if parsed is not None:
            yield parsed[1]


def executable_mappings(pid: int) -> list[Mapping]:
    """Return the executable mappings of a process by address; [] for the dead. PermissionError if not allowed."""
    return list(mappings(pid, b"x"))


def executed_files(pid: int) -> frozenset[FileId]:
    """Return the files of the executable mappings of a process; none for the dead. PermissionError if not allowed.

    Each program that anybody starts is asked for it, so nothing else of a mapping is parsed.
    """
    try:
        text = read_proc(f"{PROC}/{pid}/maps")
    except (FileNotFoundError, ProcessLookupError):
        return frozenset()
    executed = [line for line in proc_lines(text) if line[(at := line.find(b" ")) + 3 : at + 4] == b"x"]
    files = {tuple(line.split(b" ", 5)[3:5]) for line in executed}
    devices = [(*device.split(b":"), inode) for device, inode in files]
    return frozenset((os.makedev(int(major, 16), int(minor, 16)), int(inode)) for major, minor, inode in devices)


def open_mapped(pid: int, mapping: Mapping) -> int:
    """Open the very file that is mapped, also if it was deleted, replaced or lies in another mount namespace.

    Returns
    -------
    int
        An fd of a regular file, the caller's to close. OSError if there is none, without waiting for anything.
    """
    try:
        fd = open_regular(f"/proc/{pid}/map_files/{mapping.start:x}-{mapping.end:x}", follow=True)
    except OSError:
        fd = open_regular(f"/proc/{pid}/root{mapping.path}")
    try:
        if not _is_file(fd, mapping.file):
            raise FileNotFoundError(f"{path_as_text(mapping.path)} is no longer the file that process {pid} maps")
    except BaseException:
        os.close(fd)
        raise
    return fd


def _is_file(fd: int, file: FileId) -> bool:
    """Tell whether an open file has the identity that ``maps`` shows.

    Some file systems (btrfs, overlayfs) give another device in ``stat`` than in ``maps``. There the file is mapped here
    too, and our own ``maps`` says how the kernel names it.
    """
    status = os.fstat(fd)
    if (status.st_dev, status.st_ino) == file:
        return True
    if not status.st_size:
        return False
    with mmap.mmap(fd, 1, access=mmap.ACCESS_COPY) as view:
        start = ctypes.addressof(ctypes.c_char.from_buffer(view))
        return any(mapping.file == file for mapping in mappings("self") if mapping.start == start)
