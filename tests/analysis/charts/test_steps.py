"""Steps hold every call, where it was counted."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest

from specmine.analysis.charts.axis import LogAxis, axis_over
from specmine.analysis.charts.steps import heights, step_path


def test_no_call_is_lost_or_made() -> None:
    rng = np.random.default_rng(1)
    edges = np.exp(np.sort(rng.uniform(-14, -4, 60)))
    bins = [(float(low), float(high), float(rng.integers(1, 99))) for low, high in pairwise(edges)]
    for steps in (1, 7, 72):
        found = heights(bins, axis_over([bins[0][0], bins[-1][1]]), steps)
        assert sum(found) == pytest.approx(sum(calls for _, _, calls in bins))


def test_a_bin_lies_where_its_durations_are() -> None:
    axis = LogAxis(1e-6, 1e-2)
    assert heights([(1.01e-4, 1.02e-4, 5)], axis, 4) == [0, 0, 5, 0]
    # two decades of four: half of the calls in each
    assert heights([(1e-5, 1e-3, 8)], axis, 4) == pytest.approx([0, 4, 4, 0])


def test_beyond_the_ends_calls_are_at_the_ends() -> None:
    axis = LogAxis(1e-6, 1e-4)
    assert heights([(1e-9, 1e-9, 2), (1.0, 2.0, 3)], axis, 2) == [2, 3]


def test_empty_steps_leave_gaps() -> None:
    path = step_path([0, 2, 0, 1])
    assert path.count("M") == 2
    assert path.count("V100") == 2
    assert [float(each) for each in re.findall(r"M(\S+) 100", path)] == [250, 750]
    assert step_path([0, 0]) == ""


@pytest.mark.parametrize(("low", "high"), [(1e-9, 1e-8), (3e-6, 1.5e-3), (1e-9, 1e3), (2e-6, 2.4e-6)])
def test_ticks_are_few_and_on_the_axis(low: float, high: float) -> None:
    axis = axis_over([low, high])
    ticks = axis.ticks()
    assert 1 <= len(ticks) <= 9
    assert all(0 <= axis.place(value) <= 1 for value, _ in ticks)
    assert len({text for _, text in ticks}) == len(ticks)
