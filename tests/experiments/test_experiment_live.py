"""On the machine at hand, busy or not: tasks do what they are told, are held down, and leave nothing behind."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from specmine.experiments import lock
from specmine.experiments.cgroups import hierarchy, limit_of
from specmine.experiments.client import Running, unit_command
from specmine.experiments.confinement import NAME, Confinement, clean_up, confined, held_down, is_lowest
from specmine.experiments.helper import Helper, helper
from specmine.experiments.journal import read_journal
from specmine.experiments.tasks import Machine
from specmine.experiments.vocabulary import MS, Load, LoadRun, Step, Task
from specmine.probes.errors import HostError

TREE = hierarchy()
needs_groups = pytest.mark.skipif(
    os.geteuid() != 0 or TREE is None or not os.access(TREE.root, os.W_OK), reason="needs root and control groups"
)
FREE = Confinement(how="none: a test")


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Hold the lock of experiments, so that no run going on beside the tests is disturbed."""
    until = time.monotonic() + 120
    while True:
        try:
            with lock.exclusive(lock.default_path()):
                yield
                return
        except lock.Taken:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


@pytest.fixture(scope="module", params=["native", "python"])
def workers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Helper:
    """Return the compiled helper, then its stand-in."""
    native = request.param == "native"
    if native and shutil.which("cc") is None:
        pytest.skip("no C compiler")
    found = helper(tmp_path_factory.mktemp("cache"), native=native)
    assert found.native is native
    return found


def _run(workers: Helper, *tasks: Task) -> LoadRun:
    return Machine(workers, FREE).run(Load(tasks=tasks))


def test_iterations_are_counted_and_sleeps_never_too_short(workers: Helper) -> None:
    """A task does what it was told as often as it was told, and each iteration has its times."""
    step = Step(kind="sleep", amount=2 * MS)
    run = _run(workers, Task(name="t", steps=(step,), sensor="times", leads=True, iterations=20, seconds=5))
    task = run.tasks[0]
    assert len(task.samples) == 20
    assert task.durations.min() >= 2 * MS
    assert (np.diff(task.samples[:, 0]) > 0).all()
    assert task.start_ns <= task.samples[0, 0]
    assert task.samples[-1, 1] <= task.end_ns


def test_a_gap_is_a_pause_of_the_clock_loop(workers: Helper) -> None:
    """Gaps lie within the run, are longer than the threshold, and CPU time and gaps make up the whole."""
    watch = Task(name="w", sensor="gaps", leads=True, seconds=0.4, threshold_ns=200_000, cpu=_last())
    rival = Task(name="r", seconds=2, cpu=_last())
    run = _run(workers, watch, rival)
    task = run.task("w")
    assert task.elapsed_ns >= 0.4e9
    assert (task.durations > 200_000).all()
    lost = task.durations.sum() + task.cpu_ns
    assert 0.8 <= lost / task.elapsed_ns <= 1.1


def test_the_load_ends_with_its_leader(workers: Helper) -> None:
    """Endless tasks stop when the leading one has ended, long before their own deadline."""
    began = time.monotonic()
    run = _run(workers, Task(name="lead", leads=True, seconds=0.2), Task(name="endless", seconds=60))
    assert time.monotonic() - began < 30
    assert run.task("endless").elapsed_ns < 30e9


@pytest.mark.parametrize("kind", ["integer", "float", "sort"])
def test_demands_take_time_by_their_units(workers: Helper, kind: str) -> None:
    """Four times the units take about four times the CPU time, each at its fastest of three turns."""
    machine = Machine(workers, FREE)
    calibrated = Task(name="c", steps=(Step(kind=kind, amount=2 * MS),), sensor="calibrate", leads=True, seconds=5)  # type: ignore[arg-type]
    units = int(machine.run(Load(tasks=(calibrated,))).tasks[0].samples[-1, 0])
    times: dict[int, list[int]] = {1: [], 4: []}
    for factor in (1, 4) * 3:
        step = Step(kind=kind, amount=units * factor)  # type: ignore[arg-type]
        task = Task(name="t", steps=(step,), sensor="times", leads=True, iterations=5, seconds=10)
        times[factor].append(machine.run(Load(tasks=(task,))).tasks[0].cpu_ns)
    assert 2.5 <= min(times[4]) / min(times[1]) <= 6.0


