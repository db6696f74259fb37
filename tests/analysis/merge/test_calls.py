"""The calls of several runs together, and their interval."""

from __future__ import annotations

import numpy as np
import pytest

from specmine.analysis.merge.calls import merged_calls


def test_calls_and_their_errors_add_up() -> None:
    """The calls are added; of the two distances to an end, 300 and 400, the sum is off by 500."""
    entries = [
        {"calls": 10_000, "calls_interval": [9_700, 10_300], "calls_exact": False},
        {"calls": 20_000, "calls_interval": [19_600, 20_400], "calls_exact": True},
    ]
    assert merged_calls(entries) == {"calls": 30_000, "calls_interval": [29_500, 30_500], "calls_exact": False}


def test_an_end_that_is_not_known_stays_unknown() -> None:
    """One run without an upper end has none in the sum; one without an interval leaves none."""
    sure, open_above, unknown = ({"calls": 5, "calls_interval": ends} for ends in ([5, 5], [3, None], None))
    assert merged_calls([sure, open_above])["calls_interval"] == [8, None]
    assert merged_calls([sure, unknown])["calls_interval"] is None


def test_recorded_durations_count_as_calls() -> None:
    """A specification of recorded durations says only how many it has."""
    assert merged_calls([{"timed": 100}, {"timed": 50}]) == {"calls": 150}


def test_the_interval_covers_the_sum_of_poisson_counts() -> None:
    """Each run sees a tenth of its calls; the interval of three runs covers their true sum in 93 to 97 %."""
    rng = np.random.default_rng(1)
    true = np.array([4_000, 10_000, 25_000])
    covered = 0
    for _ in range(2_000):
        seen = 10 * rng.binomial(true, 0.1)
        half = 1.96 * np.sqrt(seen * 10 * 0.9)
        entries = [
            {"calls": int(own), "calls_interval": [int(own - each), int(own + each)]}
            for own, each in zip(seen, half, strict=True)
        ]
        low, high = merged_calls(entries)["calls_interval"]
        covered += low <= true.sum() <= high
    assert covered / 2_000 == pytest.approx(0.95, abs=0.02)
