"""Counters by behaviour and class only grow, and add up to the calls counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from specmine.daemon.metrics.counters import ClassCounters
from specmine.daemon.metrics.snapshot import FunctionSnapshot
from tests.daemon.metrics.test_collector import reading


def advanced(counters: ClassCounters, function: FunctionSnapshot) -> Mapping[tuple[str, str], float]:
    """Return the calls by behaviour and class after one more snapshot."""
    (with_counters,) = counters.advance([function])
    return with_counters.class_calls


def test_a_change_of_load_shows_at_once_in_the_classes() -> None:
    """New calls are split by the new durations, not by all durations ever."""
    counters = ClassCounters()
    before = advanced(counters, reading(calls=1000, fast=700, slow=300))
    after = advanced(counters, reading(calls=3000, fast=700, slow=900))
    grown = {key: value - before[key] for key, value in after.items()}
    assert sum(value for (_, upper), value in grown.items() if upper == "+Inf") == pytest.approx(2000)
    assert sum(grown.values()) == pytest.approx(2000)


def test_counters_never_fall_and_news_is_counted_once() -> None:
    """Reading twice changes nothing; a controller that began anew does not take counters back."""
    counters = ClassCounters()
    sums = [sum(advanced(counters, reading(calls=calls)).values()) for calls in (1000, 1000, 2500, 400)]
    assert sums[:3] == pytest.approx([1000, 1000, 2500])
    assert sums[3] >= 0


def test_calls_before_the_first_assertion_are_counted_with_it() -> None:
    """A function is silent by class until something is stated, then shows all its calls."""
    counters = ClassCounters()
    assert not advanced(counters, replace(reading(calls=500), behaviours=(), borders=()))
    assert sum(advanced(counters, reading(calls=800)).values()) == pytest.approx(800)
