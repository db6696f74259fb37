"""Own every link: the process whose end takes all probes off.

A small process of its own (standard library only, started as a script). It makes the links that the daemon asks
for, wakes on the kernel's bucket, closes each link in a thread of its own (a close blocks its caller some 30 ms),
and closes all of them when the daemon dies or has not shown itself for a second. The daemon holds no link, so
neither SIGKILL nor SIGSTOP of it can leave a probe behind.

usage: holder.py FD          FD: a connected SEQPACKET socket; one JSON message a packet
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import errno
import json
import mmap
import os
import selectors
import signal
import socket
import struct
import sys
import threading
import time
from typing import Any

BPF_LINK_CREATE, BPF_RAW_TRACEPOINT_OPEN = 28, 17
SYS_BPF, SYS_PERF_EVENT_OPEN = 321, 298
ATTACH = {"multi": 48, "session": 57, "perf": 41}
MULTI_RETURN = 1
CLOCK_SOFTWARE, COUNT_SW_CPU_CLOCK = 1, 0
EXCLUDE_IDLE, FREQUENCY = 1 << 7, 1 << 10
CLOEXEC = 8
PR_SET_PDEATHSIG = 1
HEARTBEAT_S = 1.0
SWITCH_S = 0.25
"""The kill switch is looked for so often while links are, also if the daemon says nothing."""
SWITCHED_OFF = "the kill switch is on"

libc = ctypes.CDLL(None, use_errno=True)


def checked(result: int, what: str) -> int:
    """Return the result of a system call, or raise OSError with its errno."""
    if result < 0:
        raise OSError(ctypes.get_errno(), what)
    return result


def bpf(command: int, attr: bytes) -> int:
    """Make one bpf() call."""
    buffer = ctypes.create_string_buffer(attr, len(attr))
    return checked(libc.syscall(SYS_BPF, command, buffer, len(attr)), "bpf")


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
    return checked(libc.syscall(SYS_PERF_EVENT_OPEN, buffer, *where, -1, CLOEXEC), "perf_event_open")


def open_clock(cpu: int, hertz: int) -> int:
    """Open the CPU clock of one CPU at a frequency; an idle CPU is not sampled."""
    attr = bytearray(128)
    struct.pack_into("<IIQQ", attr, 0, CLOCK_SOFTWARE, 128, COUNT_SW_CPU_CLOCK, hertz)
    struct.pack_into("<Q", attr, 40, FREQUENCY | EXCLUDE_IDLE)
    buffer = ctypes.create_string_buffer(bytes(attr), len(attr))
    return checked(libc.syscall(SYS_PERF_EVENT_OPEN, buffer, -1, cpu, -1, CLOEXEC), "perf_event_open")


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


class Alarms:
    """The ring buffer on which the kernel says that a bucket ran empty."""

    def __init__(self, fd: int, size: int) -> None:
        page = mmap.PAGESIZE
        self.fd, self.size = fd, size
        self.consumer = mmap.mmap(fd, page, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
        self.producer = mmap.mmap(fd, page + 2 * size, mmap.MAP_SHARED, mmap.PROT_READ, offset=page)

    def read(self) -> list[tuple[int, int, int, int]]:
        """Return (type, tgid, value) of each record not yet read."""
        records = []
        at = struct.unpack_from("<Q", self.consumer)[0]
        while at < struct.unpack_from("<Q", self.producer)[0]:
            place = mmap.PAGESIZE + at % self.size
            length = struct.unpack_from("<I", self.producer, place)[0]
            if length & 1 << 31:  # still being written
                break
            if not length & 1 << 30:
                records.append(struct.unpack_from("<IIQQ", self.producer, place + 8))
            at += (length & 0x3FFFFFFF) + 15 & ~7
            struct.pack_into("<Q", self.consumer, 0, at)
        return records


class Holder:
    """All links, by the number that the daemon gave each."""

    def __init__(self, channel: socket.socket) -> None:
        self.channel = channel
        self.programs: dict[str, int] = {}
        self.links: dict[int, list[int]] = {}
        self.cookies: dict[int, set[int]] = {}
        self.carried: dict[int, list[int]] = {}
        self.alarms: Alarms | None = None
        self.closing: list[threading.Thread] = []
        self.beaten = time.monotonic()
        self.switch = ""
        self.off = False

    def say(self, **message: object) -> None:
        """Tell the daemon; if it does not listen the heartbeat will end us."""
        with contextlib.suppress(OSError):
            self.channel.send(json.dumps({**message, "at": time.monotonic_ns()}).encode(), socket.MSG_DONTWAIT)

    def take(self, id: int, fds: list[int], cookies: list[int]) -> None:
        """Remember a new link and the cookies that it carries."""
        self.links[id], self.carried[id] = fds, cookies
        for cookie in cookies:
            self.cookies.setdefault(cookie, set()).add(id)

    def link(self, m: dict[str, Any], file: int) -> list[int]:
        """Make the links of one request, in the order in which they are to be closed: entries before returns."""
        entry, back = self.programs[m["entry"]], m.get("return")
        offsets, cookies, pid = m["offsets"], m["cookies"], m["pid"]
        fds: list[int] = []
        try:
            if m["kind"] in ("session", "multi"):
                if back:  # returns first: an entry without its return would leave calls open
                    fds = [open_multi(self.programs[back], ATTACH["multi"], file, offsets, cookies, pid, MULTI_RETURN)]
                fds.insert(0, open_multi(entry, ATTACH[m["kind"]], file, offsets, cookies, pid, 0))
            else:
                for offset, cookie in zip(offsets, cookies, strict=True):
                    for program, is_return in ((back and self.programs[back], True), (entry, False)):
                        if program:
                            event = open_uprobe_event(file, offset, pid, is_return)
                            fds.insert(0, event)
                            fds.insert(0, open_perf_link(program, event, cookie))
        except OSError:
            for fd in fds:
                os.close(fd)
            raise
        return fds

    def clock(self, m: dict[str, Any]) -> list[int]:
        """Sample the CPU clock of every CPU."""
        fds: list[int] = []
        for cpu in online_cpus():
            event = open_clock(cpu, m["hertz"])
            fds += [open_perf_link(self.programs[m["entry"]], event, 0), event]
        return fds

    def tracepoint(self, m: dict[str, Any]) -> list[int]:
        """Attach to a raw tracepoint by name."""
        name = ctypes.create_string_buffer(m["name"].encode())
        attr = struct.pack("<QII", ctypes.addressof(name), self.programs[m["entry"]], 0)
        return [bpf(BPF_RAW_TRACEPOINT_OPEN, attr + b"\0" * 8)]

    def close(self, id: int) -> None:
        """Take one link off, in a thread, and say when it is done."""
        fds = self.links.pop(id, None)
        for cookie in self.carried.pop(id, ()):
            ids = self.cookies.get(cookie, set())
            ids.discard(id)
            if not ids:
                self.cookies.pop(cookie, None)
        if fds is None:
            return

        def work() -> None:
            for fd in fds:
                os.close(fd)
            self.say(closed=id)

        thread = threading.Thread(target=work)
        thread.start()
        self.closing = [t for t in self.closing if t.is_alive()]
        self.closing.append(thread)

    def close_all(self) -> None:
        """Take every link off and wait until that is done."""
        for id in list(self.links):
            self.close(id)
        for thread in self.closing:
            thread.join()

    def look_at_switch(self) -> None:
        """While the kill switch, a file, is there no link is; seen here, so that it works whatever the daemon does."""
        off = bool(self.switch) and os.path.lexists(self.switch)
        if off != self.off:
            self.off = off
            if off:
                self.close_all()
            self.say(switched="off" if off else "on")

    def obey(self, m: dict[str, Any], fds: list[int]) -> None:
        """Carry out one message of the daemon."""
        op = m["op"]
        if op == "programs":
            self.programs = dict(zip(m["names"], fds, strict=False))
            self.alarms = Alarms(fds[-1], m["alarms"])
        elif op == "switch":
            self.switch = m["path"]
        elif op == "close":
            self.close(m["id"])
        elif op in ("link", "clock", "tracepoint") and self.off:
            self.say(id=m["id"], error=SWITCHED_OFF, errno=errno.ECANCELED)
            for fd in fds:
                os.close(fd)
        elif op in ("link", "clock", "tracepoint"):
            try:
                made = self.link(m, fds[0]) if op == "link" else getattr(self, op)(m)
                self.take(m["id"], made, m.get("cookies", []))
                self.say(id=m["id"])
            except (OSError, KeyError) as error:
                self.say(id=m["id"], error=str(error), errno=getattr(error, "errno", 0) or 0)
            for fd in fds:
                os.close(fd)

    def alarm(self) -> None:
        """Take the links off whose bucket ran empty, or that a stranger hit."""
        assert self.alarms is not None
        for kind, tgid, cookie, _ in self.alarms.read():
            for id in list(self.cookies.get(cookie, ())):
                self.say(alarm=kind, id=id, cookie=cookie, tgid=tgid)
                self.close(id)

    def run(self) -> None:
        """Serve until the daemon's end of the channel closes."""
        selector = selectors.DefaultSelector()
        selector.register(self.channel, selectors.EVENT_READ)
        while True:
            late_s = self.beaten + HEARTBEAT_S - time.monotonic()
            ready = selector.select(max(0.0, min(late_s, SWITCH_S)) if self.links else None)
            if not ready:
                self.look_at_switch()
            for key, _ in ready:
                if key.fileobj is not self.channel:
                    self.alarm()
                    continue
                data, fds = receive(self.channel)
                if not data:
                    return
                self.look_at_switch()  # before what is asked: nothing may be linked in between
                self.beaten = time.monotonic()
                had = self.alarms
                self.obey(json.loads(data), fds)
                self.look_at_switch()
                if self.alarms is not had and self.alarms is not None:
                    selector.register(self.alarms.fd, selectors.EVENT_READ)
            if self.links and time.monotonic() - self.beaten >= HEARTBEAT_S:
                self.close_all()
                self.say(released=True)


def receive(channel: socket.socket) -> tuple[bytes, list[int]]:
    """Receive one message with its fds; b'' when the other end is gone."""
    try:
        data, extra, _, _ = channel.recvmsg(1 << 16, socket.CMSG_SPACE(4 * 64))
    except OSError:
        return b"", []
    fds = array.array("i")
    for level, kind, payload in extra:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            fds.frombytes(payload[: len(payload) - len(payload) % 4])
    return data, list(fds)


def hang_up(channel: socket.socket) -> None:
    """Hear what was said already, then the end."""
    with contextlib.suppress(OSError):
        channel.shutdown(socket.SHUT_RD)


def main() -> None:
    """Serve the daemon that started us, then take everything off."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the daemon decides when we end
    channel = socket.socket(fileno=int(sys.argv[1]))
    # A killed daemon closes its end only when its last thread has died, which on a busy host may take long: they
    # are the last to get CPU. The thread that started us is not, and the kernel tells us of its death.
    signal.signal(signal.SIGUSR1, lambda *_: hang_up(channel))
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGUSR1, 0, 0, 0)
    holder = Holder(channel)
    try:
        holder.run()
    finally:
        holder.close_all()


if __name__ == "__main__":
    main()