def test_other_steps_are_done(workers: Helper) -> None:
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
        run = Machine(workers, FREE, folder=folder).run(Load(tasks=(task,)))
        assert len(run.tasks[0].samples) == 3
        assert list(Path(folder).iterdir()) == []


def test_ping_pong_and_the_chain_are_native_only(workers: Helper) -> None:
    """Two threads pass a lock, and a chain misses the caches; Python says that it cannot."""
    for kind in ("pingpong", "memory"):
        step = Step(kind=kind, amount=50)
        task = Task(name="t", steps=(step,), sensor="times", leads=True, iterations=3, seconds=20)
        if workers.native:
            assert len(_run(workers, task).tasks[0].samples) == 3
        else:
            with pytest.raises(HostError, match="only native"):
                _run(workers, task)


def test_newcomers_are_started_one_after_the_other(workers: Helper) -> None:
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
    births = _run(workers, task).tasks[0].births
    assert len(births) == 3
    assert (births[1:, 0] >= births[:-1, 1]).all()
    assert set(births[:, 2].tolist()) <= os.sched_getaffinity(0)


def test_a_task_that_waits_for_a_change_ends_soon_after_it(workers: Helper) -> None:
    """A change of the own times, here by rivals that come after a second, ends the task a few iterations later."""
    machine = Machine(workers, FREE)
    calibrated = Task(name="c", steps=(Step(kind="integer", amount=4 * MS),), sensor="calibrate", leads=True, seconds=5)
    units = int(machine.run(Load(tasks=(calibrated,))).tasks[0].samples[-1, 0])
    cpu = _last()
    step = (Step(kind="integer", amount=units),)
    waiting = Task(
        name="w", steps=step, sensor="times", leads=True, cpu=cpu, seconds=20, changed=True, window=8, final=5
    )
    rivals = [Task(name=f"r{each}", cpu=cpu, delay=1.0, seconds=20) for each in range(3)]
    run = machine.run(Load(tasks=(waiting, *rivals)))
    task = run.task("w")
    assert task.elapsed_ns < 15e9
    last = task.durations[-8:-5]  # the three that told it, before the five that were still to do
    assert (np.abs(last - np.median(task.durations[-16:-8])) > 0.1 * np.median(task.durations[-16:-8])).all()


def test_a_wrong_task_is_one_error(workers: Helper) -> None:
    """A CPU that is not there ends the load with a sentence, and no task is left."""
    with pytest.raises(HostError, match="load task t"):
        _run(workers, Task(name="t", leads=True, cpu=1023), Task(name="other", leads=True, seconds=60))


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
@pytest.mark.parametrize("sensor", ["gaps", "times"])
def test_the_sampling_loop_makes_no_system_call(workers: Helper, sensor: str) -> None:
    """Between the last call before the loop and the first behind it there is nothing: calls would move preemptions."""
    if not workers.native:
        pytest.skip("the interpreter's own calls are not told from the loop's")
    go, start = os.pipe()
    ready_out, ready_in = os.pipe()
    page = os.memfd_create("stop")
    os.ftruncate(page, 4096)
    settings = [f"sensor={sensor}", f"go={go}", f"ready={ready_in}", f"page={page}", "seconds_ns=300000000"]
    with tempfile.NamedTemporaryFile() as trace:
        command = ["strace", "-o", trace.name, *workers.command, *settings, "step=integer:1000"]
        process = subprocess.Popen(command, pass_fds=(go, ready_in, page), stdout=subprocess.DEVNULL)
        os.read(ready_out, 1)
        os.close(start)
        assert process.wait(60) == 0
        calls = [line.split("(")[0] for line in Path(trace.name).read_text().splitlines()]
    for fd in (go, ready_out, ready_in, page):
        os.close(fd)
    # getrusage, then the CPU clock, the loop, the CPU clock, getrusage
    first = calls.index("getrusage")
    assert calls[first + 1 : first + 4] == ["clock_gettime", "clock_gettime", "getrusage"]


@needs_groups
def test_load_is_held_down_and_read_back() -> None:
    """The group stands at the top, has the lowest weight by the kernel's own word, and goes away."""
    assert TREE is not None
    with alone():
        clean_up()
        with confined() as place:
            assert place.base == TREE.root / NAME
            assert is_lowest(place.base)
            assert place.how.endswith(str(place.base))
            task = Task(name="t", leads=True, seconds=0.3)
            machine = Machine(helper(), place)
            started = time.monotonic()
            machine.run(Load(tasks=(task,)))
            assert time.monotonic() - started < 20
        assert not (TREE.root / NAME).exists()


