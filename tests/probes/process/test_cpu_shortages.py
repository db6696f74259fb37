"""What keeps programs from CPU time: by files of a /proc of the test's own, and on the real one.

Looks that must find something are the longest time apart: on a busy machine a look takes
long, which makes the next one rarer.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from specmine.model.host.cpu_shortage import CpuLimit, CpuShortage
from specmine.probes.process import cpu_shortages
from specmine.probes.process.cpu_shortages import (
    LONGEST_NS,
    LOOK_NS,
    LOOKS_SHARE,
    MOST_PROCESSES,
    MOST_THREADS,
    CpuShortages,
)
from specmine.probes.process.tracker import Member

SECOND = 1_000_000_000


def member(pid: int, program: str = "app", cpu_ns: int = 0) -> Member:
    """Return a watched process."""
    return Member(pid=pid, program=1, lifetime="life", start_ticks=1, file=None, called=program, cpu_ns=cpu_ns)


def wrote(proc: Path, pid: int, tid: int, ran_ns: int, waited_ns: int) -> None:
    """Say for how long a thread ran and waited."""
    folder = proc / str(pid) / "task" / str(tid)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "schedstat").write_text(f"{ran_ns} {waited_ns} 7\n")


def test_shares_are_of_the_time_since_the_last_look(tmp_path: Path) -> None:
    """A thread that began since counts from the next look on; one that ended counts no longer."""
    shortages = CpuShortages(proc=tmp_path)
    (tmp_path / "stat").write_text("cpu  100 0 0 100 0 0 0 0 50 0\ncpu0 1\n")
    wrote(tmp_path, 10, 10, 5 * SECOND, 9 * SECOND)
    assert shortages.look([member(10)], 0) == ()
    wrote(tmp_path, 10, 10, 6 * SECOND, 12 * SECOND)
    wrote(tmp_path, 10, 11, 50 * SECOND, 50 * SECOND)
    (tmp_path / "stat").write_text("cpu  150 0 0 110 0 0 0 40 90 0\ncpu0 1\n")
    assert shortages.look([member(10)], LOOK_NS - 1) == ()
    (second,) = shortages.look([member(10)], LONGEST_NS)
    assert second == CpuShortage(program="app", waiting=0.75, steal=0.4)
    wrote(tmp_path, 10, 11, 51 * SECOND, 50 * SECOND)
    (third,) = shortages.look([member(10)], 2 * LONGEST_NS)
    assert third.waiting == 0.0


def test_of_several_limits_the_one_that_stops_the_program_counts(tmp_path: Path) -> None:
    """Its share of periods is that since the last look; a limit that is new, or saw few periods, says nothing yet."""
    limits = {"own": CpuLimit(group="own", cpus=2.0, periods=100, throttled=50)}
    shortages = CpuShortages(lambda pid: limits.values(), tmp_path)
    shortages.look([member(10)], 0)
    limits["own"] = CpuLimit(group="own", cpus=2.0, periods=150, throttled=55)
    limits["above"] = CpuLimit(group="above", cpus=0.5, periods=1000, throttled=1000)
    (found,) = shortages.look([member(10)], LONGEST_NS)
    assert (found.throttled, found.limit_cpus) == (0.1, 2.0)
    limits["above"] = CpuLimit(group="above", cpus=0.5, periods=1050, throttled=1040)
    limits["own"] = CpuLimit(group="own", cpus=2.0, periods=153, throttled=58)
    (found,) = shortages.look([member(10)], 2 * LONGEST_NS)
    assert (found.throttled, found.limit_cpus) == (0.8, 0.5)
    limits.clear()
    (found,) = shortages.look([member(10)], 3 * LONGEST_NS)
    assert (found.throttled, found.limit_cpus) == (0.0, 0.0)


def test_programs_are_apart_and_of_many_threads_some_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of the processes with most CPU time; however many there are, few files are read."""
    read: list[str] = []

    def noted(path: Path | str) -> bytes:
        read.append(str(path))
        return Path(path).read_bytes()

    monkeypatch.setattr(cpu_shortages, "read_proc", noted)
    shortages = CpuShortages(proc=tmp_path)
    threads = [(pid, 100 * pid + tid) for pid in range(10, 40) for tid in range(20)]
    for pid, tid in [*threads, (5, 5)]:
        wrote(tmp_path, pid, tid, 0, 0)
    members = [*(member(pid, "many", cpu_ns=pid) for pid in range(10, 40)), member(5, "other")]
    assert shortages.look(members, 0) == ()
    for pid, tid in [*threads, (5, 5)]:
        wrote(tmp_path, pid, tid, 3 * SECOND, SECOND if pid >= 40 - MOST_PROCESSES else 0)
    wrote(tmp_path, 5, 5, SECOND, SECOND)
    found = shortages.look(members, LONGEST_NS)
    assert [(each.program, each.waiting) for each in found] == [("many", 0.25), ("other", 0.5)]
    assert MOST_THREADS / 2 < len([each for each in read if "schedstat" in each]) / 2 <= MOST_THREADS + 1


def test_what_cannot_be_read_is_not_known(tmp_path: Path) -> None:
    """A process that ended, a kernel that counts nothing, a host without a hypervisor."""
    shortages = CpuShortages(proc=tmp_path)
    (tmp_path / "stat").write_text("cpu  1 2 3\n")
    assert shortages.look([member(10)], 0) == ()
    assert shortages.look([member(10)], LONGEST_NS) == (CpuShortage(program="app"),)
    (tmp_path / "10" / "task" / "10").mkdir(parents=True)
    (tmp_path / "10" / "task" / "10" / "schedstat").write_text("no numbers\n")
    assert shortages.look([member(10)], 2 * LONGEST_NS) == (CpuShortage(program="app"),)


def test_looks_that_take_long_are_rarer(tmp_path: Path) -> None:
    """They take a small share of a CPU, however many files they read."""

    def slow(pid: int) -> list[CpuLimit]:
        end_ns = time.thread_time_ns() + 6_000_000
        while time.thread_time_ns() < end_ns:
            pass
        return []

    shortages = CpuShortages(slow, tmp_path)
    shortages.look([member(10)], 0)
    assert not shortages.look([member(10)], round(6_000_000 / LOOKS_SHARE) - 1)
    assert shortages.look([member(10)], LONGEST_NS)


@contextmanager
def busy(cpu: int) -> Iterator[int]:
    """Run a process that is always busy on one CPU; gives its pid."""
    code = f"import os\nos.sched_setaffinity(0, [{cpu}])\nprint(flush=True)\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process.pid
        finally:
            process.kill()


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="this kernel counts no waiting for CPUs")
def test_two_that_share_a_cpu_wait_for_it_half_of_the_time() -> None:
    """On the real /proc; what else runs on that CPU only adds to it."""
    cpu = min(os.sched_getaffinity(0))
    with busy(cpu) as one, busy(cpu) as other:
        shortages, watched = CpuShortages(), [member(one, "pair"), member(other, "pair")]
        shortages.look(watched, 0)
        time.sleep(1.0)
        (found,) = shortages.look(watched, LONGEST_NS)
    assert found.waiting is not None
    assert 0.45 <= found.waiting < 0.95
