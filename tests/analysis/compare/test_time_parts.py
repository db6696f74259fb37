"""What calls do of their time on both sides of a comparison."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from specmine.analysis.compare.time_parts import time_document
from specmine.model.batch import Lifetime
from specmine.model.function import Function
from specmine.model.histogram import EMPTY, Histogram
from specmine.model.observation import Kind, Observation
from specmine.model.split import Split
from specmine.store import Host, Writes, open_store

Outcome = Callable[..., tuple[int, str, str]]
SECOND = 10**9


def store_of(path: Path, *, waiting_us: float, blocked_us: float = 0.0) -> Path:
    """Write a store of two builds: calls of the second run as long, and wait and are blocked for so long on average."""
    rng = np.random.default_rng(5)
    with open_store(path) as store:
        store.write(Writes((Host(boot_id="boot", hostname="one", utc_offset_ns=10**18),)), 10**18)
        for build, more in (("aa", 0.0), ("bb", 1.0)):
            function = Function(build_id=build, offset=16, name="f", module="app")
            for at in range(6):
                lifetime = Lifetime(
                    id=f"boot:{build}{at}:{at}", pid=at, executable="/app", build_id=build, start_ns=0, processes=0
                )
                ran = 40e3 * rng.lognormal(0, 0.05, 400)
                late = np.where(np.arange(400) % 4 == 0, 4.0, 0.0)  # one call in four
                waits, blocks = (late * more * each * 1e3 for each in (waiting_us, blocked_us))
                whole = Histogram.from_durations(ran + waits + blocks)
                parts = [
                    Histogram.from_pairs(np.array([700]), np.array([int(each.sum())])) if each.any() else EMPTY
                    for each in (waits, blocks)
                ]
                split = Split(waiting_ns=parts[0], blocked_ns=parts[1], on_cpu=Histogram.from_durations(ran))
                seen = Observation(
                    function=function.key, lifetime=lifetime.id, kind=Kind.TIME, start_ns=60 * SECOND,
                    end_ns=61 * SECOND, histogram=whole, calls=400, watched_ns=SECOND, split=split,
                )  # fmt: skip
                store.write(Writes((function, lifetime, seen)), 10**18)
    return path


@pytest.mark.parametrize(
    ("waiting_us", "blocked_us", "note"),
    [(20.0, 0.0, "more waiting for a CPU"), (0.0, 20.0, "blocked longer"), (10.0, 10.0, "")],
)
def test_a_longer_mean_says_what_it_is(
    waiting_us: float, blocked_us: float, note: str, tmp_path: Path, outcome: Outcome,
    compared: Callable[..., tuple[int, dict[str, Any]]],
) -> None:  # fmt: skip
    """One call in four is late, so the mean is longer, and the median is not: waiting for a CPU is no slower code."""
    path = store_of(tmp_path / "s.db", waiting_us=waiting_us, blocked_us=blocked_us)
    _, document = compared("--store", path, "aa", "bb")
    (found,) = document["functions"]
    assert found["verdict"] == "worse"
    of_difference = found["time"]["of_difference"]
    total = waiting_us + blocked_us
    assert of_difference["waiting"] == pytest.approx(waiting_us / total, abs=0.05)
    assert of_difference["blocked"] == pytest.approx(blocked_us / total, abs=0.05)
    assert found["time"]["new"]["running_seconds"] == pytest.approx(40e-6, rel=0.1)
    _, text, _ = outcome("compare", "--store", path, "aa", "bb")
    assert (note in text) if note else ("waiting for a CPU" not in text)


def test_without_a_split_nothing_is_said() -> None:
    """Where it is not known on one side, nothing is known of the difference."""
    assert time_document([], []) is None
