"""Stretched durations: narrow classes close together are distinguished, and one class stays one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from specmine.mining.borders.inference import Inference, infer_stable_borders, unstretched
from specmine.mining.borders.raw_resolution import FINE, Resolution
from specmine.mining.borders.stretch import NONE, STABLE_Z, Stretch, stretch_of
from specmine.mining.settings import MiningSettings
from specmine.mining.statistics.location import locations
from specmine.model.buckets import BUCKET_EDGES, bucket_of
from specmine.model.histogram import Histogram
from specmine.model.observation import Kind, Observation

S = replace(MiningSettings(), resolution_ns=0.0, stable_z=STABLE_Z)


def observed(values: NDArray[np.float64], stretch: Stretch) -> list[Observation]:
    """Return ten observations of stretched durations."""
    every = []
    for index, own in enumerate(np.array_split(values, 10)):
        histogram = Histogram.from_pairs(stretch.buckets(own), np.ones(len(own)))
        every.append(
            Observation(
                function="f", lifetime="l", kind=Kind.TIME, start_ns=index, end_ns=index + 1, histogram=histogram,
                calls=histogram.total, watched_ns=1,
            )
        )  # fmt: skip
    return every


def inferred(values: NDArray[np.float64]) -> Inference:
    """Return what stretched durations agree on, as durations."""
    stretch = stretch_of(values, FINE)
    return unstretched(infer_stable_borders(observed(values, stretch), {}, None, S, stretch)[0], stretch)


@pytest.mark.parametrize("apart", [1.01, 1.05])
def test_classes_within_a_bucket_are_distinguished(apart: float) -> None:
    """One percent apart, where a bucket has three; the border lies in the middle, its edge beside it."""
    rng = np.random.default_rng(1)
    slow = rng.random(10_000) < 0.3
    values = rng.normal(1e5, 1e5 * (apart - 1) / 8, 10_000) * np.where(slow, apart, 1.0)
    chain = inferred(values)
    (border,) = chain.borders
    assert border.duration_ns == pytest.approx(1e5 * (1 + (apart - 1) / 2), rel=(apart - 1) / 4)
    assert abs(border.edge - int(bucket_of(int(border.duration_ns)))) <= 1
    assert border.cdf == pytest.approx(0.7, abs=0.02)
    assert chain.stable


def test_one_narrow_class_stays_one() -> None:
    """Of twenty, at most one has a border."""
    rng = np.random.default_rng(2)
    assert sum(bool(inferred(rng.normal(1e5, 300, 10_000)).borders) for _ in range(20)) <= 1


def test_levels_are_those_of_the_durations() -> None:
    """Steps are judged by what durations do, not by what their power does: 5 % are no step, 20 % are one."""
    rng = np.random.default_rng(3)
    for factor, ended_by in ((1.05, ""), (1.2, "level")):
        values = rng.normal(1e5, 5e3, 10_000) * np.where(np.arange(10_000) < 5_000, 1.0, factor)
        assert inferred(values).ended_by == ended_by
    values = rng.lognormal(np.log(1e5), 0.05, 5_000)
    stretch = stretch_of(values, FINE)
    (levels,) = locations([observed(values, stretch)[0].histogram], ())
    (plain,) = locations([Histogram.from_durations(values[:500])], ())
    assert stretch.levels(levels)[0, 0] == pytest.approx(plain[0, 0], rel=1e-3)
    assert stretch.levels(levels)[0, 1] == pytest.approx(plain[0, 1], rel=0.15)


def test_borders_in_one_bucket_have_edges_of_their_own() -> None:
    """Two borders 0.5 % apart: different edges, ascending."""
    rng = np.random.default_rng(4)
    which = rng.integers(0, 3, 12_000)
    chain = inferred(rng.normal(1e5, 40, 12_000) * (1 + 0.005 * which))
    assert len(chain.borders) == 2
    assert chain.borders[0].edge < chain.borders[1].edge
    assert all(
        border.duration_ns == pytest.approx(float(BUCKET_EDGES[border.edge]), rel=0.05) for border in chain.borders
    )


def test_what_is_broad_few_or_coarse_is_not_stretched() -> None:
    """There buckets are as good."""
    rng = np.random.default_rng(5)
    narrow = rng.normal(1e5, 300, 5_000)
    assert stretch_of(narrow, FINE) != NONE
    assert stretch_of(rng.lognormal(10, 1, 5_000), FINE) == NONE
    assert stretch_of(narrow[:500], FINE) == NONE
    assert stretch_of(narrow, Resolution(step_ns=2_000.0)) == NONE
    stretch = stretch_of(narrow, FINE)
    edge = int(stretch.buckets(np.array([1e5]))[0])
    assert stretch.duration_ns(float(BUCKET_EDGES[edge])) == pytest.approx(1e5, rel=2e-3)
