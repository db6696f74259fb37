"""Durations that uftrace recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.recordings import read_calls

DATA = Path(__file__).parent / "data"


def test_uftrace_dump_gives_exact_durations_over_whole_paths() -> None:
    """Begin and end pair up by thread; what is still open at the end is censored."""
    form, found, names, _ = read_calls(DATA / "uftrace.json")
    assert form == "uftrace"
    path = ("main", "a", "b", "c", "z")
    assert found[path][0] == pytest.approx(14235665016.607e3 - 14235664995.896e3, abs=1)
    assert found[(*path, "spin_ns")][0] == pytest.approx(20_430, abs=1)
    assert {names.functions[number].name: count for number, count in names.censored.items()}["main"] == 1


def test_uftrace_replay_says_the_same_as_its_dump() -> None:
    """Both texts of one recording have the same calls, up to the digits that are printed."""
    _, exact, _, _ = read_calls(DATA / "uftrace.json")
    for name in ("uftrace.replay", "uftrace.timed"):
        form, found, _, _ = read_calls(DATA / name)
        assert form == "uftrace"
        for path in set(exact) & set(found):
            for a, b in zip(exact[path], found[path], strict=False):
                assert a == pytest.approx(b, abs=1, rel=2e-3)
        assert len(set(exact) & set(found)) >= 6


def test_uftrace_replay_reads_arguments_marks_and_inner_calls(tmp_path: Path) -> None:
    """Names lose their arguments, long calls have a mark, recursion counts only the outermost call."""
    file = tmp_path / "replay"
    file.write_text(
        "# DURATION     TID     FUNCTION\n"
        "            [ 1] | ns::f(int, char)(1, \"a)\") {\n"
        "            [ 2] | other() {\n"
        "            [ 1] |   fact(3) {\n"
        "            [ 1] |     fact(2) {\n"
        "   1.000 us [ 1] |       leaf();\n"
        "+ 12.000 us [ 1] |     } = 2; /* fact */\n"
        "! 1.500 ms [ 1] |   } = 6; /* fact */\n"
        "            [ 1] |   /* linux:sched-out */\n"
        "   2.000 ms [ 1] | } /* ns::f */\n"
        "   3.000  s [ 2] | } /* other */\n"
        "\nuftrace stopped tracing with remaining functions\n[0] gone\n"
    )  # fmt: skip
    _, found, names, _ = read_calls(file)
    assert found == {
        ("ns::f(int, char)", "fact", "fact", "leaf"): [1000.0],
        ("ns::f(int, char)", "fact"): [1_500_000.0],
        ("ns::f(int, char)",): [2_000_000.0],
        ("other",): [3e9],
    }
    assert {names.functions[number].name: count for number, count in names.inner.items()} == {"fact": 1}
