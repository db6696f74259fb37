"""Lifetimes from a CSV: what its columns tell apart, and in which order calls stand."""

from __future__ import annotations

from pathlib import Path

import pytest

from specmine.analysis.lifetimes.from_csv import TIMED, read_calls
from specmine.model.errors import InputError


def test_lifetimes_of_two_builds_or_hosts_are_two(tmp_path: Path) -> None:
    """A lifetime called 1 in each of three builds and hosts is three; calls stand in the order of time."""
    path = tmp_path / "d.csv"
    path.write_text(
        "lifetime,build,host,function,path,duration_ns,time_ns\n"
        "1,a,h,f,main;g,5,20\n1,a,h,f,main,7,10\n1,b,h,f,,3,30\n1,b,i,f,main;f,4,40\n"
    )
    calls = read_calls(path)
    found = [(each.build, each.host, each.lifetime, each.start_ns) for each in calls.by_lifetime()]
    assert found == [("a", "h", "1", 10), ("b", "h", "1", 30), ("b", "i", "1", 40)]
    first = calls.by_lifetime()[0]
    assert first.first_ns is not None
    assert first.first_ns.tolist() == [7.0, 5.0]
    assert [each.path for each in calls.by_path()] == [("main", "g", "f"), ("main", "f"), (), ("main", "f")]


def test_what_is_not_named_is_one(tmp_path: Path) -> None:
    """Formulas need durations only: all of them are one lifetime of one function, without paths."""
    path = tmp_path / "d.csv"
    path.write_text("duration_ns\n5\n6\n")
    calls = read_calls(path, required=TIMED)
    assert [(each.key, each.build, each.lifetime, each.sample.calls) for each in calls.by_lifetime()] == [
        (("all", ""), "", "1", 2)
    ]
    assert calls.by_path() == []
    with pytest.raises(InputError, match="no column build, lifetime"):
        read_calls(path)
