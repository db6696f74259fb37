"""On the machine at hand, busy or not: tasks do what they are told, by the compiled worker."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest

from specmine.experiments.load.cgroup_confinement import Confinement
from specmine.experiments.load.tasks import Machine
from specmine.experiments.load.worker_binary import WorkerBinary, worker_binary
from specmine.experiments.types import MS, Kind, Load, LoadRun, Step, Task
from specmine.model.errors import HostError
from tests.support.live_host import last_cpu
from tests.support.patience import patient

FREE = Confinement(how="none: a test")


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> WorkerBinary:
    """Return the worker, compiled."""
    return worker_binary(tmp_path_factory.mktemp("cache"))


def _run(worker: WorkerBinary, *tasks: Task) -> LoadRun:
    return Machine(worker, FREE).run(Load(tasks=tasks))


def test_iterations_are_counted_and_sleeps_never_too_short(worker: WorkerBinary) -> None:
    """A task does what it was told as often as it was told, and each iteration has its times."""
    step = Step(kind="sleep", amount=2 * MS)
    run = _run(worker, Task(name="t", steps=(step,), sensor="times", leads=True, iterations=20, seconds=5))
    task = run.tasks[0]
    assert len(task.samples) == 20
    assert task.durations.min() >= 2 * MS
    assert (np.diff(task.samples[:, 0]) > 0).all()
    assert task.start_ns <= task.samples[0, 0]
    assert task.samples[-1, 1] <= task.end_ns


def test_a_gap_is_a_pause_of_the_clock_loop(worker: WorkerBinary) -> None:
    """Gaps lie within the run and are longer than the threshold; what is neither gap nor CPU time is little.

    A host that takes the CPU away makes a gap and may be accounted as CPU time, too: both together have no upper bound.
    """
    watch = Task(name="w", sensor="gaps", leads=True, seconds=0.4, threshold_ns=200_000, cpu=last_cpu())
    competitor = Task(name="r", seconds=2, cpu=last_cpu())
    run = _run(worker, watch, competitor)
    task = run.task("w")
    assert task.elapsed_ns >= 0.4e9
    assert (task.durations > 200_000).all()
    assert task.durations.sum() <= task.elapsed_ns
    assert task.durations.sum() + task.cpu_ns >= 0.8 * task.elapsed_ns


def test_the_load_ends_with_its_leader(worker: WorkerBinary) -> None:
    """Endless tasks stop when the leading one has ended, long before their own deadline."""
    run = _run(worker, Task(name="lead", leads=True, seconds=0.2), Task(name="endless", seconds=60))
    assert run.task("endless").elapsed_ns < 60e9


@pytest.mark.parametrize("kind", ["integer", "float", "sort"])
def test_demands_take_time_by_their_units(worker: WorkerBinary, kind: str) -> None:
    """Four times the units take more CPU time, each at its fastest of three turns: the host may change its speed."""
    machine = Machine(worker, FREE)
    calibrated = Task(name="c", steps=(Step(kind=kind, amount=2 * MS),), sensor="calibrate", leads=True, seconds=5)  # type: ignore[arg-type]
    units = int(machine.run(Load(tasks=(calibrated,))).tasks[0].samples[-1, 0])
    times: dict[int, list[int]] = {1: [], 4: []}
    for factor in (1, 4) * 3:
        step = Step(kind=kind, amount=units * factor)  # type: ignore[arg-type]
        task = Task(name="t", steps=(step,), sensor="times", leads=True, iterations=5, seconds=10)
        times[factor].append(machine.run(Load(tasks=(task,))).tasks[0].cpu_ns)
    assert min(times[4]) > 1.5 * min(times[1])


def test_other_steps_are_done(worker: WorkerBinary) -> None:
    """Disk, clock and system calls run; the file has no name, so nothing is left of it."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        steps = (
            Step(kind="write", amount=1 << 20),
            Step(kind="read", amount=1 << 20),
            Step(kind="clock", amount=10),
            Step(kind="syscall", amount=10),
            Step(kind="sleep", amount=MS, random="exponential"),
        )
        task = Task(name="t", steps=steps, sensor="times", leads=True, iterations=3, seconds=20)
        run = Machine(worker, FREE, folder=folder).run(Load(tasks=(task,)))
        assert len(run.tasks[0].samples) == 3
        assert list(Path(folder).iterdir()) == []


