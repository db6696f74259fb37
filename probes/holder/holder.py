"""All links by the numbers that the daemon gave them, its wishes, the kernel's alarms, the kill switch."""

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
from .link_threads import KEEPERS, Keeper, Kept

PR_SET_PDEATHSIG = 1
HEARTBEAT_S = 1.0
SWITCH_S = 0.25
"""The kill switch is looked for so often while links are, also if the daemon says nothing."""
SWITCHED_OFF = "the kill switch is on"


class Holder:
    """All links, by the number that the daemon gave each."""

    def __init__(self, channel: socket.socket) -> None:
        self.channel = channel
        self.programs: dict[str, int] = {}
        self.keepers: list[Keeper] = []
        self.links: dict[int, tuple[Keeper, Kept]] = {}
        self.cookies: dict[int, set[int]] = {}
        self.carried: dict[int, list[int]] = {}
        self.alarms: Alarms | None = None
        self.closing: list[threading.Event] = []
        self.beaten = time.monotonic()
        self.switch = ""
        self.off = False

    def say(self, **message: object) -> None:
        """Tell the daemon; if it does not listen the heartbeat will end us."""
        with contextlib.suppress(OSError):
            self.channel.send(json.dumps({**message, "at": time.monotonic_ns()}).encode(), socket.MSG_DONTWAIT)

    def make(self, m: dict[str, Any], file: int) -> None:
        """Make a link, and remember who keeps it and the cookies that it carries."""
        id, cookies = m["id"], m.get("cookies", [])
        fds = MAKERS[m["op"]](self.programs, m, file)
        keeper = self.keepers[id % KEEPERS]
        self.links[id], self.carried[id] = (keeper, keeper.take(fds)), cookies
        for cookie in cookies:
            self.cookies.setdefault(cookie, set()).add(id)

    def close(self, id: int) -> None:
        """Take one link off, beside what else is done, and say when it is off."""
        link = self.links.pop(id, None)
        for cookie in self.carried.pop(id, ()):
            ids = self.cookies.get(cookie, set())
            ids.discard(id)
            if not ids:
                self.cookies.pop(cookie, None)
        if link is None:
            return
        keeper, kept = link
        self.closing = [each for each in self.closing if not each.is_set()]
        self.closing.append(keeper.close(kept, lambda: self.say(closed=id)))

    def close_all(self) -> None:
        """Take every link off and wait until that is done."""
        for id in list(self.links):
            self.close(id)
        for closed in self.closing:
            closed.wait()

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
            SYSCALLS.update(m["syscalls"])
            self.programs = dict(zip(m["names"], fds, strict=False))
            self.alarms = Alarms(fds[-1], m["alarms"])
            self.keepers = [Keeper({self.channel.fileno(), *self.programs.values()}) for _ in range(KEEPERS)]
        elif op == "switch":
            self.switch = m["path"]
        elif op == "close":
            self.close(m["id"])
        elif op in MAKERS and self.off:
            self.say(id=m["id"], error=SWITCHED_OFF, errno=errno.ECANCELED)
            for fd in fds:
                os.close(fd)
        elif op in MAKERS:
            try:
                self.make(m, fds[0] if fds else -1)
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
        with selectors.DefaultSelector() as selector:
            selector.register(self.channel, selectors.EVENT_READ)
            while self.serve(selector):
                if self.links and time.monotonic() - self.beaten >= HEARTBEAT_S:
                    self.close_all()
                    self.say(released=True)

    def serve(self, selector: selectors.BaseSelector) -> bool:
        """Wait for what comes next and do it; False once the daemon's end of the channel has closed."""
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
                return False
            self.look_at_switch()  # before what is asked: nothing may be linked in between
            self.beaten = time.monotonic()
            had = self.alarms
            self.obey(json.loads(data), fds)
            self.look_at_switch()
            if self.alarms is not had and self.alarms is not None:
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
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGUSR1, 0, 0, 0)
    holder = Holder(channel)
    try:
        holder.run()
    finally:
        holder.close_all()
