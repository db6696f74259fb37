"""By what factor a function is slower, from durations that another tool measured."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.faults.programs.fault import Service
from bench.faults.tries.true_factor import factor_between, place_of

ALL_CALLS: dict[str, Any] = {"what": "level", "expression": "true", "upper_seconds": None, "key": "ab12+0x1f40"}


def spread(median_ns: float, number: int = 4000) -> list[int]:
    """Return durations around a median."""
    return [round(each) for each in np.random.default_rng(1).lognormal(np.log(median_ns), 0.5, number)]


@pytest.mark.parametrize("quantile", ["p50", "p90", "p99", "mean"])
def test_a_quantile_is_as_many_times_as_long(quantile: str) -> None:
    """All durations are three times as long, so each quantile is."""
    usual = spread(100_000)
    assert factor_between(usual, [3 * each for each in usual], quantile) == pytest.approx(3.0)


def test_too_few_or_too_short_durations_tell_nothing() -> None:
    """Of 1,000 calls ten are beyond the 99th percentile; calls of 10 us are as long as what bpftrace does."""
    usual = spread(100_000, 1000)
    assert factor_between(usual, usual, "p90") == 1.0
    assert factor_between(usual, usual, "p99") is None
    assert factor_between(spread(10_000), spread(30_000), "p50") is None
    assert factor_between([], usual, "p50") is None


def test_a_function_is_found_in_the_file_that_is_mapped() -> None:
    """In the program itself every call counts; in a library only those of its threads."""
    service = Service(name="this", exe=sys.executable, pid=os.getpid())
    own = Path(sys.executable).resolve()
    place = place_of({**ALL_CALLS, "module": own.name}, service)
    assert place is not None
    assert (Path(place.file), place.offset, place.only) == (own, 0x1F40, "")
    library = next(line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "libc.so" in line)
    place = place_of({**ALL_CALLS, "module": Path(library).name}, service)
    assert place is not None
    assert place.file == library
    assert Path("/proc/self/comm").read_text().strip() in place.only


@pytest.mark.parametrize(
    "other", [{"module": "nowhere.so"}, {"upper_seconds": 0.1}, {"expression": "a->b"}, {"what": "share"}]
)
def test_what_is_not_about_all_calls_of_a_mapped_file_is_not_measured(other: dict[str, Any]) -> None:
    """Another tool cannot tell the calls of one class."""
    service = Service(name="this", exe=sys.executable, pid=os.getpid())
    module = {"module": Path(sys.executable).resolve().name}
    assert place_of({**ALL_CALLS, **module, **other}, service) is None
