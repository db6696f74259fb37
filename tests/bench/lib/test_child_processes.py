"""What benches start dies with them."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tests.support.patience import patient

_STARTS = """
import sys, time
sys.path.insert(0, sys.argv[1])
from bench.lib.child_processes import in_order, started
in_order()
child = started(("sh", "-c", "while :; do sleep 0.05; done"))
print(child.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_a_child_dies_with_the_bench(number: signal.Signals) -> None:
    """Ended by a time limit, in order or not at all, a bench leaves no loop behind that eats a CPU."""
    bench = subprocess.Popen([sys.executable, "-c", _STARTS, ROOT], stdout=subprocess.PIPE, text=True)
    assert bench.stdout is not None
    with bench.stdout:
        child = int(bench.stdout.readline())
    assert _lives(child)
    bench.send_signal(number)
    assert bench.wait(patient(60)) == (128 + number if number == signal.SIGTERM else -number)
    until = time.monotonic() + patient(60)
    while _lives(child) and time.monotonic() < until:
        time.sleep(0.01)
    assert not _lives(child)


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_only_these_children_are_started_in_benches_of_experiments() -> None:
    """A process started otherwise would outlive a bench that is killed; what ends by itself is run and waited for."""
    names = [*(ROOT / "bench" / "host").rglob("*.py")]
    names.append(ROOT / "bench" / "truth" / "off_cpu.py")
    assert len(names) >= 8
    assert [each.name for each in names if "Popen(" in each.read_text()] == []
