"""Merged levels hold the windows of every source."""

from __future__ import annotations

from typing import Any

import pytest

from specmine.analysis.merge.quantiles import merged_levels, with_levels


def part(seconds: float, low: float | None, high: float | None, **more: Any) -> dict[str, Any]:
    """Return a part with one quantile."""
    return {"quantiles": {"p50": {"seconds": seconds, "low": low, "high": high}}, "lifetimes": 1, "windows": 5, **more}


def test_a_merged_range_reaches_over_all() -> None:
    """The quantile lies between those of the sources, nearer to that of more lifetimes."""
    found = merged_levels([part(1e-5, 9e-6, 1.1e-5), part(8e-5, 7e-5, 9e-5, lifetimes=2), part(1.0, None, None)])
    assert found["quantiles"]["p50"]["seconds"] == pytest.approx((1e-5 * 8e-5**2 * 1.0) ** 0.25)
    assert (found["quantiles"]["p50"]["low"], found["quantiles"]["p50"]["high"]) == (9e-6, 9e-5)
    assert (found["lifetimes"], found["windows"]) == (4, 15)


def test_nothing_comes_of_nothing() -> None:
    """Specifications without quantiles merge to one without."""
    assert merged_levels([{}, {"quantiles": {}}]) == {}


def test_behaviours_keep_their_levels_where_expressions_are_alike() -> None:
    """Another expression is another behaviour."""
    one = {"behaviours": [{"expression": "a->f", **part(1e-5, 9e-6, 1.1e-5)}]}
    merged = with_levels({"behaviours": [{"expression": "a->f", "calls": 7}, {"expression": "b->f"}]}, [one, one])
    first, second = merged["behaviours"]
    assert first["quantiles"]["p50"]["seconds"] == pytest.approx(1e-5)
    assert (first["lifetimes"], first["calls"]) == (2, 7)
    assert "quantiles" not in second


def test_all_calls_have_the_levels_of_the_function() -> None:
    """Where groups became one, or a source never looked at call paths, its behaviour is all calls."""
    plain = part(1e-5, 9e-6, 1.1e-5, behaviours=[{"expression": "true"}])
    grouped = part(2e-5, 1.9e-5, 2.2e-5, behaviours=[{"expression": "a->f", **part(1.0, 1.0, 1.0)}])
    own = part(9e-5, 5e-5, 9e-5, behaviours=[{"expression": "true", **part(3e-5, 2e-5, 4e-5)}])
    for sources, low, high in (([plain, grouped], 9e-6, 2.2e-5), ([plain, own], 9e-6, 4e-5)):
        (merged,) = with_levels({"behaviours": [{"expression": "true", "calls": 7}]}, sources)["behaviours"]
        assert (merged["quantiles"]["p50"]["low"], merged["quantiles"]["p50"]["high"]) == (low, high)


def test_classes_have_the_levels_of_all_with_as_many() -> None:
    """The range of one run alone would call another one slower."""

    def source(*seconds: float) -> dict[str, Any]:
        return {"classes": [{"share": 1 / len(seconds), **part(each, 0.9 * each, 1.1 * each)} for each in seconds]}

    first, second, other = source(1e-6, 1e-4), source(1e-6, 3e-4), source(1e-6)
    fast, slow = with_levels(first, [first, second, other])["classes"]
    assert (fast["share"], fast["quantiles"]["p50"]["high"]) == (0.5, pytest.approx(1.1e-6))
    assert slow["quantiles"]["p50"]["low"] == pytest.approx(0.9e-4)
    assert slow["quantiles"]["p50"]["high"] == pytest.approx(3.3e-4)
