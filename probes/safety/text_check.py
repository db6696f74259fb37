"""Is the code in a process's memory still what its file says? The kernel runs the file's instruction under a probe.

A program that patches itself, or was patched, would run its old code where a probe is. Other people's probes are no
change: the kernel shares a breakpoint between all who want one.
"""

from __future__ import annotations

import os

from specmine.probes.arch.machine import machine
from specmine.probes.process.mappings import Mapping, mappings
from specmine.probes.process.proc_files import PROC

_PAGE = os.sysconf("SC_PAGE_SIZE")
_PRESENT, _FROM_FILE = 1 << 63, 1 << 61


def is_changed(pid: int, address: int, expected: bytes, mapping: Mapping) -> bool:
    """Tell whether a process has changed its code of a file, breakpoints aside.

    Parameters
    ----------
    pid : int
    address : int
        Of the code in the process.
    expected : bytes
        The code in the file.
    mapping : Mapping
        What lay there when the process was last looked at. A program that closes libraries and opens them anew has
        them elsewhere, and other things where they were: what lies there now is changed only if it is still the file.

    Returns
    -------
    bool
        False for the dead and what may not be looked at.
    """
    try:
        # looked at twice: the mapping that is looked at after the bytes may not be that of the bytes
        return all(_is_other(pid, address, expected) and _is_there(pid, address, mapping) for _ in range(2))
    except PermissionError:
        return False


def _is_there(pid: int, address: int, mapping: Mapping) -> bool:
    """Tell whether the place of the file that lay at an address then lies there now."""
    ahead = mapping.start - mapping.offset
    return any(
        each.start <= address < each.end and (each.file, each.start - each.offset) == (mapping.file, ahead)
        for each in mappings(pid)
    )


def _is_other(pid: int, address: int, expected: bytes) -> bool:
    """Tell whether memory holds other bytes. Only pages that the process has a copy of its own of are read."""
    pages = range(address // _PAGE, (address + len(expected) - 1) // _PAGE + 1)
    try:
        flags = memoryview(_read_at(f"{PROC}/{pid}/pagemap", 8 * pages.start, 8 * len(pages))).cast("Q")
        if not any(each & _PRESENT and not each & _FROM_FILE for each in flags):
            return False
        found = _read_at(f"{PROC}/{pid}/mem", address, len(expected))
    except (OSError, ValueError):
        return False
    trap = machine().breakpoint
    return any(here not in (there, *trap) for here, there in zip(found, expected, strict=False))


def _read_at(path: str, offset: int, length: int) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(fd, length, offset)
    finally:
        os.close(fd)
