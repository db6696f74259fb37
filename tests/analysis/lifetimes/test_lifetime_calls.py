"""Calls of one function in one lifetime, timed by one kind of probe or by two."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from specmine.analysis.lifetimes.from_store import from_store
from specmine.model.batch import Lifetime
from specmine.model.function import Function
from specmine.model.histogram import Histogram
from specmine.model.observation import Kind, Observation
from specmine.store import Host, Writes, open_store

Compared = Callable[..., tuple[int, dict[str, Any]]]
SECOND = 10**9
BIAS_NS = 1_000.0


def store_of(path: Path, kinds: dict[str, list[list[Kind]]], median_ns: float, *, began_s: int = 60) -> Path:
    """Write a store: of each build some lifetimes, in each a window of each kind of probe."""
    rng = np.random.default_rng(5)
    with open_store(path) as store:
        store.write(Writes((Host(boot_id="boot", hostname="one", utc_offset_ns=10**18),)), 10**18)
        for build, lifetimes in kinds.items():
            function = Function(build_id=build, offset=16, name="f", module="app")
            for at, windows in enumerate(lifetimes):
                lifetime = Lifetime(
                    id=f"boot:{build}{at}:{at}", pid=at, executable="/app", build_id=build, start_ns=0, processes=0
                )
                seen = [
                    Observation(
                        function=function.key, lifetime=lifetime.id, kind=kind, bias_ns=BIAS_NS,
                        start_ns=(began_s + place) * SECOND, end_ns=(began_s + place + 1) * SECOND,
                        histogram=Histogram.from_durations(BIAS_NS + median_ns * rng.lognormal(0, 0.05, 300)),
                        calls=600, watched_ns=SECOND,
                    )
                    for place, kind in enumerate(windows)
                ]  # fmt: skip
                store.write(Writes((function, lifetime, *seen)), 10**18)
    return path


def test_each_kind_of_probe_counts(tmp_path: Path, compared: Compared) -> None:
    """A build timed alone and one timed with paths are compared by all of their lifetimes."""
    path = store_of(tmp_path / "s.db", {"aa": [[Kind.TIME]] * 4, "bb": [[Kind.PATH]] * 4}, 40_000)
    code, document = compared("--store", path, "aa", "bb")
    (found,) = document["functions"]
    assert (code, found["lifetimes"], found["lifetimes_left_out"]) == (0, [4, 4], [])
    assert found["ratio"] == pytest.approx(1.0, abs=0.01)


def test_two_kinds_in_one_lifetime_are_one(tmp_path: Path) -> None:
    """They are added up: calls, rate, warm-up."""
    both = [Kind.TIME, Kind.PATH]
    (found,) = from_store(store_of(tmp_path / "s.db", {"aa": [both]}, 40_000))
    assert (found.sample.calls, found.rate, found.warmup) == (600, 600.0, 0)
    # the first ten seconds are left out if as many calls came later
    early = store_of(tmp_path / "t.db", {"aa": [both]}, 40_000, began_s=9)
    (found,), (whole,) = from_store(early), from_store(early, warmup=False)
    assert (found.sample.calls, found.warmup) == (300, 300)
    assert (whole.sample.calls, whole.warmup) == (600, 0)


def test_short_calls_count_by_one_kind(tmp_path: Path, compared: Compared) -> None:
    """The probes' own cost is a fifth of them: the kind that fewer lifetimes have is left out, with the reason."""
    kinds = {"aa": [[Kind.PATH]] * 3 + [[Kind.TIME]], "bb": [[Kind.PATH]] * 4}
    _, document = compared("--store", store_of(tmp_path / "s.db", kinds, 5_000), "aa", "bb")
    (found,) = document["functions"]
    assert found["lifetimes"] == [3, 4]
    (left,) = found["lifetimes_left_out"]
    assert left["reason"] == {
        "code": "other-probe",
        "text": "its calls were timed by another kind of probe than in most lifetimes",
    }
