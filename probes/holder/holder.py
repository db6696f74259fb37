"""All links by the numbers that the daemon gave them; its requests, the kernel's alarms, the kill switch."""

from __future__ import annotations

import array
import contextlib
import ctypes
import errno
import json
import os
import selectors
import signal
import socket
import sys
import threading
import time
from typing import Any

from .alarms import Alarms
from .bpf_link import MAKERS, SYSCALLS
from .capabilities import keep_for_links
from .last_words import say_last_words
from .link_threads import TABLES, LinkFds, LinkThreads
from .process_state import is_stopped
from .time_scale import TIME_SCALE

PR_SET_PDEATHSIG = 1
HEARTBEAT_S = 1.0 * TIME_SCALE
SWITCH_S = 0.4
"""While there are links, the kill switch is checked this often, also without messages of the daemon.

A daemon that said nothing for so long may be stopped: that is checked then, and needs no second of waiting.
"""
SWITCHED_OFF = "the kill switch is on"


class Holder:
    """All links, by the number that the daemon gave each."""

    def __init__(self, channel: socket.socket, pulse: socket.socket) -> None:
        self.channel, self.pulse = channel, pulse
        self.daemon = os.getppid()
        self.programs: dict[str, int] = {}
        self.tables: list[LinkThreads] = []
        self.links: dict[int, tuple[LinkThreads, LinkFds]] = {}
        self.links_by_cookie: dict[int, set[int]] = {}
        self.cookies: dict[int, list[int]] = {}
        """Of each link."""
        self.companions: dict[int, list[int]] = {}
        """Cookie -> links that are closed with those of the cookie when these raise an alarm."""
        self.alarms: Alarms | None = None
        self.closing: list[threading.Event] = []
        self.last_beat_s = time.monotonic()
        self.switch = ""
        self.off: bool | None = False
        """Whether the kill switch is on; None: not reported yet."""

    def report(self, **message: object) -> None:
        """Send a report to the daemon; if it does not read, its heartbeat will end too."""
        with contextlib.suppress(OSError):
            self.channel.send(json.dumps({**message, "at": time.monotonic_ns()}).encode(), socket.MSG_DONTWAIT)

    def make(self, m: dict[str, Any], file: int) -> None:
        """Make a link, and record its table and its cookies."""
        id, cookies = m["id"], m.get("cookies", [])
        fds = MAKERS[m["op"]](self.programs, m, file)
        table = self.tables[id % TABLES]
        try:
            taken = table.take(fds)
        except OSError:
            for fd in fds:  # or the probes would stay, and nobody would know
                os.close(fd)
            raise
        self.links[id], self.cookies[id] = (table, taken), cookies
        for cookie in cookies:
            self.links_by_cookie.setdefault(cookie, set()).add(id)
            if m.get("companions"):
                self.companions[cookie] = m["companions"]

    def close(self, id: int) -> None:
        """Detach one link in its table's threads, and report when that is done."""
        link = self.links.pop(id, None)
        for cookie in self.cookies.pop(id, ()):
            ids = self.links_by_cookie.get(cookie, set())
            ids.discard(id)
            if not ids:
                self.links_by_cookie.pop(cookie, None)
                self.companions.pop(cookie, None)
        if link is None:
            return
        table, fds = link
        self.closing = [closed for closed in self.closing if not closed.is_set()]
        self.closing.append(table.close(fds, lambda: self.report(closed=id)))

    def close_all(self) -> None:
        """Detach every link and wait until that is done."""
        for id in list(self.links):
            self.close(id)
        for closed in self.closing:
            closed.wait()

    def check_switch(self) -> None:
        """Detach all links while the kill switch, a file, exists. This needs no daemon that works."""
        off = bool(self.switch) and os.path.lexists(self.switch)
        if off != self.off:
            self.off = off
            if off:
                self.close_all()
            self.report(switched="off" if off else "on")

    def execute(self, m: dict[str, Any], fds: list[int]) -> None:
        """Carry out one message of the daemon."""
        op = m["op"]
        if op == "programs":
            SYSCALLS.update(m["syscalls"])
            self.programs = dict(zip(m["names"], fds, strict=False))
            self.alarms = Alarms(fds[-1], m["alarms"])
            self.tables = [
                LinkThreads({self.channel.fileno(), self.pulse.fileno(), *self.programs.values()})
                for _ in range(TABLES)
            ]
        elif op == "more":
            self.programs.update(zip(m["names"], fds, strict=True))
        elif op == "switch":
            self.switch, self.off = m["path"], None
        elif op == "close":
            self.close(m["id"])
        elif op in MAKERS and self.off:
            self.report(id=m["id"], error=SWITCHED_OFF, errno=errno.ECANCELED)
            for fd in fds:
                os.close(fd)
        elif op in MAKERS:
            try:
                self.make(m, fds[0] if fds else -1)
                self.report(id=m["id"])
            except (OSError, KeyError) as error:
                self.report(id=m["id"], error=str(error), errno=getattr(error, "errno", 0) or 0)
            for fd in fds:
                os.close(fd)

    def read_alarms(self) -> None:
        """Detach the links that passed their rate limit, or that an unwatched process hit."""
        assert self.alarms is not None
        for kind, tgid, cookie, _ in self.alarms.read():
            companions = self.companions.get(cookie, ())
            for id in list(self.links_by_cookie.get(cookie, ())):
                self.report(alarm=kind, id=id, cookie=cookie, tgid=tgid)
                self.close(id)
            for id in companions:
                if id in self.links:
                    self.report(ended=id)
                    self.close(id)

    def answer_beat(self, selector: selectors.BaseSelector) -> None:
        """Answer a heartbeat: the daemon kills a holder that is silent."""
        with contextlib.suppress(OSError):
            beat = self.pulse.recv(1)
            if beat:
                self.last_beat_s = time.monotonic()
                self.pulse.send(beat, socket.MSG_DONTWAIT)
                self.check_switch()
                return
        selector.unregister(self.pulse)

    def run(self) -> None:
        """Serve until the daemon's end of the channel closes."""
        with selectors.DefaultSelector() as selector:
            selector.register(self.channel, selectors.EVENT_READ)
            selector.register(self.pulse, selectors.EVENT_READ)
            while self.serve(selector):
                if self.links and self.is_late():
                    self.close_all()
                    self.report(released=True)

    def is_late(self) -> bool:
        """Tell whether the daemon's heartbeat has stopped: it is too old, or it is old and the daemon is stopped."""
        silent_s = time.monotonic() - self.last_beat_s
        return silent_s >= HEARTBEAT_S or (silent_s >= SWITCH_S and is_stopped(self.daemon))

    def serve(self, selector: selectors.BaseSelector) -> bool:
        """Wait for the next event and handle it; False once the daemon's end of the channel has closed."""
        late_s = self.last_beat_s + HEARTBEAT_S - time.monotonic()
        ready = selector.select(max(0.0, min(late_s, SWITCH_S)) if self.links else None)
        if not ready:
            self.check_switch()
        for key, _ in ready:
            if key.fileobj is self.pulse:
                self.answer_beat(selector)
                continue
            if key.fileobj is not self.channel:
                self.read_alarms()
                continue
            data, fds = receive(self.channel)
            if not data:
                return False
            self.check_switch()  # before the request: no link may be made in between
            self.last_beat_s = time.monotonic()
            before = self.alarms
            self.execute(json.loads(data), fds)
            self.check_switch()
            if self.alarms is not before and self.alarms is not None:
                selector.register(self.alarms.fd, selectors.EVENT_READ)
        return True


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
    """Let the channel end after what was sent already."""
    with contextlib.suppress(OSError):
        channel.shutdown(socket.SHUT_RD)


def main() -> None:
    """Serve the daemon that started us, then detach everything."""
    say_last_words("specmine's holder of the probes")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the daemon decides when we end
    channel, pulse = (socket.socket(fileno=int(number)) for number in sys.argv[1:3])
    # A killed daemon closes its end only when its last thread has died, which on a busy host may take long: they
    # are the last to get CPU. The thread that started us is not, and the kernel tells us of its death.
    signal.signal(signal.SIGUSR1, lambda *_: hang_up(channel))
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGUSR1, 0, 0, 0)
    keep_for_links(perf=sys.argv[3] == "perf")
    holder = Holder(channel, pulse)
    try:
        holder.run()
    finally:
        # The channel has ended. Blocked, not ignored: Python complains of a signal that came before it was ignored
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
        holder.close_all()
