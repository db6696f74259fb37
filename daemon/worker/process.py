"""The worker: a process of its own that explains functions; started on demand, ended when idle.

A job may take seconds, and the loop must not wait. Parent and worker exchange pickled values,
each after its length, over the worker's stdin and stdout. The parent never waits.
"""

from __future__ import annotations

import os
import pickle
import select
import struct
import subprocess
import sys
from collections import deque
from typing import BinaryIO, Protocol

from specmine.mining.assertions.explanation import Explanation
from specmine.model.restart_pause import RestartPause
from specmine.probes.holder.capabilities import keep
from specmine.probes.holder.last_words import say_last_words
from specmine.probes.holder.process_state import is_stopped
from specmine.probes.process.proc import process

from .jobs import Job, run_job

_LENGTH = struct.Struct("<Q")
LOOK_NS, STOPPED_LOOKS = 500_000_000, 3
"""How often it is looked whether the child is stopped, and how often in a row it must be to be killed."""
JOB_NS = 3_600_000_000_000
"""A job that takes longer is given up; the child has the lowest priority."""
IDLE_NS = 30_000_000_000
"""An idle worker is ended after this time."""
PAUSE_NS = 1_000_000_000
"""Before another child is started after a second one died."""
_ONE_THREAD = {
    name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
}

Done = tuple[int, Explanation | None, str]
"""Number of the job, its result, or the reason why there is none."""


class Worker(Protocol):
    """Carries out jobs; the loop submits them and collects the results later."""

    def submit(self, number: int, job: Job) -> None:
        """Take a job; returns at once."""
        ...

    def collect(self, now_ns: int) -> list[Done]:
        """Return what is done since the last call; never blocks."""
        ...

    def used_ns(self) -> int:
        """Return the CPU time that a process of the worker's own took since the last call."""
        ...

    def close(self) -> None:
        """End at once; unfinished jobs are lost."""
        ...


class InlineWorker:
    """Carries out jobs in this process when they are collected: for replay and for tests."""

    def __init__(self) -> None:
        """Start with nothing to do."""
        self._jobs: deque[tuple[int, Job]] = deque()

    def submit(self, number: int, job: Job) -> None:
        """Take a job."""
        self._jobs.append((number, job))

    def collect(self, now_ns: int) -> list[Done]:
        """Carry out the jobs taken since the last call."""
        done = [_carried_out(number, job) for number, job in self._jobs]
        self._jobs.clear()
        return done

    def used_ns(self) -> int:
        """Return 0: what is done here is counted here."""
        return 0

    def close(self) -> None:
        """Forget the jobs."""
        self._jobs.clear()


