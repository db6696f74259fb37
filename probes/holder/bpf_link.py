"""Links of every kind by plain system calls: uprobes by multi link or perf event, the CPU clock, raw tracepoints."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Callable
from typing import Any

BPF_LINK_CREATE, BPF_RAW_TRACEPOINT_OPEN = 28, 17
SYSCALLS: dict[str, int] = {}
"""Numbers of bpf and perf_event_open on this machine; the daemon sends them."""
ATTACH = {"multi": 48, "session": 57, "perf": 41}
MULTI_RETURN = 1
CLOCK_SOFTWARE, COUNT_SW_CPU_CLOCK = 1, 0
EXCLUDE_IDLE, FREQUENCY = 1 << 7, 1 << 10
CLOEXEC = 8

libc = ctypes.CDLL(None, use_errno=True)


def checked(result: int, what: str) -> int:
    """Return the result of a system call, or raise OSError with its errno."""
    if result < 0:
        raise OSError(ctypes.get_errno(), what)
    return result


def bpf(command: int, attr: bytes) -> int:
    """Make one bpf() call."""
    buffer = ctypes.create_string_buffer(attr, len(attr))
    return checked(libc.syscall(SYSCALLS["bpf"], command, buffer, len(attr)), "bpf")


def open_multi(
    program: int, attach: int, file: int, offsets: list[int], cookies: list[int], pid: int, flags: int
) -> int:
    """Link one program to many offsets of a file, given by its fd."""
    count = len(offsets)
    path = ctypes.create_string_buffer(b"/proc/self/fd/%d" % file)
    where, which = (ctypes.c_uint64 * count)(*offsets), (ctypes.c_uint64 * count)(*cookies)
    attr = struct.pack("<IIII", program, 0, attach, 0)
    attr += struct.pack("<QQQQ", ctypes.addressof(path), ctypes.addressof(where), 0, ctypes.addressof(which))
    return bpf(BPF_LINK_CREATE, attr + struct.pack("<IIII", count, flags, pid, 0))


def open_uprobe_event(file: int, offset: int, pid: int, is_return: bool) -> int:
    """Open a uprobe the old way, as a perf event."""
    with open("/sys/bus/event_source/devices/uprobe/type") as source:  # noqa: PTH123 - stays small
        kind = int(source.read())
    path = ctypes.create_string_buffer(b"/proc/self/fd/%d" % file)
    attr = bytearray(128)
    struct.pack_into("<IIQ", attr, 0, kind, 128, 1 if is_return else 0)
    struct.pack_into("<QQ", attr, 56, ctypes.addressof(path), offset)
    buffer = ctypes.create_string_buffer(bytes(attr), len(attr))
    where = (pid, -1) if pid else (-1, 0)
    return checked(libc.syscall(SYSCALLS["perf_event_open"], buffer, *where, -1, CLOEXEC), "perf_event_open")


def open_clock(cpu: int, hertz: int) -> int:
    """Open the CPU clock of one CPU at a frequency; an idle CPU is not sampled."""
    attr = bytearray(128)
    struct.pack_into("<IIQQ", attr, 0, CLOCK_SOFTWARE, 128, COUNT_SW_CPU_CLOCK, hertz)
    struct.pack_into("<Q", attr, 40, FREQUENCY | EXCLUDE_IDLE)
    buffer = ctypes.create_string_buffer(bytes(attr), len(attr))
    return checked(libc.syscall(SYSCALLS["perf_event_open"], buffer, -1, cpu, -1, CLOEXEC), "perf_event_open")


def open_perf_link(program: int, event: int, cookie: int) -> int:
    """Link a program to a perf event."""
    return bpf(BPF_LINK_CREATE, struct.pack("<IIIIQ", program, event, ATTACH["perf"], 0, cookie))


def online_cpus() -> list[int]:
    """Return the numbers of the CPUs that are online."""
    cpus: list[int] = []
    with open("/sys/devices/system/cpu/online") as source:  # noqa: PTH123
        for part in source.read().strip().split(","):
            low, _, high = part.partition("-")
            cpus += range(int(low), int(high or low) + 1)
    return cpus


def link(programs: dict[str, int], m: dict[str, Any], file: int) -> list[int]:
    """Make the links of one request, in the order in which they are to be closed: entries before returns."""
    entry, back = programs[m["entry"]], m.get("return")
    offsets, cookies, pid = m["offsets"], m["cookies"], m["pid"]
    fds: list[int] = []
    try:
        if m["kind"] in ("session", "multi"):
            if back:  # returns first: an entry without its return would leave calls open
                fds = [open_multi(programs[back], ATTACH["multi"], file, offsets, cookies, pid, MULTI_RETURN)]
            fds.insert(0, open_multi(entry, ATTACH[m["kind"]], file, offsets, cookies, pid, 0))
        else:
            for offset, cookie in zip(offsets, cookies, strict=True):
                for program, is_return in ((back and programs[back], True), (entry, False)):
                    if program:
                        event = open_uprobe_event(file, offset, pid, is_return)
                        fds.insert(0, event)
                        fds.insert(0, open_perf_link(program, event, cookie))
    except OSError:
        for fd in fds:
            os.close(fd)
        raise
    return fds


def clock(programs: dict[str, int], m: dict[str, Any], _: int) -> list[int]:
    """Sample the CPU clock of every CPU."""
    fds: list[int] = []
    for cpu in online_cpus():
        event = open_clock(cpu, m["hertz"])
        fds += [open_perf_link(programs[m["entry"]], event, 0), event]
    return fds


def tracepoint(programs: dict[str, int], m: dict[str, Any], _: int) -> list[int]:
    """Attach to a raw tracepoint by name."""
    name = ctypes.create_string_buffer(m["name"].encode())
    attr = struct.pack("<QII", ctypes.addressof(name), programs[m["entry"]], 0)
    return [bpf(BPF_RAW_TRACEPOINT_OPEN, attr + b"\0" * 8)]


MAKERS: dict[str, Callable[[dict[str, int], dict[str, Any], int], list[int]]] = {
    "link": link,
    "clock": clock,
    "tracepoint": tracepoint,
}
"""What makes the fds of a request, by its operation; given programs by name, the request, the fd that came with it."""
