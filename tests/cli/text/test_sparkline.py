"""How a median went, in a few letters."""

from __future__ import annotations

from specmine.cli.text.sparkline import sparkline


def test_what_became_twice_as_slow_ends_high() -> None:
    """A steady median is a level line; noise of some per cent does not look like a change."""
    steady = [[at, 1e-3 * (1 + 0.03 * (at % 2))] for at in range(12)]
    assert sparkline(steady, 12.0) == "▄" * 12
    slower = [*steady[:9], *([at, 2e-3] for at in (9, 10, 11))]
    assert sparkline(slower, 12.0) == "▄" * 9 + "█" * 3
    faster = [*steady[:9], *([at, 0.5e-3] for at in (9, 10, 11))]
    assert set(sparkline(faster, 12.0)[9:]) < set("▁▂")


def test_where_nothing_was_seen_is_blank() -> None:
    assert sparkline([[0.5, 1.0], [11.5, 1.0]], 12.0) == "▄" + " " * 10 + "▄"
    assert sparkline([], 12.0) == ""
    assert sparkline([[1.0, 0.0]], 12.0) == ""


def test_a_large_change_keeps_the_rest_level() -> None:
    """The largest has the highest block, and what is usual stays in the middle."""
    points = [[at, 100.0 if at == 11 else 1.0] for at in range(12)]
    assert sparkline(points, 12.0) == "▄" * 11 + "█"
