"""The daemon's end of the holder: request links, receive what became of them."""

from __future__ import annotations

import array
import contextlib
import json
import select
import socket
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from specmine.model.errors import HelperError
from specmine.model.observation import Kind
from specmine.model.probe_kind import PROBE_KINDS
from specmine.probes.arch.machine import machine

from .holder_process import Holder
from .loader import Loaded
from .structs import EVENT_BYSTANDER


@dataclass(frozen=True, slots=True)
class LinkNews:
    """A report of the holder about one link, or about all (``id`` 0)."""

    id: int
    what: str
    """made | failed | closed | alarm | bystander | ended | released | off | on | dead"""
    text: str = ""
    errno: int = 0
    cookie: int = 0
    tgid: int = 0
    at_ns: int = 0
    """When the holder sent it, CLOCK_MONOTONIC ns."""


class Links:
    """All links of this daemon, held by a child process."""

    def __init__(self, loaded: Loaded) -> None:
        """Start the holder and hand it the programs. Raises HelperError if it cannot be started."""
        self._loaded = loaded
        self.mode, self.programs = loaded.mode, dict(loaded.programs)
        self._next = 1
        self._switch = ""
        self._epoll = select.epoll()
        self._lock = threading.Lock()
        self._progress = threading.Event()
        self._stop = threading.Event()
        self._holder = self._started()

    def _started(self) -> Holder:
        """Start a holder and hand it the programs."""
        channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            holder = Holder(channel, theirs, mode=self.mode, progress=self._progress, stop=self._stop)
        except OSError as error:
            channel.close()
            raise HelperError(f"the holder of the probes cannot be started: {error.strerror}") from error
        self._holder = holder
        self._epoll.register(channel.fileno(), select.EPOLLIN)
        loaded = self._loaded
        message = {
            "op": "programs",
            "names": list(self.programs),
            "alarms": loaded.entries["alarms"],
            "syscalls": dict(machine().syscalls),
        }
        self._send(message, [*self.programs.values(), loaded.maps["alarms"]])
        if self._switch:
            self._send({"op": "switch", "path": self._switch})
        return holder

    def add(self, programs: Mapping[str, int]) -> None:
        """Hand the holder programs that were loaded later; the fds stay the caller's, and stay open."""
        self.programs |= programs
        self._send({"op": "more", "names": list(programs)}, list(programs.values()))

    def restart(self) -> None:
        """Start another holder after ``news`` told that it is dead; it holds no link. HelperError if that fails."""
        self._holder.end()
        self._started()

    @property
    def pid(self) -> int:
        """Process id of the holder, of the last one if there is none now."""
        return self._holder.child.pid

    @property
    def why_dead(self) -> str:
        """How the last holder ended, if it has."""
        return self._holder.why_dead()

    def fileno(self) -> int:
        """Return the descriptor that is readable when there is news; it never changes."""
        return self._epoll.fileno()

    def _send(self, message: dict[str, object], fds: Sequence[int] = ()) -> None:
        """Send a message; a holder that has died holds nothing, and ``news`` tells of it."""
        packed = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        with self._lock, contextlib.suppress(OSError):
            self._holder.channel.sendmsg([json.dumps(message).encode()], packed)

    def _ask(self, message: dict[str, object], fds: Sequence[int] = ()) -> int:
        number = self._next
        self._next += 1
        self._send(message | {"id": number}, fds)
        return number

    def attach(
        self,
        file: int,
        offsets: list[int],
        cookies: list[int],
        kind: Kind,
        pid: int = 0,
        companions: Sequence[int] = (),
    ) -> int:
        """Ask for probes at file offsets of one file.

        Parameters
        ----------
        file : int
            An open fd of the file that is mapped; it may be closed after the call.
        offsets, cookies : list of int
            Probe sites and the cookie of each, equally long.
        pid : int
            Only this process; 0: every process that maps the file.
        companions : sequence of int
            Links that are closed as soon as this one raises an alarm; ``news`` reports them as ended.

        Returns
        -------
        int
            Number of the link; ``news`` tells whether it was made.
        """
        programs = PROBE_KINDS[kind].programs[self.mode]
        message: dict[str, object] = {
            "op": "link",
            "kind": programs.link,
            "entry": programs.entry,
            "return": programs.back,
            "offsets": offsets,
            "cookies": cookies,
            "pid": pid,
            "companions": list(companions),
        }
        return self._ask(message, [file])

    def attach_site(
        self,
        file: int,
        offsets: list[int],
        cookies: list[int],
        program: str,
        pid: int = 0,
        companions: Sequence[int] = (),
    ) -> int:
        """Ask for ordinary probes that run a program by name: entries and return sites; else as ``attach``."""
        message: dict[str, object] = {
            "op": "link",
            "kind": "multi",
            "entry": program,
            "return": None,
            "offsets": offsets,
            "cookies": cookies,
            "pid": pid,
            "companions": list(companions),
        }
        return self._ask(message, [file])

    def switch(self, path: str) -> None:
        """Name the kill switch: while there is a file of this path no link is made, and none stays."""
        self._switch = path
        self._send({"op": "switch", "path": path})

    def clock(self, hertz: int) -> int:
        """Ask for samples of the CPU clock on every CPU that is not idle."""
        return self._ask({"op": "clock", "entry": "on_cpu", "hertz": hertz})

    def tracepoint(self, name: str, program: str) -> int:
        """Ask for a raw tracepoint."""
        return self._ask({"op": "tracepoint", "name": name, "entry": program})

    def close(self, number: int) -> None:
        """Ask for a link to be detached."""
        self._send({"op": "close", "id": number})

    def news(self, wait_s: float = 0.0) -> list[LinkNews]:
        """Return the reports since the last call; each call shows that the caller's loop lives."""
        self._progress.set()
        reports: list[LinkNews] = []
        channel = self._holder.channel
        if channel.fileno() < 0:
            return reports
        if wait_s:
            select.select([channel], [], [], wait_s)
        while True:
            try:
                data = channel.recv(1 << 16, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return reports
            except OSError:
                data = b""
            if not data:
                self._epoll.unregister(channel.fileno())
                with self._lock:
                    channel.close()
                reports.append(LinkNews(0, "dead", "the holder of the probes has ended"))
                return reports
            message = json.loads(data)
            reports.append(_parse_news(message, int(message.get("at", 0))))

    def shut(self) -> None:
        """Detach all probes and wait for the end of the holder."""
        self._stop.set()
        self._holder.end()
        self._epoll.close()


def _parse_news(message: dict[str, object], at_ns: int) -> LinkNews:
    number = int(str(message.get("id", 0)))
    if "alarm" in message:
        what = "bystander" if message["alarm"] == EVENT_BYSTANDER else "alarm"
        cookie, tgid = int(str(message["cookie"])), int(str(message["tgid"]))
        return LinkNews(number, what, cookie=cookie, tgid=tgid, at_ns=at_ns)
    if "switched" in message:
        return LinkNews(0, str(message["switched"]), "all probes were taken off by the kill switch", at_ns=at_ns)
    if "released" in message:
        return LinkNews(0, "released", "the heartbeat was late, all probes were taken off", at_ns=at_ns)
    for what in ("closed", "ended"):
        if what in message:
            return LinkNews(int(str(message[what])), what, at_ns=at_ns)
    if "error" in message:
        text, errno = str(message["error"]), int(str(message.get("errno", 0)))
        return LinkNews(number, "failed", text, errno, at_ns=at_ns)
    return LinkNews(number, "made", at_ns=at_ns)
