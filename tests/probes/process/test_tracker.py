"""Watched processes and their lifetimes."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from specmine.probes.kernel.maps import CachedMap
from specmine.probes.kernel.structs import EVENT, EVENT_EXEC
from specmine.probes.process import proc
from specmine.probes.process.proc import executable, process
from specmine.probes.process.selection import Selection
from specmine.probes.process.tracker import ProcessTracker
from tests.support.breakpoints import family
from tests.support.product import wait_until
from tests.support.source_driver import running


def image_of(pid: int) -> int:
    """Return what the next exec changes, 0 for the dead."""
    found = process(pid)
    return 0 if found is None else found.image


class NoKernel:
    """A map of processes that nobody reads."""

    def put(self, key: bytes, value: bytes) -> None:
        """Forget it."""

    def remove(self, key: bytes) -> None:
        """Forget that too."""


def test_an_executable_of_any_name_can_be_stored(tmp_path: Path) -> None:
    """Bytes that are no text are written by their codes: what a lifetime says can be encoded."""
    path = shutil.copy("/bin/sleep", tmp_path / "a\udcff\x0cb")
    with running(path, 600) as child:
        tracker = ProcessTracker([Selection(pid=child.pid)], cast(CachedMap, NoKernel()))
        tracker.begin(0)
        status = os.stat(path)
        (lifetime,) = tracker.lifetimes({(status.st_dev, status.st_ino): "build"})
    assert lifetime.executable == f"{tmp_path}/a\\xff\x0cb"
    assert lifetime.executable.encode() and lifetime.program.encode()


def test_a_program_has_the_name_that_people_gave_it(tmp_path: Path) -> None:
    """The name of the selection, else that of the link that was executed, not of the link's target."""
    target = shutil.copy("/bin/sleep", tmp_path / "check-rdb")
    link = tmp_path / "server"
    link.symlink_to("check-rdb")
    named = {}
    with running(link, 600) as child:
        for name in ("", "cache"):
            tracker = ProcessTracker([Selection(pid=child.pid, name=name)], cast(CachedMap, NoKernel()))
            tracker.begin(0)
            status = os.stat(target)
            (lifetime,) = tracker.lifetimes({(status.st_dev, status.st_ino): "build"})
            named[name] = lifetime.program
            assert lifetime.executable == str(target)
    assert named == {"": "server", "cache": "cache"}


def test_lost_events_are_made_up_for(tmp_path: Path) -> None:
    """After a storm in which events were lost, all that was begun, ended or executed anew is known at the next look."""
    path = Path(shutil.copy("/bin/sleep", tmp_path / "storm"))
    os.mkfifo(tmp_path / "gate")
    tracker = ProcessTracker([Selection(exe=str(path))], cast(CachedMap, NoKernel()))
    tracker.begin(0)
    with (
        running("sh", "-c", f"read line < {tmp_path}/gate; exec {path} 600") as changes,
        running(path, 600) as ends,
        running(path, 600) as stays,
    ):
        tracker.look_around(1)
        assert not tracker.members  # no event came, and the next look at everything is not due
        tracker.rescan()
        tracker.look_around(2)
        assert set(tracker.members) == {ends.pid, stays.pid}
        ends.kill()
        ends.wait()
        (tmp_path / "gate").write_text("go\n")
        status = path.stat()
        wait_until(lambda: executable(changes.pid) == (status.st_dev, status.st_ino), "the exec")
        tracker.rescan()
        tracker.look_around(3)
        assert set(tracker.members) == {stays.pid, changes.pid}
        assert tracker.gone == [ends.pid]


def test_processes_that_ended_are_forgotten(tmp_path: Path) -> None:
    """A host on which programs are started for years is watched in the same memory."""
    path = Path(shutil.copy("/bin/sleep", tmp_path / "short"))
    tracker = ProcessTracker([Selection(exe=str(path))], cast(CachedMap, NoKernel()))
    for _ in range(5):
        with running(path, 600) as child:
            tracker.events(np.array([(EVENT_EXEC, child.pid, 0, 0)], EVENT), 0)
            assert tracker.members
    tracker.rescan()
    tracker.look_around(0)
    assert not tracker.members and not tracker._births


def test_a_fork_that_was_not_told_is_found_though_the_file_was_replaced(tmp_path: Path) -> None:
    """A worker belongs to the lifetime of its parent, whatever lies under the program's path by now."""
    path = Path(shutil.copy("/bin/bash", tmp_path / "service"))
    gate, end = tmp_path / "gate", tmp_path / "end"  # two: who opens one late would still meet its last writer
    for each in (gate, end):
        os.mkfifo(each)
    tracker = ProcessTracker([Selection(exe=str(path))], cast(CachedMap, NoKernel()))
    with running(path, "-c", f"read line < {gate}; (read line < {end}) & wait") as child:

        def begun() -> bool:
            tracker.begin(0)
            return bool(tracker.members)

        wait_until(begun, "the program")
        assert set(tracker.members) == {child.pid}
        Path(shutil.copy("/bin/sleep", tmp_path / "next")).rename(path)
        gate.write_text("go\n")
        wait_until(lambda: len(family(child.pid)) == 2, "the worker")
        tracker.rescan()
        tracker.look_around(1)
        assert sorted(tracker.members) == sorted(family(child.pid))
        assert len({member.lifetime for member in tracker.members.values()}) == 1
        end.write_text("end\n")


