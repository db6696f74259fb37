"""Rows added up say the same as their histograms added up one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specmine.fleet.codec import (
    decode_histograms,
    decode_path_numbers,
    decode_paths,
    encode_histograms,
    encode_path_numbers,
    encode_paths,
    encode_split,
)
from specmine.fleet.sums import RowBytes, histogram_sum, summed, times_of_splits
from specmine.model.buckets import BUCKETS
from specmine.model.call_path import CallPath, Frame
from specmine.model.histogram import Histogram
from specmine.model.observation import PathHistogram
from specmine.model.split import Split

_HISTOGRAM = st.dictionaries(st.integers(0, BUCKETS - 1), st.integers(1, 2**40), max_size=6).map(
    lambda counts: Histogram.from_pairs(list(counts), list(counts.values()))
)
_ROW = st.tuples(st.integers(0, 3), _HISTOGRAM, st.dictionaries(st.integers(1, 2**31), _HISTOGRAM, max_size=3))


def _path(number: int) -> CallPath:
    return CallPath((Frame(str(number), ""),))


def _bytes(histogram: Histogram, paths: dict[int, Histogram]) -> RowBytes:
    return RowBytes(
        counts=encode_histograms((histogram,)),
        paths=encode_paths([PathHistogram(path=_path(at), histogram=each) for at, each in paths.items()])
        if paths else None,
        path_ids=encode_path_numbers(list(paths)) if paths else None,
    )  # fmt: skip


@settings(max_examples=25)
@given(st.lists(_ROW, min_size=1, max_size=8))
def test_groups_are_the_sums_of_their_rows(rows: list[tuple[int, Histogram, dict[int, Histogram]]]) -> None:
    """Histograms and call paths of each group."""
    group = np.array([each[0] for each in rows], np.int64)
    found = summed([_bytes(*each[1:]) for each in rows], group, 4)
    for number, each in enumerate(found):
        mine = [row for row in rows if row[0] == number]
        assert decode_histograms(each.counts, 1)[0] == Histogram.sum(row[1] for row in mine)
        expected: dict[int, Histogram] = {}
        for _, _, paths in mine:
            for at, histogram in paths.items():
                expected[at] = expected[at] + histogram if at in expected else histogram
        ids = decode_path_numbers(each.path_ids or b"")
        parts = decode_paths(each.paths, [_path(at) for at in ids]) if each.paths else ()
        # a path without a call is not there any more
        assert dict(zip(ids, (one.histogram for one in parts), strict=True)) == {
            at: histogram for at, histogram in expected.items() if histogram.total
        }


def test_one_histogram_of_many() -> None:
    """As adding them up one by one."""
    rng = np.random.default_rng(3)
    many = [Histogram.from_durations(rng.integers(100, 10**6, 50)) for _ in range(30)]
    assert histogram_sum([encode_histograms((each,)) for each in many]) == Histogram.sum(many)


def test_sums_that_are_too_large_can_be_read() -> None:
    """Two rows of a host that lies do not make an hour that nobody can read."""
    row = _bytes(Histogram.from_pairs([3], [2**51]), {5: Histogram.from_pairs([3], [2**52 - 1])})
    (whole,) = summed([row, row], np.zeros(2, np.int64), 1)
    assert decode_histograms(whole.counts, 1)[0].total == 2**52 - 1
    assert whole.paths is not None
    assert decode_paths(whole.paths, [_path(5)])[0].histogram.total == 2**52 - 1


def test_a_damaged_row_is_an_error() -> None:
    """A row with paths whose numbers do not fit its histograms."""
    good = _bytes(Histogram.from_durations([100]), {5: Histogram.from_durations([100])})
    bad = RowBytes(counts=good.counts, paths=good.paths, path_ids=encode_path_numbers([5, 6]))
    with pytest.raises(ValueError, match="call paths"):
        summed([good, bad], np.zeros(2, np.int64), 1)


@settings(max_examples=25)
@given(st.lists(st.tuples(_HISTOGRAM, _HISTOGRAM, _HISTOGRAM), max_size=5))
def test_times_of_splits_are_those_of_their_histograms(rows: list[tuple[Histogram, Histogram, Histogram]]) -> None:
    """Running, waiting, blocked and the calls, row by row."""
    splits = [Split(waiting_ns=waiting, blocked_ns=blocked, on_cpu=on_cpu) for waiting, blocked, on_cpu in rows]
    found = times_of_splits([encode_split(each) for each in splits])
    assert found.shape == (len(rows), 4)
    for row, each in zip(found.tolist(), splits, strict=True):
        expected = (each.on_cpu.time_ns(), each.waiting_ns.total, each.blocked_ns.total, each.on_cpu.total)
        assert row == pytest.approx(expected, rel=1e-9, abs=1e-3)


def test_a_row_that_is_no_split_is_none() -> None:
    """It has one histogram."""
    with pytest.raises(ValueError, match="not three"):
        times_of_splits([encode_histograms((Histogram.from_pairs([3], [1]),))])
