"""What a production loop of calls loses to an experiment on its CPU: who had the CPU in each call, by every switch."""

from __future__ import annotations

import contextlib
import pickle
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.lib.child_processes import started
from specmine.experiments.load.worker_binary import worker_binary
from specmine.experiments.runner.client import ExperimentProcess
from specmine.experiments.types import Load, Step, Task

NICE_ALONE = "a loop at nice 19 in a session of its own"
BESIDE_S = 4.0
LATE = 1.5
"""A call is late if it takes so many times the median."""
STOPPED_NS = 500_000_000
"""A call of this length was stopped, as everything else was, and not slowed."""
_SWITCH = re.compile(r"^\s*(.{1,16}?)\s+(\d+)/(\d+)\s+\[\d+\]\s+(\d+)\.(\d{9}):\s+PERF_RECORD_SWITCH_CPU_WIDE (IN|OUT)")
_LOOP = """
import pickle, sys
from specmine.experiments.load.cgroup_confinement import Confinement
from specmine.experiments.load.tasks import Machine
worker, load = pickle.load(sys.stdin.buffer)
sys.stdout.buffer.write(Machine(worker, Confinement()).run(load).tasks[0].samples[:, :2].tobytes())
"""
Times = NDArray[np.int64]
"""(n, 2): start and end, ns of CLOCK_MONOTONIC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What the experiment's own tasks took from a loop of calls."""

    more: float
    """Time that they had within calls, over what the calls take alone (the median of the rest of them)."""
    late: float
    """Share of calls that were late, and would not have been without them."""
    late_anyway: float
    """Share of calls that were late whatever they did: neighbours, the hypervisor."""
    calls: int

    @property
    def text(self) -> str:
        """In words."""
        return f"{100 * self.more:+.2f} %; {100 * self.late:.2f} % (by others {100 * self.late_anyway:.1f} %)"


def production_beside(cpu: int, units: int, name: str, state: str) -> Beside:
    """Time calls of some units on a CPU while an experiment runs there over and over, past the load gate."""
    own: set[int] = set()
    with tempfile.TemporaryDirectory(prefix="specmine-bench-") as folder:
        data = f"{folder}/perf.data"
        perf = started(
            [
                "perf",
                "record",
                "-q",
                "-o",
                data,
                "-k",
                "CLOCK_MONOTONIC",
                "--switch-events",
                "-e",
                "dummy",
                "-C",
                str(cpu),
            ],
            stderr=subprocess.DEVNULL,
        )
        competitor = _looping(cpu, own) if name == NICE_ALONE else _experimenting(name, state, own)
        with competitor:
            calls, loop = _calls(cpu, units)
        perf.send_signal(signal.SIGINT)
        perf.wait(20)
        script = ["perf", "script", "-i", data, "--show-switch-events", "--ns", "-F", "comm,pid,tid,cpu,time"]
        switches = subprocess.run(script, capture_output=True, text=True, check=True).stdout
    worker = Path(worker_binary().path).name[:15]
    turns = _turns(switches, own, worker if name != NICE_ALONE else "", loop)
    return _judged(calls, turns)


def _judged(calls: Times, turns: Times) -> Beside:
    calls = calls[calls[:, 1] - calls[:, 0] < STOPPED_NS]
    durations = (calls[:, 1] - calls[:, 0]).astype(np.float64)
    knots = turns.reshape(-1)
    had = (
        np.concatenate([[0.0], np.cumsum(np.diff(knots) * (np.arange(len(knots) - 1) % 2 == 0))])
        if len(knots)
        else [0.0]
    )
    before, after = (np.interp(calls[:, at], knots if len(knots) else [0], had) for at in (0, 1))
    taken = np.minimum(after - before, durations)
    limit = LATE * float(np.median(durations))
    late, without = durations > limit, durations - taken > limit
    return Beside(
        more=float(taken.sum() / (len(taken) * np.median(durations - taken))),
        late=float((late & ~without).mean()),
        late_anyway=float(without.mean()),
        calls=len(calls),
    )


def _turns(switches: str, own: set[int], worker: str, loop: set[int]) -> Times:
    """Return when the tasks of an experiment had the CPU, in order: by process id, or by the load program's name."""
    found: list[tuple[int, int]] = []
    began: dict[int, int] = {}
    for line in switches.splitlines():
        match = _SWITCH.match(line)
        if match is None:
            continue
        comm, pid = match[1], int(match[2])
        if pid in loop or not (pid in own or (worker and comm == worker)):
            continue
        at_ns = int(match[4]) * 10**9 + int(match[5])
        if match[6] == "IN":
            began[pid] = at_ns
        elif pid in began:
            found.append((began.pop(pid), at_ns))
    return np.array(sorted(found), np.int64).reshape(-1, 2)


def _calls(cpu: int, units: int) -> tuple[Times, set[int]]:
    """Return the times of a loop of calls on a CPU, in a session of its own, and the processes of the loop."""
    step = Step(kind="integer", amount=units)
    task = Task(name="production", steps=(step,), sensor="times", leads=True, cpu=cpu, seconds=BESIDE_S)
    process = started(
        [sys.executable, "-c", _LOOP], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(pickle.dumps((worker_binary(), Load(tasks=(task,)))))
    process.stdin.close()
    time.sleep(BESIDE_S / 2)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii")
    data = process.stdout.read()
    process.wait()
    times = np.frombuffer(data, np.int64).reshape(-1, 2)
    return times[len(times) // 10 :], {process.pid, *map(int, children.split())}


@contextlib.contextmanager
def _experimenting(name: str, state: str, own: set[int]) -> Iterator[None]:
    done = threading.Event()

    def again() -> None:
        while not done.is_set():
            running = ExperimentProcess({"names": [name], "state": state, "force": True})
            own.add(running.pid)
            while not running.ended() and not done.is_set():
                time.sleep(0.05)
            running.close()

    thread = threading.Thread(target=again)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@contextlib.contextmanager
def _looping(cpu: int, own: set[int]) -> Iterator[None]:
    """Run what nice 19 alone would make of an experiment."""
    script = "import os\nos.nice(19)\nwhile 1: pass"
    competitor = started(["taskset", "-c", str(cpu), sys.executable, "-c", script], start_new_session=True)
    own.add(competitor.pid)
    try:
        yield
    finally:
        competitor.send_signal(signal.SIGKILL)
        competitor.wait()