@needs_groups
def test_a_group_that_does_not_take_the_lowest_weight_is_refused(tmp_path: Path) -> None:
    """What cannot be read back counts as not written."""
    with pytest.raises(HostError, match="did not take the lowest weight"):
        held_down(tmp_path)
    (tmp_path / "cpu.weight").write_text("9")
    assert is_lowest(tmp_path) == ""
    assert held_down(tmp_path).startswith("cpu.weight=1")


@needs_groups
def test_what_a_killed_run_left_behind_is_removed() -> None:
    """A group with leaves and a living process in it is gone after the next start's cleaning."""
    assert TREE is not None
    with alone():
        left = TREE.root / NAME
        (left / "run").mkdir(parents=True, exist_ok=True)
        process = subprocess.Popen(["sleep", "60"])
        (left / "run" / "cgroup.procs").write_text(str(process.pid))
        clean_up()
        assert process.wait(5) == -signal.SIGKILL
        assert not left.exists()


@needs_groups
def test_a_limit_of_a_leaf_holds_and_is_found() -> None:
    """A leaf limited to a quarter gives its task no more, throttles it, and the limit is what limit_of reads."""
    with alone(), confined() as place:
        place.limit("limited", (25 * MS, 100 * MS))
        process = subprocess.Popen(["sleep", "60"])
        try:
            Path(place.procs("limited")).write_text(str(process.pid))
            assert limit_of(process.pid, TREE) == (25 * MS, 100 * MS)
        finally:
            process.kill()
            process.wait()
        task = Task(name="t", sensor="gaps", leads=True, group="limited", seconds=0.6, cpu=_last())
        load = Load(tasks=(task,), limits={"limited": (25 * MS, 100 * MS)})
        run = Machine(helper(), place).run(load)
        assert run.tasks[0].cpu_ns <= 0.36 * run.tasks[0].elapsed_ns


@needs_groups
def test_a_delegated_unit_is_used_and_checked() -> None:
    """As systemd starts it: inside a group of its own under a slice of the lowest weight; otherwise refused."""
    assert TREE is not None
    top = TREE.root / "specmine-test-slice"
    script = (
        "import sys\nfrom pathlib import Path\nfrom specmine.experiments.confinement import confined\n"
        "Path(sys.argv[1], 'cgroup.procs').write_text('0')\n"
        "with confined(in_unit=True) as place:\n    print(place.base, place.how)\n"
    )
    with alone():
        (top / "unit").mkdir(parents=True, exist_ok=True)
        try:
            outputs = []
            for weight in ("lowest", "ordinary"):
                if weight == "lowest":
                    held_down(top)
                elif (top / "cpu.idle").exists():
                    (top / "cpu.idle").write_text("0")
                command = [sys.executable, "-c", script, str(top / "unit")]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                outputs.append(done.stdout + done.stderr)
            assert f"{top / 'unit'} " in outputs[0]
            assert "does not have the lowest weight" in outputs[1] or "autogroup" in outputs[1]
        finally:
            for folder in (top / "unit", top):
                with contextlib.suppress(OSError):
                    folder.rmdir()
        assert not top.exists()


@pytest.mark.skipif(
    Path("/proc/sys/kernel/sched_autogroup_enabled").exists()
    and Path("/proc/sys/kernel/sched_autogroup_enabled").read_text().strip() != "1",
    reason="no autogroups here",
)
def test_without_control_groups_the_session_is_held_down() -> None:
    """The autogroup of the own session goes to nice 19 and is read back; in another's session nothing is touched."""
    script = (
        "import specmine.experiments.confinement as c\nc.hierarchy = lambda: None\n"
        "with c.confined() as place:\n    print(place.how, place.leaves, repr(place.procs('run')))\n"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False, start_new_session=True)
    assert re.fullmatch(r"autogroup /autogroup-\d+ nice 19 False ''\n", done.stdout), done.stderr
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "load could not be held down" in done.stderr


