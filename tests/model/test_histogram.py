"""Histograms: their sums, classes and quantiles, and how little they take."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmine.model.buckets import BUCKET_EDGES, BUCKET_MIDDLES, BUCKETS
from specmine.model.histogram import EMPTY, Histogram, quantiles_of

counted = st.dictionaries(st.integers(0, BUCKETS - 1), st.integers(1, 1 << 40), max_size=8)
histograms = counted.map(lambda counts: Histogram.from_pairs(list(counts), list(counts.values())))

filled = histograms.filter(lambda each: each.total > 0)


@given(histograms)
def test_dense_and_pairs_hold_the_same(histogram: Histogram) -> None:
    """Either form leads back to the histogram."""
    assert Histogram.from_dense(histogram.dense) == histogram
    assert Histogram.from_pairs(*zip(*histogram.pairs, strict=True) if histogram.pairs else ((), ())) == histogram
    assert histogram.dense.sum() == histogram.total


@given(st.lists(histograms, max_size=4))
def test_a_sum_adds_bucket_by_bucket(parts: list[Histogram]) -> None:
    """No call is lost or made, in whatever order they are added."""
    whole = Histogram.sum(parts)
    assert np.array_equal(whole.dense, sum((part.dense for part in parts), np.zeros(BUCKETS, np.uint64)))
    assert whole == Histogram.sum(reversed(parts)) == sum(parts, EMPTY)


@given(st.lists(st.lists(histograms, max_size=3), max_size=4))
def test_sums_of_groups_are_the_sums_of_each(groups: list[list[Histogram]]) -> None:
    """Added together or one by one, the same comes out, also of groups that hold nothing."""
    assert Histogram.sums(groups) == [Histogram.sum(group) for group in groups]


@given(st.lists(histograms, max_size=4))
def test_histograms_are_cut_out_of_what_holds_them_one_after_the_other(parts: list[Histogram]) -> None:
    """Empty ones too; what is cut is as small as any, and cannot be written to."""
    buckets = np.concatenate([EMPTY.buckets, *(part.buckets for part in parts)])
    counts = np.concatenate([EMPTY.counts, *(part.counts for part in parts)]).astype(np.uint64)
    found = Histogram.cut(buckets, counts, np.cumsum([len(part.buckets) for part in parts], dtype=np.int64))
    assert found == parts
    assert not any(each.buckets.flags.writeable or each.counts.flags.writeable for each in found)


@given(histograms, histograms)
def test_what_is_taken_away_is_never_more_than_there_is(first: Histogram, second: Histogram) -> None:
    """A bucket of the difference holds at least 0."""
    assert (first + second).without(second) == first
    assert first.without(first + second) == EMPTY


@given(histograms, st.lists(st.integers(1, BUCKETS - 1), unique=True, max_size=4).map(sorted))
def test_classes_are_the_parts_between_the_edges(histogram: Histogram, edges: list[int]) -> None:
    """Each call is in exactly one class."""
    parts = [histogram.part(low, high) for low, high in zip([0, *edges], [*edges, BUCKETS], strict=True)]
    assert histogram.class_counts(edges).tolist() == [part.total for part in parts]
    assert Histogram.sum(parts) == histogram


def test_a_duration_equal_to_a_border_begins_the_bucket_above_it() -> None:
    """Class of a bucket = number of borders at or below it."""
    edges = BUCKET_EDGES
    counts = Histogram.from_durations([int(edges[400]) - 1, int(edges[400]), int(edges[500])])
    assert counts.class_counts([400, 500]).tolist() == [1, 1, 1]
    assert counts.class_counts([]).tolist() == [3]


def test_moments_are_those_of_the_middles_of_buckets() -> None:
    """Mean and standard deviation as numpy computes them; the bias is subtracted from the mean only."""
    middles = np.repeat(BUCKET_MIDDLES[[200, 300, 301]], [5, 2, 9])
    histogram = Histogram.from_pairs([200, 300, 301], [5, 2, 9])
    assert histogram.mean() == pytest.approx(middles.mean())
    assert histogram.mean(bias_ns=100.0) == pytest.approx(middles.mean() - 100)
    assert histogram.std() == pytest.approx(middles.std())
    assert histogram.mean(bias_ns=1e9) == EMPTY.mean() == EMPTY.std() == EMPTY.quantile(0.5) == 0.0


def test_quantiles_lie_within_their_bucket() -> None:
    """Half of ten calls in a bucket lie below its middle."""
    histogram = Histogram.from_pairs([100, 200], [10, 10])
    assert histogram.quantile(0.25) == BUCKET_MIDDLES[100]
    assert histogram.quantiles((0.25, 0.75)) == [BUCKET_MIDDLES[100], BUCKET_MIDDLES[200]]


@given(filled, st.lists(st.floats(-0.5, 1.5), min_size=1, max_size=5))
def test_quantiles_invert_the_cumulative_distribution(histogram: Histogram, levels: list[float]) -> None:
    """As many calls as the level says lie below the quantile, each bucket's calls being spread evenly over it."""
    below = np.concatenate(([0], np.cumsum(histogram.dense, dtype=np.float64)))
    reached = np.interp(histogram.quantiles(levels), BUCKET_EDGES, below) / below[-1]
    assert reached == pytest.approx(np.clip(levels, 0.0, 1.0), abs=1e-6)


def test_counts_beyond_32_bits_are_held() -> None:
    """Merged observations of years may hold more calls than fit into 32 bits."""
    assert Histogram.from_pairs([3, 3, 4], [1 << 32, 1, 2]).pairs == [[3, (1 << 32) + 1], [4, 2]]


def test_it_takes_little_memory_and_nothing_changes_it() -> None:
    """3,000 calls of one kind take a tenth of the dense form."""
    histogram = Histogram.from_durations(np.random.default_rng(1).lognormal(10, 0.3, 3000))
    assert sys.getsizeof(histogram.buckets) + sys.getsizeof(histogram.counts) < 8 * BUCKETS / 8
    with pytest.raises(ValueError, match="read-only"):
        histogram.counts[0] = 1
    with pytest.raises(ValueError, match="shape"):
        Histogram.from_dense([1, 2, 3])


@given(
    st.lists(st.tuples(histograms.filter(lambda each: each.total > 0), st.floats(-0.5, 1.5)), min_size=1, max_size=5)
)
def test_quantiles_of_several_are_those_of_each(drawn: list[tuple[Histogram, float]]) -> None:
    """What stands beside a histogram has no part in its quantiles."""
    levels = np.array([[0.0, level, 1.0] for _, level in drawn])
    found = quantiles_of([histogram for histogram, _ in drawn], levels)
    for (histogram, level), values in zip(drawn, found, strict=True):
        assert values == pytest.approx(histogram.quantiles((0.0, level, 1.0)), rel=1e-6)