class ProcessWorker:
    """Carries out jobs one after the other in a child with one thread and the lowest priority."""

    def __init__(self, python: str = sys.executable) -> None:
        """Remember the interpreter; the child starts with the first job."""
        self._python = python
        self._child: subprocess.Popen[bytes] | None = None
        self._queue: deque[tuple[int, Job]] = deque()
        self._running: tuple[int, Job] | None = None
        self._out = b""
        self._in = bytearray()
        self._idle_since_ns: int | None = None
        self._used_ns = 0
        self._now_ns = self._start_ns = self._looked_ns = 0
        self._begun_ns: int | None = None
        """When the job was first seen to run."""
        self._stopped = 0
        self._pause = RestartPause(PAUSE_NS)

    @property
    def restarts(self) -> int:
        """How often a child was killed, or broke."""
        return self._pause.ends

    @property
    def pid(self) -> int | None:
        """Process id of the child, None while there is none."""
        return self._child.pid if self._child else None

    def submit(self, number: int, job: Job) -> None:
        """Take a job and start it if the child is free."""
        self._queue.append((number, job))
        self._next()

    def collect(self, now_ns: int) -> list[Done]:
        """Return what is done; a child that died fails the job it had."""
        done: list[Done] = []
        self._now_ns = now_ns
        if self._running is not None:
            self._kill_hung()
            done = self._exchange()
        self._next()
        if self._running is not None or self._child is None:
            self._idle_since_ns = None
        elif self._idle_since_ns is None:
            self._idle_since_ns = now_ns
        elif now_ns - self._idle_since_ns >= IDLE_NS:
            self._end()
        return done

    def used_ns(self) -> int:
        """Return the CPU time of the child since the last call; what a child that died used since then is lost."""
        status = process(self._child.pid) if self._child else None
        if status is None:
            return 0
        before, self._used_ns = self._used_ns, status.cpu_ns
        return max(0, status.cpu_ns - before)

    def close(self) -> None:
        """Kill the child."""
        self._queue.clear()
        self._running = None
        self._end()

    def _next(self) -> None:
        if self._running is not None or not self._queue or (self._child is None and self._now_ns < self._start_ns):
            return
        self._running, self._begun_ns = self._queue.popleft(), None
        data = pickle.dumps(self._running)
        self._out, self._in = _LENGTH.pack(len(data)) + data, bytearray()
        try:
            self._child = self._child or self._started()
        except OSError:
            self._child = None  # the next exchange reports it

    def _kill_hung(self) -> None:
        """Kill a child that is stopped, or that has had its job for too long: the job fails."""
        if self._child is None or self._now_ns - self._looked_ns < LOOK_NS:
            return
        self._looked_ns = self._now_ns
        if self._begun_ns is None:
            self._begun_ns = self._now_ns
        self._stopped = self._stopped + 1 if is_stopped(self._child.pid) else 0
        if self._stopped >= STOPPED_LOOKS or self._now_ns - self._begun_ns >= JOB_NS:
            self._child.kill()
            self._child.wait()

    def _started(self) -> subprocess.Popen[bytes]:
        child = subprocess.Popen(
            [self._python, "-P", "-m", "specmine.daemon.worker.process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # an interrupt from the terminal is for the parent alone
            env={**os.environ, **_ONE_THREAD},
        )
        for pipe in (child.stdin, child.stdout):
            os.set_blocking(pipe.fileno(), False)  # type: ignore[union-attr]
        return child

    def _exchange(self) -> list[Done]:
        """Write and read as far as the pipes let; return the job if it ended either way."""
        number = self._running[0] if self._running else 0
        if self._child is None or self._child.stdin is None or self._child.stdout is None:
            self._running = None
            return [(number, None, "the mining process cannot be started")]
        try:
            while self._out and select.select((), (self._child.stdin,), (), 0)[1]:
                self._out = self._out[os.write(self._child.stdin.fileno(), self._out) :]
            while select.select((self._child.stdout,), (), (), 0)[0]:
                data = os.read(self._child.stdout.fileno(), 1 << 20)
                if not data:
                    raise EOFError
                self._in += data
        except (OSError, EOFError):
            status = self._end()
            self._running = None
            self._start_ns = self._pause.ended(self._now_ns)
            return [(number, None, f"the mining process ended with status {status}")]
        if len(self._in) < _LENGTH.size or len(self._in) < _LENGTH.size + _LENGTH.unpack_from(self._in)[0]:
            return []
        done: Done = pickle.loads(self._in[_LENGTH.size :])
        self._running = None
        return [done]

    def _end(self) -> int | None:
        child, self._child, self._idle_since_ns, self._used_ns = self._child, None, None, 0
        if child is None:
            return None
        child.kill()
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                pipe.close()
        return child.wait()


def _carried_out(number: int, job: Job) -> Done:
    try:
        return number, run_job(job), ""
    except Exception as error:  # whatever goes wrong in one job, the next one is another matter
        return number, None, f"{type(error).__name__}: {error}"


def _read_whole(incoming: BinaryIO) -> bytes | None:
    """Read one value; None at the end, also if that cuts the value short."""
    head = incoming.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    size = _LENGTH.unpack(head)[0]
    data = incoming.read(size)
    return data if len(data) == size else None


def serve(incoming: BinaryIO, outgoing: BinaryIO) -> None:
    """Carry out jobs until the parent closes the pipe, or dies in the middle of a job."""
    while (data := _read_whole(incoming)) is not None:
        number, job = pickle.loads(data)
        data = pickle.dumps(_carried_out(number, job))
        outgoing.write(_LENGTH.pack(len(data)) + data)
        outgoing.flush()


if __name__ == "__main__":
    say_last_words("specmine's worker")
    os.nice(19)
    keep(())
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not land between our values
    try:
        serve(sys.stdin.buffer, out)
    except BrokenPipeError:  # the daemon was killed
        os._exit(0)  # a normal exit would complain that what is in the buffer cannot be written
