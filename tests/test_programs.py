"""The target programs themselves: they end when they should and know what they did."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.patience import patient

RUNNABLE = sorted(
    p.stem
    for p in (Path(__file__).parent / "programs").glob("*.c*")
    if p.stem not in ("plugin", "sysvsem", "thrower")  # libraries
)


def _counts(output: str) -> dict[str, Any]:
    last: dict[str, Any] = json.loads(output.splitlines()[-1])
    return last


def test_each_ends_by_itself_with_its_counts(program: Callable[..., Path]) -> None:
    """Every program, given one second, is done after it, has exit status 0 and has counted something."""
    started = {n: subprocess.Popen([program(n), "1"], stdout=subprocess.PIPE, text=True) for n in RUNNABLE}
    for name, process in started.items():
        output, _ = process.communicate(timeout=patient(60))
        assert process.returncode == 0, name
        assert np.max(np.concatenate([np.ravel(each) for each in _counts(output).values()])) > 0, name


@pytest.mark.parametrize("name", ["paths", "waits", "forks", "threads"])
def test_sigterm_ends_it_early(name: str, program: Callable[..., Path]) -> None:
    """SIGTERM ends a program in order, counts printed, long before its time."""
    process = subprocess.Popen([program(name), "60"], stdout=subprocess.PIPE, text=True)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.3)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=patient(60))
    assert process.returncode == 0
    assert max(_counts(output).values()) > 0


def test_paths_has_the_shares_it_promises(program: Callable[..., Path]) -> None:
    """A third of the calls go over each path; 40 % of those not over b->c are slow."""
    output = subprocess.run([program("paths"), "1", "9000"], capture_output=True, check=True, text=True).stdout
    counts = _counts(output)
    assert counts["abcz"] / counts["calls"] == pytest.approx(1 / 3, abs=0.05)
    assert counts["slow"] / (counts["abz"] + counts["acz"]) == pytest.approx(0.4, abs=0.05)


@pytest.mark.parametrize("variant", ["stock", "stripped", "static", "no-pie"])
def test_every_variant_builds_and_runs(variant: str, program: Callable[..., Path]) -> None:
    """A variant changes how a program is built, never what it does."""
    done = subprocess.run([program("recursion", variant), "1"], capture_output=True, check=True, text=True)
    assert _counts(done.stdout)["outermost"] > 0
