"""Where, when and with which stack pointer probes are hit, told by perf events alone: no program of ours takes part."""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from specmine.probes.arch.machine import machine

PAGES = 256
_CLOEXEC = 8
_TID, _TIME, _REGS_USER = 1 << 1, 1 << 2, 1 << 12
_SP = 7  # PERF_REG_X86_SP
_SAMPLE, _LOST = 9, 2


class Hit(NamedTuple):
    """One hit of a probe."""

    time_ns: int
    tid: int
    sp: int


class Recorder:
    """One probe of one process, and its hits."""

    def __init__(self, path: Path, offset: int, pid: int) -> None:
        """Put the probe on, by the kernel's oldest interface: a perf event on a uprobe."""
        kind = int(Path("/sys/bus/event_source/devices/uprobe/type").read_text())
        name = ctypes.create_string_buffer(os.fsencode(path))
        attr = bytearray(128)
        struct.pack_into("<IIQQQ", attr, 0, kind, 128, 0, 1, _TID | _TIME | _REGS_USER)
        struct.pack_into("<QQ", attr, 56, ctypes.addressof(name), offset)
        struct.pack_into("<Q", attr, 80, 1 << _SP)
        struct.pack_into("<i", attr, 92, 1)  # CLOCK_MONOTONIC
        struct.pack_into("<Q", attr, 40, 1 << 25)  # use_clockid
        buffer = ctypes.create_string_buffer(bytes(attr), len(attr))
        syscall = ctypes.CDLL(None, use_errno=True).syscall
        self.fd = syscall(machine().syscalls["perf_event_open"], buffer, pid, -1, -1, _CLOEXEC)
        if self.fd < 0:
            raise OSError(ctypes.get_errno(), f"perf_event_open at 0x{offset:x} of {path}")
        self._ring = mmap.mmap(self.fd, (1 + PAGES) * mmap.PAGESIZE)

    def hits(self) -> list[Hit]:
        """Return all hits; fails if one was lost."""
        size = PAGES * mmap.PAGESIZE
        head = struct.unpack_from("<Q", self._ring, 1024)[0]
        assert head <= size, "more hits than the ring holds"
        found, at = [], 0
        while at < head:
            kind, _, length = struct.unpack_from("<IHH", self._ring, mmap.PAGESIZE + at)
            assert kind != _LOST
            if kind == _SAMPLE:
                _, tid, time_ns, abi, sp = struct.unpack_from("<IIQQQ", self._ring, mmap.PAGESIZE + at + 8)
                assert abi == 2
                found.append(Hit(time_ns, tid, sp))
            at += length
        return found

    def close(self) -> None:
        """Take the probe off."""
        self._ring.close()
        os.close(self.fd)


def recorded(places: Sequence[tuple[Path, int]], pid: int) -> list[Recorder]:
    """Put a probe at each (file, offset)."""
    return [Recorder(path, offset, pid) for path, offset in places]
