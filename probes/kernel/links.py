"""The daemon's end of the holder: request links, receive what became of them."""

from __future__ import annotations

import array
import contextlib
import json
import os
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue

from specmine.model.errors import ProbeError
from specmine.model.observation import Kind
from specmine.model.probe_kind import PROBE_KINDS
from specmine.probes.arch.machine import machine

from .loader import Loaded
from .structs import EVENT_BYSTANDER

BEAT_S = 0.2
HEARTBEAT_NICENESS = -15
"""Niceness of the heartbeat and the holder: next to no CPU time, but at once."""
STALL_S = 5.0
"""A loop without progress for so long gets no heartbeat, so that its probes are detached."""


@dataclass(frozen=True, slots=True)
class LinkNews:
    """A report of the holder about one link, or about all (``id`` 0)."""

    id: int
    what: str
    """made | failed | closed | alarm | bystander | released | off | on | dead"""
    text: str = ""
    errno: int = 0
    cookie: int = 0
    tgid: int = 0
    at_ns: int = 0
    """When the holder sent it, CLOCK_MONOTONIC ns."""


class Links:
    """All links of this daemon, held by a child process."""

    def __init__(self, loaded: Loaded) -> None:
        """Start the holder and hand it the programs. Raises ProbeError if it cannot be started."""
        self.mode, self.programs = loaded.mode, frozenset(loaded.programs)
        self._next = 1
        self._lock = threading.Lock()
        self._progress = threading.Event()
        self._stop = threading.Event()
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        started: SimpleQueue[subprocess.Popen[bytes] | OSError] = SimpleQueue()
        self._beater = threading.Thread(target=self._run_holder, args=(theirs, started), daemon=True, name="heartbeat")
        self._beater.start()
        child = started.get()
        if isinstance(child, OSError):
            self._channel.close()
            raise ProbeError(f"the holder of the probes cannot be started: {child.strerror}") from child
        self._child = child
        names = list(loaded.programs)
        alarms = loaded.maps["alarms"]
        self._send(
            {
                "op": "programs",
                "names": names,
                "alarms": loaded.entries["alarms"],
                "syscalls": dict(machine().syscalls),
            },
            [loaded.programs[n] for n in names] + [alarms],
        )

    @property
    def pid(self) -> int:
        """Process id of the holder."""
        return self._child.pid

    def fileno(self) -> int:
        """Return the descriptor that is readable when there is news."""
        return self._channel.fileno()

    def _send(self, message: dict[str, object], fds: Sequence[int] = ()) -> None:
        packed = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        try:
            with self._lock:
                self._channel.sendmsg([json.dumps(message).encode()], packed)
        except OSError as error:
            raise ProbeError(f"the holder of the probes is gone: {error.strerror}") from error

    def _run_holder(self, theirs: socket.socket, started: SimpleQueue[subprocess.Popen[bytes] | OSError]) -> None:
        """Start the holder and give it its heartbeat until the end; the death of this thread is the holder's end.

        The daemon has the lowest priority; this thread, and the holder with it, have a high one. Otherwise, on a busy
        host, a late heartbeat would detach the probes, or the probes would stay long after the daemon was killed.
        """
        _raise_priority()
        script = str(Path(__file__).resolve().parents[1] / "holder" / "__main__.py")
        try:
            with theirs:
                child = subprocess.Popen(
                    [sys.executable, "-I", "-S", script, str(theirs.fileno())],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,
                    cwd="/",
                    env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
                )
        except OSError as error:
            started.put(error)
            return
        started.put(child)
        self._beat()

    def _beat(self) -> None:
        idle = 0.0
        while not self._stop.wait(BEAT_S):
            if self._progress.is_set():
                self._progress.clear()
                idle = 0.0
            else:
                idle += BEAT_S
            if idle < STALL_S:
                try:
                    self._send({"op": "beat"})
                except ProbeError:
                    return

    def _ask(self, message: dict[str, object], fds: Sequence[int] = ()) -> int:
        number = self._next
        self._next += 1
        self._send(message | {"id": number}, fds)
        return number

    def attach(self, file: int, offsets: list[int], cookies: list[int], kind: Kind, pid: int = 0) -> int:
        """Ask for probes at file offsets of one file.

        Parameters
        ----------
        file : int
            An open fd of the file that is mapped; it may be closed after the call.
        offsets, cookies : list of int
            Probe sites and the cookie of each, equally long.
        pid : int
            Only this process; 0: every process that maps the file.

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
        }
        return self._ask(message, [file])

    def attach_site(self, file: int, offsets: list[int], cookies: list[int], program: str, pid: int = 0) -> int:
        """Ask for ordinary probes that run a program by name: entries and return sites; else as ``attach``."""
        message: dict[str, object] = {
            "op": "link",
            "kind": "multi",
            "entry": program,
            "return": None,
            "offsets": offsets,
            "cookies": cookies,
            "pid": pid,
        }
        return self._ask(message, [file])

    def switch(self, path: str) -> None:
        """Name the kill switch: while there is a file of this path no link is made, and none stays."""
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
        if wait_s:
            select.select([self._channel], [], [], wait_s)
        while True:
            try:
                data = self._channel.recv(1 << 16, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return reports
            except OSError:
                data = b""
            if not data:
                reports.append(LinkNews(0, "dead", "the holder of the probes has ended"))
                return reports
            message = json.loads(data)
            reports.append(replace(_parse_news(message), at_ns=int(message.get("at", 0))))

    def shut(self) -> None:
        """Detach all probes and wait for the end of the holder."""
        self._stop.set()
        self._channel.close()
        try:
            self._child.wait(5)
        except subprocess.TimeoutExpired:
            os.kill(self._child.pid, 9)
            self._child.wait()
        self._beater.join()


def _raise_priority() -> None:
    """Raise the priority of this thread as far as is permitted."""
    for niceness in (HEARTBEAT_NICENESS, 0):
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), niceness)
            return


def _parse_news(message: dict[str, object]) -> LinkNews:
    number = int(str(message.get("id", 0)))
    if "alarm" in message:
        what = "bystander" if message["alarm"] == EVENT_BYSTANDER else "alarm"
        return LinkNews(number, what, cookie=int(str(message["cookie"])), tgid=int(str(message["tgid"])))
    if "switched" in message:
        return LinkNews(0, str(message["switched"]), "all probes were taken off by the kill switch")
    if "released" in message:
        return LinkNews(0, "released", "the heartbeat was late, all probes were taken off")
    if "closed" in message:
        return LinkNews(int(str(message["closed"])), "closed")
    if "error" in message:
        return LinkNews(number, "failed", str(message["error"]), int(str(message.get("errno", 0))))
    return LinkNews(number, "made")
