"""On the machine at hand: load is held down, that is read back, and its groups go away."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from specmine.experiments.host.cgroups import limit_of
from specmine.experiments.load.cgroup_confinement import (
    NAME,
    confined,
    lowest_weight,
    remove_leftovers,
    set_lowest_weight,
)
from specmine.experiments.load.tasks import Machine
from specmine.experiments.load.worker_binary import worker_binary
from specmine.experiments.types import MS, Load, Task
from specmine.model.errors import HostError
from tests.support.live_host import TREE, alone, last_cpu, needs_groups
from tests.support.patience import patient


@needs_groups
def test_load_has_the_lowest_weight_as_read_back() -> None:
    """The group stands at the top, has the lowest weight by the kernel's own word, and goes away."""
    assert TREE is not None
    with alone():
        remove_leftovers()
        with confined() as place:
            assert place.base == TREE.root / NAME
            assert lowest_weight(place.base)
            assert place.how.endswith(str(place.base))
            task = Task(name="t", leads=True, seconds=0.3)
            machine = Machine(worker_binary(), place)
            machine.run(Load(tasks=(task,)))
        assert not (TREE.root / NAME).exists()


@needs_groups
def test_a_group_that_does_not_take_the_lowest_weight_is_refused(tmp_path: Path) -> None:
    """What cannot be read back counts as not written."""
    with pytest.raises(HostError, match="did not take the lowest weight"):
        set_lowest_weight(tmp_path)
    (tmp_path / "cpu.weight").write_text("9")
    assert lowest_weight(tmp_path) == ""
    assert set_lowest_weight(tmp_path).startswith("cpu.weight=1")


@needs_groups
def test_what_a_killed_run_left_behind_is_removed() -> None:
    """A group with leaves and a living process in it is gone after the next start's cleaning."""
    assert TREE is not None
    with alone():
        left = TREE.root / NAME
        (left / "run").mkdir(parents=True, exist_ok=True)
        process = subprocess.Popen(["sleep", "60"])
        (left / "run" / "cgroup.procs").write_text(str(process.pid))
        remove_leftovers()
        assert process.wait(patient(60)) == -signal.SIGKILL
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
        task = Task(name="t", sensor="gaps", leads=True, group="limited", seconds=0.6, cpu=last_cpu())
        load = Load(tasks=(task,), limits={"limited": (25 * MS, 100 * MS)})
        run = Machine(worker_binary(), place).run(load)
        assert run.tasks[0].cpu_ns <= 0.36 * run.tasks[0].elapsed_ns


@needs_groups
def test_a_delegated_unit_is_used_and_checked() -> None:
    """As systemd starts it: inside a group of its own under a slice of the lowest weight; otherwise refused."""
    assert TREE is not None
    top = TREE.root / "specmine-test-slice"
    script = (
        "import sys\nfrom pathlib import Path\nfrom specmine.experiments.load.cgroup_confinement import confined\n"
        "Path(sys.argv[1], 'cgroup.procs').write_text('0')\n"
        "with confined(in_unit=True) as place:\n    print(place.base, place.how)\n"
    )
    with alone():
        (top / "unit").mkdir(parents=True, exist_ok=True)
        try:
            outputs = []
            for weight in ("lowest", "ordinary"):
                if weight == "lowest":
                    set_lowest_weight(top)
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
def test_without_control_groups_the_session_gets_the_lowest_weight() -> None:
    """The autogroup of the own session goes to nice 19 and is read back; in another's session nothing is touched."""
    script = (
        "import specmine.experiments.load.cgroup_confinement as c\nc.hierarchy = lambda: None\n"
        "with c.confined() as place:\n    print(place.how, place.leaves, repr(place.procs('run')))\n"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False, start_new_session=True)
    assert re.fullmatch(r"autogroup /autogroup-\d+ nice 19 False ''\n", done.stdout), done.stderr
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "nothing on this host can restrict load" in done.stderr
