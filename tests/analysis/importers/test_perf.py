"""Durations in the text of perf script and bpftrace."""

from __future__ import annotations

from pathlib import Path

import pytest

from specmine.model.call_path import Frame
from specmine.model.errors import InputError
from tests.support.recordings import read_calls

DATA = Path(__file__).parent / "data"


def test_perf_script_pairs_entries_with_returns() -> None:
    """The duration is the time between both, the path the stack at the entry."""
    form, found, names, _ = read_calls(DATA / "perf.txt")
    assert form == "perf"
    path = ("__libc_start_call_main", "main", "a", "b", "c", "z")
    assert found[path][0] == 12792_722071171 - 12792_722033024
    assert sum(map(len, found.values())) == 6
    assert names.functions[0].module == "paths"


@pytest.mark.parametrize("suffix", ["", "__return"])
def test_half_of_the_events_is_counted_and_named(tmp_path: Path, suffix: str) -> None:
    """Entries without returns, or returns without entries, are no calls; inner ones cannot be told from outer ones."""
    file = tmp_path / "perf"
    file.write_text("".join(f"app 7/7 [000] {n}.000000: probe_app:f{suffix}: (55d0)\n" for n in range(1, 6)))
    _, found, names, _ = read_calls(file)
    cut = names.unentered if suffix else names.censored
    assert (found, cut) == ({}, {names.functions.index(Frame("f", "")): 5})


def test_bpftrace_prints_a_duration_before_the_stack() -> None:
    """The form that docs/analyze.md asks bpftrace for; what else it prints is passed over."""
    form, found, _, _ = read_calls(DATA / "bpftrace.txt")
    assert form == "perf"
    assert found[("__libc_start_call_main", "main", "a", "b", "c", "z")][0] == 76_023
    assert read_calls(DATA / "bpftrace.txt", "bpftrace")[1] == found


def test_stacks_with_unknown_frames_are_not_whole(tmp_path: Path) -> None:
    """And a call without any stack has an unknown path; folded stacks are read, samples refused."""
    file = tmp_path / "perf"
    file.write_text(
        "app 7/8 1.000001: 500 z:\n\t1 z+0x1 (/bin/app)\n\t2 [unknown] (/lib/libx.so)\n\n"
        "app 7/8 1.000002: 600 z:\n\nmain;a;y 700\n"
    )
    assert read_calls(file)[1] == {
        ("libx.so+0x2", "z", "?"): [500.0],
        ("z", "?"): [600.0],
        ("main", "a", "y"): [700.0],
    }
    file.write_text("app 7 1.000001: 10101 cycles:\n\t1 z+0x1 (/bin/app)\n")
    with pytest.raises(InputError, match="line 1: cycles is a sample"):
        read_calls(file)
