"""Asks the reader's child about binaries: open files go there, plain values come back.

The child parses one file at a time, in the order asked; it is started when first needed and again after it died, each
time after a longer pause. A file that it dies of twice, or that takes too long (the child's own timers end it then),
gets an InputError; what was asked after it goes to a new child. A child that is stopped is killed. Light: the daemon
imports this, and none of the parsers.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self, cast

from specmine.model.errors import HostError, InputError
from specmine.model.restart_pause import RestartPause
from specmine.probes.holder.time_scale import TIME_SCALE

from .facts import BinaryFacts, FunctionFacts, RowTable, Site
from .parsing_child import LOOK_NS, ParsingChild, why_ended
from .protocol import Answer, decode

AHEAD = 32
"""Requests sent before the first is answered: most take half a millisecond, and polls come every 50."""
LARGEST = 1 << 28
"""Bytes of an answer beyond which it is not read."""
FIRST_PAUSE_NS, LONGEST_PAUSE_NS = 50_000_000, 5_000_000_000
"""Before another child is started after one that died; not longer, or hostile files would keep names from others."""
IDLE_NS = 300_000_000_000
"""A child that was asked nothing for so long is ended: it holds up to 80 MB, and starts again in 0.25 s."""
PATIENCE_S = 180.0 * TIME_SCALE
"""How long a blocking call waits for one answer; the child's own limits end it long before."""
CONFINE = "run it as a user that is not root, or as root with CAP_SETUID and CAP_SETGID, with seccomp filters allowed"
"""What the child needs to be confined."""


@dataclass(frozen=True, slots=True)
class _Request:
    number: int
    op: str
    question: int
    """A file in memory that holds the request."""
    file: int
    debug: int
    """Its separate debug file, -1 for none."""
    again: bool = False
    """A child was killed with it in hand."""