@pytest.mark.parametrize("kind", ["pingpong", "memory"])
def test_two_threads_pass_a_lock_and_a_chain_misses_the_caches(worker: WorkerBinary, kind: Kind) -> None:
    """Both steps are done as often as they were asked for."""
    step = Step(kind=kind, amount=50)
    task = Task(name="t", steps=(step,), sensor="times", leads=True, iterations=3, seconds=20)
    assert len(_run(worker, task).tasks[0].samples) == 3


def test_newcomers_are_started_one_after_the_other(worker: WorkerBinary) -> None:
    """Children come one at a time, each with the CPU that it began on."""
    task = Task(
        name="t",
        steps=(Step(kind="sleep", amount=3 * MS),),
        sensor="times",
        leads=True,
        iterations=80,
        seconds=10,
        forks=3,
        fork_units=1000,
    )
    births = _run(worker, task).tasks[0].births
    assert len(births) == 3
    assert (births[1:, 0] >= births[:-1, 1]).all()
    assert set(births[:, 2].tolist()) <= os.sched_getaffinity(0)


def test_a_task_that_waits_for_a_change_ends_soon_after_it(worker: WorkerBinary) -> None:
    """A change of the own times, here by competitors that come after a second, ends the task a few iterations later."""
    machine = Machine(worker, FREE)
    calibrated = Task(name="c", steps=(Step(kind="integer", amount=4 * MS),), sensor="calibrate", leads=True, seconds=5)
    units = int(machine.run(Load(tasks=(calibrated,))).tasks[0].samples[-1, 0])
    cpu = last_cpu()
    step = (Step(kind="integer", amount=units),)
    waiting = Task(
        name="w", steps=step, sensor="times", leads=True, cpu=cpu, seconds=20, changed=True, window=8, final=5
    )
    competitors = [Task(name=f"r{each}", cpu=cpu, delay=1.0, seconds=20) for each in range(3)]
    run = machine.run(Load(tasks=(waiting, *competitors)))
    task = run.task("w")
    assert task.elapsed_ns < 15e9
    last = task.durations[-8:-5]  # the three that told it, before the five that were still to do
    assert (np.abs(last - np.median(task.durations[-16:-8])) > 0.1 * np.median(task.durations[-16:-8])).all()


def test_a_wrong_task_is_one_error(worker: WorkerBinary) -> None:
    """A CPU that is not there ends the load with a sentence, and no task is left."""
    with pytest.raises(HostError, match="load task t"):
        _run(worker, Task(name="t", leads=True, cpu=1023), Task(name="other", leads=True, seconds=60))


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
@pytest.mark.parametrize("sensor", ["gaps", "times"])
def test_the_sampling_loop_makes_no_system_call(worker: WorkerBinary, sensor: str) -> None:
    """Between the last call before the loop and the first behind it there is nothing: calls would move preemptions."""
    go, start = os.pipe()
    ready_out, ready_in = os.pipe()
    page = os.memfd_create("stop")
    os.ftruncate(page, 4096)
    settings = [f"sensor={sensor}", f"go={go}", f"ready={ready_in}", f"page={page}", "seconds_ns=300000000"]
    with tempfile.NamedTemporaryFile() as trace:
        command = ["strace", "-o", trace.name, worker.path, *settings, "step=integer:1000"]
        process = subprocess.Popen(command, pass_fds=(go, ready_in, page), stdout=subprocess.DEVNULL)
        os.read(ready_out, 1)
        os.close(start)
        assert process.wait(patient(120)) == 0
        calls = [line.split("(")[0] for line in Path(trace.name).read_text().splitlines()]
    for fd in (go, ready_out, ready_in, page):
        os.close(fd)
    # getrusage, then the CPU clock, the loop, the CPU clock, getrusage
    first = calls.index("getrusage")
    assert calls[first + 1 : first + 4] == ["clock_gettime", "clock_gettime", "getrusage"]
