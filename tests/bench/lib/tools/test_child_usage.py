"""What a command used is its own: not what the bench holds that started it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bench.lib.tools.child_usage import child_usage

HELD_MB = 200


def test_the_memory_of_a_command_is_its_own() -> None:
    """The kernel keeps the most memory of a process over its exec: what its parent held before is no part of it."""
    held = bytearray(HELD_MB << 20)
    held[::4096] = bytes(len(held[::4096]) * [1])
    small = child_usage([sys.executable, "-c", "print('done')"])
    large = child_usage([sys.executable, "-c", f"held = bytes([1]) * ({HELD_MB} << 20)"])
    assert small.out == "done\n"
    assert small.peak_mb < 100 < HELD_MB <= large.peak_mb
    assert len(held) == HELD_MB << 20


def test_the_cpu_time_of_a_command_is_told_and_a_failure_is_one() -> None:
    """A command that works needs more CPU time than one that sleeps; one that fails has no figures."""
    sleeps, works = "import time; time.sleep(0.3)", "sum(range(5_000_000))"
    idle, busy = (child_usage([sys.executable, "-I", "-S", "-c", each]) for each in (sleeps, works))
    assert busy.cpu_s > idle.cpu_s
    assert idle.seconds >= 0.3 > idle.cpu_s
    with pytest.raises(subprocess.CalledProcessError, match="status 3"):
        child_usage([sys.executable, "-c", "raise SystemExit(3)"])
