"""Borders: found where two classes are, not where one is, whatever its shape, scale and clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from specmine.mining.borders.detection import borders
from specmine.mining.borders.valleys import alternating
from specmine.mining.settings import MiningSettings
from specmine.model.buckets import BUCKET_EDGES, BUCKETS
from specmine.model.histogram import Histogram

S = MiningSettings()


def mixture(rng: np.random.Generator, calls: int, weight: float, separation: float) -> NDArray[np.float64]:
    """Draw two normal classes of one width (sd 5 % of the lower mean), apart by so many sd."""
    upper = rng.random(calls) < weight
    return np.asarray(rng.normal(20_000, 1_000, calls) + upper * separation * 1_000)


def test_two_separated_classes_give_one_border_between_them() -> None:
    """A clear gap gets exactly one border, and its evidence counts the calls on each side."""
    rng = np.random.default_rng(1)
    values = np.concatenate((rng.normal(20_000, 500, 700), rng.normal(80_000, 2_000, 300)))
    (border,) = borders(Histogram.from_durations(values), settings=S)
    assert 23_000 < border.duration_ns < 70_000
    assert border.cdf == pytest.approx(0.7)
    assert (border.evidence.lower_calls, border.evidence.upper_calls) == (700, 300)
    assert border.evidence.depth > 0.9
    assert border.evidence.significance > S.firm_z
    assert border.duration_ns == BUCKET_EDGES[border.edge]


@pytest.mark.parametrize(("weight", "separation"), [(0.02, 6.5), (0.1, 5.0), (0.2, 4.2), (0.5, 3.2)])
def test_minority_and_close_classes_are_found_in_ten_thousand_calls(weight: float, separation: float) -> None:
    """A class of 2 % at 6.5 sd, of 10 % at 5 sd, of 20 % at 4.2 sd, of 50 % at 3.2 sd."""
    rng = np.random.default_rng(2)
    found = 0
    for _ in range(40):
        got = borders(Histogram.from_durations(mixture(rng, 10_000, weight, separation)), settings=S, z=S.stable_z)
        found += any(abs(b.cdf - (1 - weight)) < min(0.5 * weight, 0.05) for b in got)
    assert found >= 39


@pytest.mark.parametrize("calls", [200, 1_000, 100_000])
@pytest.mark.parametrize("shape", ["lognormal", "exponential", "normal", "uniform", "pareto", "weibull"])
def test_one_class_gives_no_border_beyond_doubt(shape: str, calls: int) -> None:
    """A single class of any common shape, with some preempted calls, shows no border of ``firm_z``."""
    rng = np.random.default_rng(3)
    draw: dict[str, Callable[[], NDArray[np.float64]]] = {
        "lognormal": lambda: rng.lognormal(np.log(2e4), 0.5, calls),
        "exponential": lambda: rng.exponential(2e4, calls),
        "normal": lambda: rng.normal(2e4, 2e3, calls),
        "uniform": lambda: rng.uniform(1e4, 3e4, calls),
        "pareto": lambda: 1e4 * (1 + rng.pareto(1.5, calls)),
        "weibull": lambda: 2e4 * rng.weibull(0.6, calls),
    }
    doubtless = 0
    for _ in range(50):
        values = draw[shape]() + (rng.random(calls) < 0.005) * 4e6
        got = borders(Histogram.from_durations(values), settings=S)
        doubtless += any(b.evidence.significance >= S.firm_z for b in got)
    assert doubtless <= 1


def test_classes_closer_than_the_resolution_get_no_border() -> None:
    """Two classes 300 ns apart are one to an instrument that is uncertain by 400 ns."""
    rng = np.random.default_rng(4)
    values = np.concatenate((rng.normal(1_000, 10, 500), rng.normal(1_300, 10, 500)))
    assert len(borders(Histogram.from_durations(values), settings=replace(S, resolution_ns=20))) == 1
    assert borders(Histogram.from_durations(values), settings=replace(S, resolution_ns=400)) == ()


def test_a_class_smaller_than_the_threshold_gets_no_border() -> None:
    """1 % of far slower calls are not worth a class, 2 % are."""
    rng = np.random.default_rng(5)
    for share, expected in ((0.01, 0), (0.02, 1)):
        slow = int(10_000 * share)
        values = np.concatenate((rng.normal(20_000, 800, 10_000 - slow), rng.normal(90_000, 3_000, slow)))
        assert len(borders(Histogram.from_durations(values), settings=S)) == expected


def test_of_two_matching_borders_the_leftmost_stays() -> None:
    """Gaps on both sides of a class of 4 % match each other at 5 %; the lower one stands for both."""
    rng = np.random.default_rng(6)
    coarse = MiningSettings(match_threshold=0.05, window_shares=(0.3, 1.0))
    values = np.concatenate((rng.normal(1e4, 300, 4_800), rng.normal(1e5, 3_000, 400), rng.normal(1e6, 3e4, 4_800)))
    assert len(borders(Histogram.from_durations(values), settings=S)) == 2
    (border,) = borders(Histogram.from_durations(values), settings=coarse)
    assert 1.1e4 < border.duration_ns < 9e4


def test_too_few_calls_or_none_give_no_border() -> None:
    """Nothing is said from fewer than ``minimum_calls`` calls."""
    assert borders(Histogram.from_dense(np.zeros(BUCKETS)), settings=S) == ()
    assert borders(Histogram.from_durations([1_000] * 99 + [100_000] * 100), settings=S) == ()


def test_one_constant_duration_gives_no_border() -> None:
    """A single full bucket has no inside."""
    assert borders(Histogram.from_durations(np.full(1_000, 12_345)), settings=S) == ()


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 2**41), min_size=200, max_size=600),
    st.sampled_from([0.0, 50.0, 1e6]),
)
def test_borders_of_any_durations_keep_their_promises(durations: list[int], resolution_ns: float) -> None:
    """Ascending, apart by the threshold and away from both ends, classes adding up to all calls."""
    got = borders(Histogram.from_durations(durations), settings=replace(S, resolution_ns=resolution_ns), z=1.0)
    cdf = [0.0, *(b.cdf for b in got), 1.0]
    assert not got or all(high - low >= S.match_threshold - 1e-12 for low, high in pairwise(cdf))
    assert [b.edge for b in got] == sorted({b.edge for b in got})
    if got:
        calls = [b.evidence.lower_calls for b in got] + [got[-1].evidence.upper_calls]
        assert sum(calls) == len(durations)
        assert [b.evidence.upper_calls for b in got[:-1]] == calls[1:-1]


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=40), st.integers(1, 6))
def test_hysteresis_finds_the_valleys_of_the_definition(level: list[int], needed: int) -> None:
    """As many as the longest alternation of falls and rises has, each at the lowest place between its peaks."""
    array = np.array(level, dtype=np.float64)
    got = alternating(range(len(level)), level, level, needed, apart=1)
    for left, low, right in got:
        assert left < low < right
        assert min(array[left], array[right]) - array[low] >= needed
        assert array[low] == array[left : right + 1].min()
    assert all(a[2] == b[0] for a, b in pairwise(got))
    best = 0  # by dynamic programming: the longest alternation of falls and rises of at least `needed`
    ends: dict[bool, list[int]] = {True: [0] * len(level), False: [0] * len(level)}
    for j in range(len(level)):
        for i in range(j):
            if level[i] - level[j] >= needed:
                ends[False][j] = max(ends[False][j], ends[True][i] + 1)
            if level[j] - level[i] >= needed and ends[False][i]:
                ends[True][j] = max(ends[True][j], ends[False][i] + 1)
                best = max(best, ends[True][j])
    assert len(got) == best // 2


def test_the_time_does_not_depend_on_the_number_of_calls() -> None:
    """A hundred times the calls take no longer, by the fastest of many: the host halves its speed for a while."""
    rng = np.random.default_rng(7)
    few = Histogram.from_durations(mixture(rng, 10_000, 0.3, 6))
    many = Histogram.from_pairs(few.buckets, few.counts * 100)
    times: dict[int, list[float]] = {0: [], 1: []}
    for _ in range(60):
        for which, counts in enumerate((few, many)):
            start = time.thread_time()
            borders(counts, settings=S)
            times[which].append(time.thread_time() - start)
    assert min(times[1]) < 2 * min(times[0])
