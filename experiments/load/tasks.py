"""Loads on the machine: tasks are started, wait at a barrier, begin together, end together, and are read.

Tasks are processes that die with their controller and end at a deadline of their own, so none outlives its run. The
controller sleeps meanwhile, on other CPUs if there are any.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import select
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from specmine.experiments.host.counters import read_counters
from specmine.experiments.types import POLICIES, SECOND, Counters, Load, LoadRun, Task, TaskRun
from specmine.model.errors import HostError

from .cgroup_confinement import Confinement
from .worker_binary import WorkerBinary

_PREPARED_S = 20.0
_GRACE_S = 3.0


class Interrupted(Exception):
    """Nobody waits for the result any more."""


class Starved(Exception):
    """A task got so little CPU time that it did not end: others want the CPU."""


def rest(seconds: float, cancel_fd: int) -> None:
    """Sleep; raise Interrupted as soon as the descriptor is readable (-1: none)."""
    if select.select([cancel_fd] if cancel_fd >= 0 else [], [], [], seconds)[0]:
        raise Interrupted


@dataclass(slots=True)
class _Started:
    task: Task
    process: subprocess.Popen[bytes]
    pidfd: int
    output: int


class Machine:
    """Runs loads on this host."""

    def __init__(
        self, worker: WorkerBinary | None, confinement: Confinement, *, folder: str = "/tmp", cancel_fd: int = -1
    ) -> None:
        """Take what starts tasks and where they are confined.

        Parameters
        ----------
        worker : WorkerBinary or None
            What each task is; None if only the host's counters are read.
        confinement : Confinement
            Where it runs.
        folder : str
            Where disk tasks have their nameless files.
        cancel_fd : int
            A descriptor that becomes readable when the run is not wanted any more; -1: none.
        """
        self._worker, self._confinement, self._folder, self._cancel_fd = worker, confinement, folder, cancel_fd
        self.cpu_ns = 0
        """CPU time of all tasks so far."""
        self.load_s = 0.0
        """How long there was load so far."""

    @property
    def identity(self) -> str:
        """What the worker is; changes when a unit of a demand could mean other work."""
        return "" if self._worker is None else self._worker.identity

    def run(self, load: Load) -> LoadRun:
        """Run a load to its end.

        Raises
        ------
        HostError
            If a task could not do what it was to do.
        Starved
            If a task got too little CPU time to end.
        Interrupted
            If the run is not wanted any more.
        """
        if not load.tasks:
            own = time.process_time_ns()
            counters = self._watch(load, [], time.monotonic() + load.seconds)
            return LoadRun(load=load, counters=counters, own_ns=time.process_time_ns() - own)
        for leaf, limit in load.limits.items():
            self._confinement.limit(leaf, limit)
        try:
            with _avoid_cpus([each.cpu for each in load.tasks]):
                return self._run(load)
        finally:
            for leaf in load.limits:
                self._confinement.limit(leaf, None)

    def _run(self, load: Load) -> LoadRun:
        leaves = sorted({each.group for each in load.tasks} | set(load.limits))
        with contextlib.ExitStack() as stack:
            page_fd = os.memfd_create("stop")
            stack.callback(os.close, page_fd)
            os.ftruncate(page_fd, 4096)
            page = stack.enter_context(mmap.mmap(page_fd, 4096))
            go_out, go_in = os.pipe()
            ready_out, ready_in = os.pipe()
            for fd in (go_out, ready_out, ready_in):
                stack.callback(os.close, fd)
            gate = stack.enter_context(_Gate(go_in))
            started: list[_Started] = []
            stack.callback(_end, started)
            for task in load.tasks:
                started.append(self._start(task, (go_out, page_fd, ready_in)))
            self._prepared(started, ready_out)
            throttled = {leaf: self._confinement.throttled(leaf) for leaf in leaves}
            own = time.process_time_ns()
            before = read_counters()
            gate.close()
            longest = max(each.seconds + each.delay for each in load.tasks)
            deadline = time.monotonic() + longest + _GRACE_S
            leaders = [each for each in started if each.task.leads]
            counters = (before, *self._watch(load, leaders, deadline))
            page[0] = 1
            self._join(started, time.monotonic() + _GRACE_S)
            counters = (*counters[:-1], read_counters())
            runs = tuple(_read(each) for each in started)
            self.cpu_ns += sum(each.cpu_ns for each in runs)
            self.load_s += max(each.elapsed_ns for each in runs) / SECOND
            now = {leaf: self._confinement.throttled(leaf) for leaf in leaves}
            return LoadRun(
                load=load,
                tasks=runs,
                counters=counters,
                own_ns=time.process_time_ns() - own,
                throttled={leaf: (now[leaf][0] - was[0], now[leaf][1] - was[1]) for leaf, was in throttled.items()},
            )

    def _start(self, task: Task, fds: tuple[int, int, int]) -> _Started:
        assert self._worker is not None
        output = os.memfd_create(task.name)
        try:
            process = subprocess.Popen(
                [self._worker.path, *_arguments(task, self._confinement.procs(task.group), self._folder, fds)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.PIPE,
                pass_fds=fds,
                env={"PATH": "/usr/bin:/bin"},
            )
        except OSError as error:
            os.close(output)
            raise HostError(f"a load task could not be started: {error}") from error
        return _Started(task, process, os.pidfd_open(process.pid), output)

    def _prepared(self, started: Sequence[_Started], ready: int) -> None:
        deadline, waiting = time.monotonic() + _PREPARED_S, len(started)
        while waiting:
            self._poll([ready, *(each.pidfd for each in started)], deadline)
            for each in started:
                if each.process.poll() is not None:
                    raise HostError(f"load task {each.task.name}: {_error_text(each)}")
            if select.select([ready], [], [], 0)[0]:
                waiting -= len(os.read(ready, waiting))
            if time.monotonic() > deadline:
                raise Starved("a load task was not ready in time")

    def _watch(self, load: Load, leaders: Sequence[_Started], deadline: float) -> tuple[Counters, ...]:
        """Wait until all leaders have ended or the deadline, reading counters meanwhile; at least twice."""
        readings = [] if load.tasks else [read_counters()]
        following = time.monotonic() + load.sample_every
        while time.monotonic() < deadline:
            living = [each.pidfd for each in leaders if not select.select([each.pidfd], [], [], 0)[0]]
            if leaders and not living:
                break
            until = min(deadline, following) if load.sample_every else deadline
            self._poll(living, until)
            if load.sample_every and time.monotonic() >= following:
                readings.append(read_counters())
                following += load.sample_every
        return (*readings, read_counters())

    def _join(self, started: Sequence[_Started], deadline: float) -> None:
        for each in started:
            while each.process.poll() is None:
                if time.monotonic() > deadline:
                    raise Starved(f"load task {each.task.name} did not end in time")
                self._poll([each.pidfd], deadline)

    def _poll(self, fds: Sequence[int], until: float) -> None:
        """Sleep until one of the descriptors has something, or the time has come."""
        poll = select.poll()
        for fd in fds:
            poll.register(fd, select.POLLIN)
        if self._cancel_fd >= 0:
            poll.register(self._cancel_fd, select.POLLIN | select.POLLHUP)
        events = poll.poll(max(0.0, until - time.monotonic()) * 1e3)
        if any(fd == self._cancel_fd for fd, _ in events):
            raise Interrupted


class _Gate:
    """A descriptor that is closed once: its closing is the barrier."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def close(self) -> None:
        """Close it."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> _Gate:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextlib.contextmanager
def _avoid_cpus(cpus: Sequence[int | None]) -> Iterator[None]:
    """Let this process run on none of the CPUs of pinned tasks."""
    before = os.sched_getaffinity(0)
    rest = before - {cpu for cpu in cpus if cpu is not None}
    if not rest or None in cpus:
        yield
        return
    os.sched_setaffinity(0, rest)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _arguments(task: Task, procs: str, folder: str, fds: tuple[int, int, int]) -> list[str]:
    settings: dict[str, object] = {
        "sensor": task.sensor,
        "group": procs,
        "folder": folder,
        "cpu": -1 if task.cpu is None else task.cpu,
        "partner": -1 if task.partner is None else task.partner,
        "nice": task.nice,
        "policy": POLICIES[task.policy],
        "slice_ns": task.slice_ns,
        "slack_ns": task.slack_ns,
        "seconds_ns": round(task.seconds * SECOND),
        "delay_ns": round(task.delay * SECOND),
        "iterations": task.iterations,
        "threshold_ns": task.threshold_ns,
        "capacity": task.capacity,
        "changed": int(task.changed),
        "window": task.window,
        "final": task.final,
        "forks": task.forks,
        "fork_units": task.fork_units,
        "seed": task.seed,
        **dict(zip(("go", "page", "ready"), fds, strict=True)),
    }
    steps = [f"step={each.kind}:{each.amount}" + (f":{each.random}" if each.random else "") for each in task.steps]
    return [f"{name}={value}" for name, value in settings.items()] + steps


def _read(started: _Started) -> TaskRun:
    if started.process.returncode != 0:
        raise HostError(f"load task {started.task.name}: {_error_text(started)}")
    size = os.fstat(started.output).st_size
    head_text, _, body = os.pread(started.output, size, 0).partition(b"\n")
    head = json.loads(head_text)
    rows = np.frombuffer(body, np.int64).reshape(-1, 3)
    births = int(head["births"])
    rows, born = (rows[:-births], rows[-births:]) if births else (rows, rows[:0])
    return TaskRun(
        task=started.task,
        start_ns=head["start_ns"],
        end_ns=head["end_ns"],
        cpu_ns=head["cpu_ns"],
        samples=rows,
        births=born,
        waited_ns=head["waited_ns"],
        involuntary=head["involuntary"],
        lost=head["lost"],
    )


def _error_text(started: _Started) -> str:
    assert started.process.stderr is not None
    text = started.process.stderr.read(1000).decode("utf-8", "replace").strip()
    return text.splitlines()[-1] if text else f"ended with {started.process.returncode}"


def _end(started: Sequence[_Started]) -> None:
    """End every task and close every descriptor."""
    for each in started:
        if each.process.poll() is None:
            each.process.send_signal(signal.SIGKILL)
    for each in started:
        each.process.wait()
        if each.process.stderr is not None:
            each.process.stderr.close()
        os.close(each.pidfd)
        os.close(each.output)
