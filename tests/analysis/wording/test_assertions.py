"""Assertions: how long calls take, under which condition, and whether that holds."""

from __future__ import annotations

from typing import Any

import pytest

from specmine.analysis.wording.assertions import assertion, wrapped


def quantiles(p50: float, p99: float) -> dict[str, Any]:
    """Return quantiles with ranges of a tenth to either side."""
    named = {"p50": p50, "p99": p99}
    return {name: {"seconds": each, "low": 0.9 * each, "high": 1.1 * each} for name, each in named.items()}


SINGLE: dict[str, Any] = {
    "function": "render", "module": "", "state": "single", "calls": 12_000, "quantiles": quantiles(38e-6, 61e-6),
    "classes": [{"upper_seconds": None, "share": 1.0}], "verdict": "unknown",
    "behaviours": [{"expression": "true", "calls": 12_000, "shares": [1.0], "quantiles": quantiles(38e-6, 61e-6)}],
}  # fmt: skip


def test_every_function_shows_its_durations() -> None:
    """The first line answers how long it takes; the second says what is normal."""
    first, second = assertion(SINGLE, 80)
    assert first == "render: half of the calls within 38 us, 99 % within 61 us"
    assert second == "  12,000 calls; normal: median 34-42 us, p99 55-67 us"


def test_what_is_observed_stands_where_people_look() -> None:
    """Of a function that became slower the line says how long calls take now, beside the old normal range."""
    slow = {
        **SINGLE, "build_id": "ab", "rate_per_second": 351.0, "observed": quantiles(160e-6, 362e-6),
        "violations": [{"state": "open", "direction": "slower", "factor": 4.2, "change": "4.2x slower"}],
    }  # fmt: skip
    first, second = assertion(slow, 80)
    assert first.startswith("render: half of the calls within 160 us, 99 % within 362 us ")
    assert first.endswith(" 4.2x slower")
    assert len(first) == 80
    assert second == "  351 calls/s; normal: median 34-42 us, p99 55-67 us"


def test_behaviours_have_conditions_shares_and_durations() -> None:
    """Each behaviour with its condition, its share of the calls, its durations and its classes."""
    entry = {
        "function": "load", "module": "shop", "build_id": "ab", "state": "explained", "calls": 1000,
        "verdict": "holds", "classes": [{"upper_seconds": 36e-6, "share": 0.7}, {"upper_seconds": None, "share": 0.3}],
        "behaviours": [
            {"expression": "cache_get->load", "calls": 700, "shares": [1.0, 0.0], "quantiles": quantiles(1e-5, 2e-5)},
            {"expression": "not cache_get->load", "calls": 300, "shares": [0.02, 0.98]},
        ],
    }  # fmt: skip
    text = [" ".join(line.split()) for line in assertion(entry, 100)]
    assert text[0].startswith("load (shop)")
    assert text[0].endswith("holds")
    assert text[2:] == [
        "if cache_get->load (70 % of the calls): half of the calls within 10 us, 99 % within 20 us",
        "all take up to 36 us; normal: median 9.0-11.0 us, p99 18-22 us",
        "if not cache_get->load (30 % of the calls)",
        "2 % take up to 36 us, 98 % over 36 us",
    ]


@pytest.mark.parametrize("columns", [50, 80])
def test_no_number_is_cut_from_its_unit(columns: int) -> None:
    """Many classes fill several lines that fit."""
    uppers = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, None]
    entry = {
        "function": "f", "module": "m", "state": "explained", "calls": 600,
        "classes": [{"upper_seconds": upper, "share": 1 / 6} for upper in uppers],
        "behaviours": [{"expression": "`a b`->f", "calls": 300, "shares": [1 / 6] * 6},
                       {"expression": "not `a b`->f", "calls": 300, "shares": [1 / 6] * 6}],
    }  # fmt: skip
    lines = assertion(entry, columns)
    assert max(map(len, lines)) <= columns
    for name in ("1.0 us", "10 us", "100 us", "1.0 ms", "10 ms", "17 %"):
        assert any(name in line for line in lines)
    assert not any(line.split()[-1].isdigit() for line in lines)


def test_a_number_keeps_its_unit() -> None:
    """Wherever a line ends."""
    text = "nearly all calls from 61 us to 368 us, for 3 min, of 162 MB, at 59 % of the time in 1 h"
    for width in range(14, 90):
        lines = wrapped(text, width)
        assert " ".join(lines) == text
        assert not any(line[-1].isdigit() for line in lines)
