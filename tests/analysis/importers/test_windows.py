"""How recordings are cut into observations, and that memory holds whatever their size."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specmine.analysis.importers import sums
from specmine.analysis.importers.csv import read_csv
from specmine.analysis.importers.records import Faults, Names
from specmine.analysis.importers.spool import Spool
from specmine.analysis.importers.windows import Cut, Part

Rows = list[tuple[str, int, int | None, str]]


@contextmanager
def cut(rows: Rows, *, minimum_calls: int = 1) -> Iterator[tuple[Names, Cut]]:
    """Cut calls: function, duration, time, lifetime of each."""
    timed = bool(rows) and rows[0][2] is not None
    head = "function,lifetime,duration_ns" + (",time_ns" if timed else "")
    lines = [head, *(f"{f},{life},{d}" + (f",{t}" if timed else "") for f, d, t, life in rows)]
    names, spool = Names(), Spool()
    for chunk in read_csv(io.BytesIO("\n".join(lines).encode()), names, Faults("f")):
        spool.put(chunk)
    yield names, Cut(spool, names, minimum_calls)
    spool.close()


def parts_of(rows: Rows, *, minimum_calls: int = 1) -> dict[str, list[Part]]:
    """Return the parts of each function."""
    with cut(rows, minimum_calls=minimum_calls) as (names, made):
        return {names.functions[number].name: parts for number, parts in made.parts()}


def sizes(parts: list[Part]) -> list[int]:
    """Return the calls of each part."""
    return [int(part.calls.sum()) for part in parts]


def test_without_times_the_order_is_cut_into_ten() -> None:
    """Equal parts in the order of the file, of each function, wherever its lines stand."""
    rows: Rows = [("a", 64 << (n // 100), None, "") for n in range(1000)]
    rows += [("b", 100, None, "")] * 505
    found = parts_of(rows)
    assert sizes(found["a"]) == [100] * 10
    assert [len(part.buckets) for part in found["a"]] == [1] * 10
    assert sizes(found["b"]) == [51, 50, 51, 50, 51, 50, 51, 50, 51, 50] or set(sizes(found["b"])) == {50, 51}
    assert sizes(parts_of([("c", 5, None, "")] * 3)["c"]) == [1, 1, 1]


@pytest.mark.parametrize(("seconds", "expected"), [(20, 10), (100, 10), (300, 30), (305, 31)])
def test_times_make_ten_windows_or_one_for_ten_seconds(seconds: int, expected: int) -> None:
    """Lines need not be sorted; each call goes into the window of its time."""
    times = np.linspace(7e9, (7 + seconds) * 1e9, 6000).astype(np.int64)
    order = np.random.default_rng(1).permutation(6000)
    rows: Rows = [("z", 50 + int(at) * 10, int(times[at]), "") for at in order]
    (parts,) = parts_of(rows).values()
    assert len(parts) == expected
    assert all(part.timed for part in parts)
    assert all(before.end_ns == after.start_ns for before, after in pairwise(parts))
    assert all(before.buckets.max() <= after.buckets.min() for before, after in pairwise(parts))
    assert sum(part.end_ns - part.start_ns for part in parts) == seconds * 10**9


def test_windows_of_too_few_calls_are_joined() -> None:
    """Two hours of one call a second: windows that each hold enough, not 720 that do not; never under ten."""
    rows: Rows = [("z", 100, n * 10**9, "") for n in range(7200)]
    (parts,) = parts_of(rows, minimum_calls=200).values()
    assert min(sizes(parts)) >= 200
    assert 30 <= len(parts) <= 36
    (few,) = parts_of(rows[:600], minimum_calls=200).values()
    assert len(few) == 10


def test_a_part_never_reaches_over_two_lifetimes() -> None:
    """Ten parts are divided by calls, or by time; every lifetime has one at least."""
    rows: Rows = [("z", 64, None, "one") for _ in range(600)]
    rows += [("z", 6400, None, "two") for _ in range(400)]
    (parts,) = parts_of(rows).values()
    assert [part.lifetime for part in parts] == [0] * 6 + [1] * 4
    assert all(len(part.buckets) == 1 for part in parts)
    timed: Rows = [("z", 64, n * 10**7, "one") for n in range(3000)]
    timed += [("z", 6400, n * 10**7, "two") for n in range(1000)]
    (parts,) = parts_of(timed).values()
    assert all(len(part.buckets) == 1 for part in parts)
    assert {part.lifetime for part in parts} == {0, 1}
    lives: Rows = [("z", 64, None, f"life {n}") for n in range(25) for _ in range(8)]
    (many,) = parts_of(lives).values()
    assert len(many) == 25


def test_equal_times_are_no_times() -> None:
    """Where all calls have the same time the order of the file is all there is."""
    (parts,) = parts_of([("z", 64, 5, "")] * 100).values()
    assert sizes(parts) == [10] * 10
    assert not parts[0].timed


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.integers(0, 10**13), st.integers(0, 10**12), st.sampled_from("xy")),
        min_size=1,
        max_size=200,
    ),
    st.booleans(),
    st.integers(1, 30),
)
def test_no_call_is_lost_or_counted_twice(some: list[tuple[str, int, int, str]], timed: bool, minimum: int) -> None:
    """Whatever the times, lifetimes and sizes, and whichever way the sums are kept."""
    rows: Rows = [(f, d, t if timed else None, life) for f, d, t, life in some]
    found = parts_of(rows, minimum_calls=minimum)
    before = sums._DENSE
    sums._DENSE = 0
    try:
        again = parts_of(rows, minimum_calls=minimum)
    finally:
        sums._DENSE = before
    for function in {row[0] for row in rows}:
        assert sum(sizes(found[function])) == sum(row[0] == function for row in rows)
        assert sizes(found[function]) == sizes(again[function])
        starts = [(part.lifetime, part.start_ns) for part in found[function]]
        assert len(set(starts)) == len(starts)
