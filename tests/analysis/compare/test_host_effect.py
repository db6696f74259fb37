"""``specmine compare`` says what of a change the host explains."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from specmine.model.batch import Lifetime
from specmine.model.function import Function
from specmine.model.histogram import Histogram
from specmine.model.host.environment import Environment
from specmine.model.observation import Kind, Observation
from specmine.store import EnvironmentVector, Host, Writes, open_store

Outcome = Callable[..., tuple[int, str, str]]
Compared = Callable[..., tuple[int, dict[str, Any]]]


def _host_store(
    path: Path, host: str, slice_ms: float, waiting: float, *, main_ms: float = 1.0, build: str = "aaaa1"
) -> Path:
    """Write a store of five lifetimes on a host with a known slice, a share of their calls one slice longer."""
    rng = np.random.default_rng(len(str(path)) + ord(build[0]))
    function = Function(build_id=build, offset=16, name="handle", module="app")
    with open_store(path) as store:
        vector = Environment(kernel="6.18", cpus=2, slice_seconds=slice_ms / 1e3).document()
        there = Host(boot_id=host, hostname=f"{host}.example", utc_offset_ns=10**18)
        store.write(
            Writes((there, function, EnvironmentVector(boot_id=host, since_utc_ns=10**18, document=vector))), 10**18
        )
        for at in range(5):
            lifetime = Lifetime(
                id=f"{host}:{at}:{100 * at}", pid=at, executable="/bin/app", build_id=build, start_ns=at * 10**9,
                processes=0,
            )  # fmt: skip
            durations = main_ms * 1e6 * np.exp(rng.normal(0, 0.002)) * rng.normal(1, 0.01, 1000)
            durations += np.where(rng.random(1000) < waiting, slice_ms * 1e6, 0.0)
            window = Observation(
                function=function.key, lifetime=lifetime.id, kind=Kind.TIME, start_ns=(60 + at) * 10**9,
                end_ns=(61 + at) * 10**9, histogram=Histogram.from_durations(durations), calls=1000, watched_ns=10**9,
            )  # fmt: skip
            store.write(Writes((lifetime, window)), 10**18)
    return path


def test_waiting_on_another_host_is_the_hosts(tmp_path: Path, compared: Compared, outcome: Outcome) -> None:
    """A quarter of the calls one slice longer: whether the build is to blame stays open, the slice explains it."""
    stores = _host_store(tmp_path / "a.db", "first", 4.0, 0.0), _host_store(tmp_path / "b.db", "second", 3.0, 0.25)
    code, document = compared(*stores, "--summary", "mean")
    (found,) = document["functions"]
    assert (code, found["verdict"], found["host"]["explained"]) == (3, "undecided", True)
    (shift,) = found["host"]["shifts"]
    assert (shift["cause"], shift["times"]) == ("slices", 1)
    assert shift["excess_seconds"] == pytest.approx(0.003, rel=0.05)
    assert document["environment"]["differences"] == [{"property": "slice_seconds", "base": 0.004, "new": 0.003}]
    said = " ".join(outcome("compare", *map(str, stores), "--summary", "mean")[1].split())
    assert re.search(r"The hosts differ: slice 3[.0]* ms, not 4[.0]* ms\.", said)
    assert re.search(r"The host explains it: 2\d % more calls \+1 timeslice: preempted\.", said)


def test_waiting_on_the_same_host_is_its_load(tmp_path: Path, compared: Compared) -> None:
    """The same of two builds on one host is worse, and not the code's."""
    stores = (
        _host_store(tmp_path / "a.db", "boot", 4.0, 0.0, build="aaaa1"),
        _host_store(tmp_path / "b.db", "boot", 4.0, 0.25, build="bbbb2"),
    )
    code, document = compared(*stores, "--summary", "mean")
    (found,) = document["functions"]
    assert (code, found["verdict"], found["change"]["cause"]) == (1, "worse", "host")
    assert "timeslice" in found["change"]["reason"]
    assert document["environment"]["differences"] == []


def test_slower_calls_on_another_host_are_not_blamed_on_its_slice(tmp_path: Path, compared: Compared) -> None:
    """All calls 30 % longer is nothing that a slice explains."""
    stores = (
        _host_store(tmp_path / "a.db", "first", 4.0, 0.0),
        _host_store(tmp_path / "b.db", "second", 3.0, 0.0, main_ms=1.3),
    )
    (found,) = compared(*stores)[1]["functions"]
    assert (found["host"]["explained"], found["host"]["reason"]) == (False, "")
    assert [each["cause"] for each in found["host"]["shifts"]] == [None]
