"""Levels in documents: what is computed once, and what is left out where it cannot be known."""

from __future__ import annotations

import numpy as np

from specmine.daemon.documents.levels import _level_of
from specmine.mining.levels.estimate import LEAST_WINDOWS, level_of
from specmine.mining.levels.window import Window
from specmine.model.histogram import Histogram


def test_few_windows_say_the_same_without_a_look_for_ranges() -> None:
    """Where windows are too few for a range, none is looked for; from then on it is there."""
    chance = np.random.default_rng(1)
    windows = [
        Window(
            histogram=Histogram.from_durations(chance.lognormal(10, 0.5, 900)),
            start_ns=number,
            end_ns=number + 1,
            lifetime="one",
            bias_ns=300.0,
        )
        for number in range(LEAST_WINDOWS + 2)
    ]
    for number in range(len(windows) + 1):
        assert _level_of(windows[:number]) == level_of(windows[:number])
    few, enough = (_level_of(windows[:number]).quantile("p50") for number in (LEAST_WINDOWS - 1, LEAST_WINDOWS))
    assert few is not None and few.low_ns is None
    assert enough is not None and enough.low_ns is not None