def test_a_child_that_executed_the_program_by_itself_is_not_taken_for_a_fork(tmp_path: Path) -> None:
    """Of a program chosen by its pid, what it starts is not watched, though it be another copy of itself."""
    path = Path(shutil.copy("/bin/bash", tmp_path / "service"))
    gate, end = tmp_path / "gate", tmp_path / "end"  # two: who opens one late would still meet its last writer
    for each in (gate, end):
        os.mkfifo(each)
    with running(path, "-c", f"read line < {gate}; {path} -c 'read line < {end}' & wait") as child:
        tracker = ProcessTracker([Selection(pid=child.pid)], cast(CachedMap, NoKernel()))
        tracker.begin(0)
        gate.write_text("go\n")
        wait_until(lambda: len(family(child.pid)) == 2, "the copy")
        copy = family(child.pid)[1]
        command = "\0".join([str(path), "-c", f"read line < {end}", ""])  # none amid the exec
        wait_until(lambda: Path(f"/proc/{copy}/cmdline").read_text() == command, "its exec")
        tracker.events(np.array([(EVENT_EXEC, copy, 0, 0)], EVENT), 1)
        tracker.rescan()
        tracker.look_around(2)
        assert set(tracker.members) == {child.pid}
        end.write_text("end\n")


@pytest.mark.parametrize("found", ["after the exec", "in its middle"])
def test_an_exec_that_is_told_after_the_process_was_found_begins_no_other_lifetime(tmp_path: Path, found: str) -> None:
    """A busy host: the process executes between the reading of events and the look at all; the next exec counts."""
    path = Path(shutil.copy("/bin/bash", tmp_path / "service"))
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    tracker = ProcessTracker([Selection(exe=str(path))], cast(CachedMap, NoKernel()))
    status = path.stat()
    with running(path, "-c", f"read line < {gate}; exec {path} -c 'read line < {gate}'") as child:
        wait_until(lambda: executable(child.pid) == (status.st_dev, status.st_ino), "the exec")
        told = np.array([(EVENT_EXEC, child.pid, 0, 0)], EVENT)
        wait_until(lambda: image_of(child.pid) != 0, "the end of the exec")  # the kernel tells it after that
        tracker.begin(0)
        begun = tracker.members[child.pid].image
        if found == "in its middle":  # a file is mapped already and the stack is not
            tracker.members[child.pid].image = 0
        tracker.events(told, 1)
        assert len(tracker.lifetimes({(status.st_dev, status.st_ino): "build"})) == 1
        assert tracker.members[child.pid].image == begun
        gate.write_text("go\n")
        wait_until(lambda: image_of(child.pid) not in (0, begun), "the next exec")
        tracker.events(told, 2)
        lives = tracker.lifetimes({(status.st_dev, status.st_ino): "build"})
        assert sorted(each.processes for each in lives) == [0, 1]
        gate.write_text("end\n")


def test_a_quiet_host_is_looked_through_less_often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look at all processes is left out only where none began since the last, and never for half a minute."""
    second, newest = 1_000_000_000, [100]
    clock_ns, took_ns = [0], [0]
    looks: list[int] = []
    processes = proc.processes

    def counted() -> list[proc.Process]:
        looks.append(1)
        clock_ns[0] += took_ns[0]
        return processes()

    monkeypatch.setattr(proc, "newest", lambda: newest[0])
    monkeypatch.setattr(proc, "processes", counted)
    monkeypatch.setattr(time, "thread_time_ns", lambda: clock_ns[0])

    def looked(tracker: ProcessTracker, *seconds: int) -> list[int]:
        found = []
        for now in seconds:
            looks.clear()
            tracker.look_around(now * second)
            found.append(len(looks))
        return found

    quiet = ProcessTracker([Selection(exe="/bin/sleep")], cast(CachedMap, NoKernel()))
    quiet.begin(0)
    assert looked(quiet, 1, 6, 11, 29) == [0, 0, 0, 0]
    assert looked(quiet, 31, 37) == [1, 0], "what was changed without a process or thread that began"
    newest[0] += 1
    assert looked(quiet, 38, 43, 49) == [0, 1, 0]
    quiet.rescan()
    assert looked(quiet, 50, 56) == [1, 0]
    newest[0] = 0
    assert looked(quiet, 61, 67, 73) == [1, 1, 1], "where the kernel does not tell, nothing is left out"
    newest[0] = 100
    moved = ProcessTracker([Selection(cgroup="/none/*")], cast(CachedMap, NoKernel()))
    moved.begin(0)
    assert looked(moved, 6, 12) == [1, 1], "a move into a control group begins no process"
    took_ns[0] = second // 125
    large = ProcessTracker([Selection(exe="/bin/sleep")], cast(CachedMap, NoKernel()))
    large.begin(0)
    newest[0] += 1
    assert looked(large, 6, 39, 41) == [0, 0, 1], "a look of 8 ms is followed by 40 s without one"
    took_ns[0] = second
    assert looked(large, 82, 143) == [1, 1], "never by more than a minute"
    assert looked(moved, 18, 24) == [1, 1]