class Reader:
    """A queue of questions about files. Not for several threads at once."""

    def __init__(self, *, niceness: int = 5) -> None:
        """Prepare; nothing is started before the first request.

        Nothing can be watched before its binary is read, so the child is only a little nice: at 19 the first
        answer takes 14 s beside programs that keep all CPUs busy, at 5 0.6 s, and then it is done.
        """
        self._child = ParsingChild(niceness)
        self._next = 1
        self._queue: deque[_Request] = deque()
        self._debug: dict[int, int] = {}
        self._asked: deque[_Request] = deque()
        self._done: list[tuple[int, Answer]] = []
        self._closed = False
        self._pause = RestartPause(FIRST_PAUSE_NS, LONGEST_PAUSE_NS)
        self._start_ns = self._used_ns = 0
        """When the next child may be started; when something was asked last."""
        self._notes: list[str] = []

    @property
    def restarts(self) -> int:
        """How often a child was killed, or broke."""
        return self._pause.ends

    def take_notes(self) -> list[str]:
        """Return what became of children since the last call, a sentence each."""
        notes, self._notes = self._notes, []
        return notes

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()

    def fileno(self) -> int:
        """Return a descriptor that is readable when ``ready`` has something to do; it never changes."""
        return self._child.fileno()

    def pids(self) -> list[int]:
        """Return the processes that work for it now."""
        return [self._child.pid] if self._child.pid is not None else []

    def accompany(self, fd: int, debug: int) -> None:
        """Send ``debug`` along whenever something is asked about ``fd``; -1 ends that, before either is closed."""
        if debug >= 0:
            self._debug[fd] = debug
        else:
            self._debug.pop(fd, None)

    def request(self, op: str, fd: int, **arguments: object) -> int:
        """Ask without waiting; the file may be closed at once.

        Parameters
        ----------
        op : str
            facts, rows, functions_at, wrappers, code (offsets, module), find (globs, module)
            or sites and return_sites (offsets, kernel_emulates_nops).
        fd : int
            The file, open for reading.
        **arguments
            Those of the method.

        Returns
        -------
        int
            The number under which ``ready`` gives the answer.
        """
        if self._closed:
            raise ValueError("the reader is closed")
        number, self._next = self._next, self._next + 1
        self._used_ns = time.monotonic_ns()
        try:
            file = os.dup(fd)
        except OSError as error:
            self._done.append((number, InputError(f"cannot be read: {error.strerror}")))
            return number
        debug = os.dup(self._debug[fd]) if fd in self._debug else -1
        question = os.memfd_create("specmine-question", os.MFD_CLOEXEC)
        os.write(question, json.dumps({"op": op, **arguments}).encode())
        self._queue.append(_Request(number, op, question, file, debug))
        self._advance()
        return number

    def ready(self) -> list[tuple[int, Answer]]:
        """Return the answers that have come, by request; an InputError among them is a value, not raised."""
        self._receive()
        if self._asked:
            self._child.kill_stopped(time.monotonic_ns())
        self._end_idle()
        self._advance()
        done, self._done = self._done, []
        return done

    def facts(self, fd: int) -> BinaryFacts:
        """Return what a binary is. This and what follows wait for the answer and raise InputError."""
        return cast(BinaryFacts, self._wait("facts", fd))

    def check(self) -> None:
        """Have the child parse a file; HostError if it cannot be confined, or does not answer."""
        fd = os.open("/proc/self/exe", os.O_RDONLY | os.O_CLOEXEC)
        try:
            self.facts(fd)
        except InputError as error:
            raise HostError(f"foreign files cannot be parsed safely: {error.message}", remedy=CONFINE) from error
        finally:
            os.close(fd)

    def rows(self, fd: int) -> RowTable:
        """Return the unwind rows."""
        return cast(RowTable, self._wait("rows", fd))

    def functions_at(self, fd: int, offsets: Sequence[int], module: str) -> list[FunctionFacts | None]:
        """Return the function that holds each file offset, None where there is none."""
        answer = self._wait("functions_at", fd, offsets=list(offsets), module=module)
        return cast("list[FunctionFacts | None]", answer)

    def code(self, fd: int, offsets: Sequence[int], module: str) -> list[str]:
        """Return the digest of the machine code of each function that begins at these file offsets."""
        return cast("list[str]", self._wait("code", fd, offsets=list(offsets), module=module))

    def find(self, fd: int, globs: Sequence[str], module: str) -> list[FunctionFacts]:
        """Return the functions and ifuncs whose names match one of the globs, by file offset."""
        return cast("list[FunctionFacts]", self._wait("find", fd, globs=list(globs), module=module))

    def sites(self, fd: int, offsets: Sequence[int], *, kernel_emulates_nops: bool) -> list[Site]:
        """Return the probe sites of the functions that begin at these file offsets."""
        answer = self._wait("sites", fd, offsets=list(offsets), kernel_emulates_nops=kernel_emulates_nops)
        return cast("list[Site]", answer)

    def close(self) -> None:
        """End the child; requests that wait are given up."""
        self._closed = True
        for each in (*self._queue, *self._asked):
            _release(each)
        self._queue.clear()
        self._asked.clear()
        self._child.close()

    def _wait(self, op: str, fd: int, **arguments: Any) -> Answer:
        number = self.request(op, fd, **arguments)
        others: list[tuple[int, Answer]] = []
        until_s = time.monotonic() + PATIENCE_S
        try:
            while True:
                for answered, answer in self.ready():
                    if answered != number:
                        others.append((answered, answer))
                    elif isinstance(answer, InputError):
                        raise answer
                    else:
                        return answer
                if time.monotonic() > until_s:
                    self._fail("takes too long to read")
                self._child.await_answer(LOOK_NS / 1e9)  # a child may have been stopped, or wait to be started
        finally:
            self._done[:0] = others

    def _advance(self) -> None:
        """Send what waits, as far ahead as the child may be asked."""
        while self._queue and len(self._asked) < AHEAD:
            request = self._queue[0]
            if self._child.channel is None and time.monotonic_ns() < self._start_ns:
                return
            try:
                channel = self._child.channel or self._child.start()
            except HostError as error:
                self._asked.appendleft(self._queue.popleft())
                self._fail(error.message)
                continue
            try:
                more = [request.debug] if request.debug >= 0 else []
                socket.send_fds(channel, [b"q"], [request.question, request.file, *more])
            except BlockingIOError:
                return
            except OSError:  # it died: what was asked so far tells why, and the rest goes to a new one
                if self._asked:
                    return
                self._note("the process that parses files ended while it had nothing to do")
                self._child.end()
                continue
            self._asked.append(self._queue.popleft())

    def _receive(self) -> None:
        """Take in the answers that have come, or the child's end."""
        while (channel := self._child.channel) is not None:
            try:
                message, fds, _, _ = socket.recv_fds(channel, 1, 1)
            except BlockingIOError:
                return
            except OSError:
                message, fds = b"", []
            if not message or not fds or not self._asked:
                for fd in fds:
                    os.close(fd)
                self._ended()
                return
            asked = self._asked.popleft()
            with open(fds[0], "rb") as file:  # noqa: PTH123 (a descriptor)
                file.seek(0)
                data = file.read(LARGEST + 1)
            _release(asked)
            answer = decode(asked.op, data) if len(data) <= LARGEST else InputError("says too much to be read")
            self._done.append((asked.number, answer))

    def _ended(self) -> None:
        """Ask the request in hand again if the child was killed from outside, and once only; else it fails."""
        code = self._child.exit_code()
        self._note("the process that parses files ended" + why_ended(code))
        if code == -signal.SIGKILL and self._asked and not self._asked[0].again:
            self._asked[0] = replace(self._asked[0], again=True)
            self._queue.extendleft(reversed(self._asked))
            self._asked.clear()
            self._child.end()
        else:
            self._fail("the process that parsed it ended" + why_ended(code))

    def _note(self, what: str) -> None:
        """Note the end of a child, and when another may be started."""
        self._start_ns = self._pause.ended(time.monotonic_ns())
        self._notes.append(what)

    def _end_idle(self) -> None:
        """End a child that has had nothing to do for long; the next request starts another."""
        idle = self._child.pid is not None and not self._asked and not self._queue
        if idle and time.monotonic_ns() - self._used_ns >= IDLE_NS:
            self._child.end()

    def _fail(self, why: str) -> None:
        """Answer the request in hand with an error and end the child; what was asked after it is asked again."""
        asked = self._asked.popleft() if self._asked else None
        self._child.end()
        self._queue.extendleft(reversed(self._asked))
        self._asked.clear()
        if asked is not None:
            _release(asked)
            self._done.append((asked.number, InputError(f"cannot be read: {why}")))


def _release(request: _Request) -> None:
    os.close(request.question)
    os.close(request.file)
    if request.debug >= 0:
        os.close(request.debug)