def test_systemd_starts_it_in_a_slice_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The unit is delegated, limited in time, gets our streams; a stand-in for systemd-run shows that it answers."""
    command = unit_command({"STATE_DIRECTORY": "/s", "HOME": "/root"})
    assert "systemd-run" in command
    assert {"--pipe", "--wait", "--collect", "--property=Delegate=yes", "--setenv=STATE_DIRECTORY=/s"} <= set(command)
    assert "--slice=specmineexperiments.slice" in command
    fake = tmp_path / "systemd-run"
    fake.write_text('#!/bin/sh\nwhile [ "${1#--}" != "$1" ]; do shift; done\nexec "$@"\n')
    fake.chmod(0o755)
    said = tmp_path / "systemctl"
    said.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/said\nexit 1\n')
    said.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    request = {"names": ["additional-load"], "parameters": {"seconds": 400 * MS}, "wait_seconds": 60.0}
    results = Running({**request, "state": str(tmp_path / "state.json")}, systemd=True).answer()
    assert results[0]["valid"]
    assert (tmp_path / "said").read_text().splitlines() == [
        f"set-property --runtime specmineexperiments.slice CPUWeight={weight}" for weight in ("idle", "1")
    ]


@needs_groups
@pytest.mark.parametrize("how", ["close", "kill"])
def test_nothing_stays_when_the_run_is_given_up(tmp_path: Path, how: str) -> None:
    """Closing its input or killing it ends all load within 2 s; the group goes at once, or at the next start."""
    assert TREE is not None
    with alone():
        pass  # wait for others first
    running = Running({"names": ["weights"], "state": str(tmp_path / "s.json"), "force": True}, systemd=False)
    procs = TREE.root / NAME / "run" / "cgroup.procs"
    until = time.monotonic() + 30
    pids: list[str] = []
    while len(pids) < 1 and time.monotonic() < until:
        with contextlib.suppress(OSError):
            pids = procs.read_text().split()
        time.sleep(0.02)
    assert pids
    if how == "kill":
        os.kill(running.pid, signal.SIGKILL)
    running.close()
    until = time.monotonic() + 2
    while _living(pids) and time.monotonic() < until:
        time.sleep(0.02)
    assert not _living(pids)
    if how == "kill":
        with alone():
            clean_up()
    assert not (TREE.root / NAME).exists()


@needs_groups
def test_a_busy_host_is_left_alone(tmp_path: Path) -> None:
    """With a busy loop on each CPU the experiment is skipped within some seconds and burns nothing."""
    cpus = sorted(os.sched_getaffinity(0))
    spinners = [subprocess.Popen(["taskset", "-c", str(cpu), "sh", "-c", "while :; do :; done"]) for cpu in cpus]
    try:
        time.sleep(0.3)
        with alone():
            pass
        result = Running({"names": ["timeslice"], "state": str(tmp_path / "s.json")}, systemd=False).answer()[0]
    finally:
        for each in spinners:
            each.kill()
            each.wait()
    assert (result["value"], result["valid"], result["cpu_seconds"]) == (None, False, 0.0)
    assert result["reason"]["code"] in ("busy-host", "busy-lock")


@needs_groups
def test_one_run_at_a_time(tmp_path: Path) -> None:
    """While one holds the lock another is told so."""
    with alone():
        result = Running({"names": ["timers"], "state": str(tmp_path / "s.json")}, systemd=False).answer()[0]
    assert result["reason"]["code"] == "busy-lock"


def test_the_dangerous_is_refused_unless_asked_for(tmp_path: Path) -> None:
    """Real-time policies and load of ordinary weight need --dangerous."""
    for request in ({"names": ["timeslice"], "parameters": {"policy": "rr"}}, {"names": ["balancing"]}):
        wish = {**request, "state": str(tmp_path / "s.json"), "wait_seconds": 60.0}
        result = Running(wish, systemd=False).answer()[0]
        assert result["reason"]["code"] == "dangerous"
        assert result["cpu_seconds"] == 0.0


def _last() -> int:
    return max(os.sched_getaffinity(0))


def _living(pids: list[str]) -> list[str]:
    found = []
    for pid in pids:
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
                found.append(pid)
    return found


@needs_groups
def test_what_was_forced_is_no_property_of_the_host(tmp_path: Path) -> None:
    """A limit asked for is found, or refused, but never taken for the host's; its window is marked all the same."""
    state = tmp_path / "state.json"
    forced = {"names": ["quota"], "state": str(state), "force": True, "parameters": {"quota": 20 * MS}}
    (result,) = Running(forced).answer()
    journal = read_journal(state)
    assert "quota" not in journal.entries or journal.entries["quota"]["valid"] is None
    assert [each["name"] for each in journal.windows] == (["quota"] if result["cpu_seconds"] else [])
