"""Rows as bytes: equal out or ValueError, and as few as they should be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmine.fleet.codec import (
    decode_histograms,
    decode_path_numbers,
    decode_paths,
    decode_split,
    encode_histograms,
    encode_path_numbers,
    encode_paths,
    encode_split,
    path_hash,
)
from specmine.model.buckets import BUCKETS
from specmine.model.call_path import CallPath, Frame
from specmine.model.histogram import Histogram
from specmine.model.observation import PathHistogram
from tests.support.stored import observation

_HISTOGRAMS = st.dictionaries(st.integers(0, BUCKETS - 1), st.integers(1, 2**51)).map(
    lambda counts: Histogram.from_pairs(list(counts), list(counts.values()))
)


@given(st.lists(_HISTOGRAMS, max_size=5))
def test_histograms_come_back(histograms: list[Histogram]) -> None:
    """Any histograms, empty ones too."""
    assert decode_histograms(encode_histograms(histograms), len(histograms)) == tuple(histograms)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_value_or_a_value_error(data: bytes) -> None:
    """What a host sends cannot raise anything else."""
    for form in (b"\0", b"\1", b""):
        for read in (
            lambda raw: decode_histograms(raw, 1),
            decode_split,
            lambda raw: decode_paths(raw, ()),
            decode_path_numbers,
        ):
            try:
                read(form + data)
            except ValueError:
                continue


def test_paths_and_splits_come_back() -> None:
    """Paths in their order, with what their calls did of their time."""
    seen = observation(3, names=("b", "c", "?"))
    known = [one.path for one in seen.paths]
    back = decode_paths(encode_paths(seen.paths), known)
    assert [(one.path, one.histogram, one.split is None) for one in back] == [
        (one.path, one.histogram, one.split is None) for one in seen.paths
    ]
    split = next(one.split for one in seen.paths if one.split is not None)
    restored = decode_split(encode_split(split))
    assert (restored.blocked_ns, restored.on_cpu) == (split.blocked_ns, split.on_cpu)
    for wrong in (known[:2], [known[0], known[0], known[1]]):
        with pytest.raises(ValueError, match="there twice"):
            decode_paths(encode_paths(seen.paths), wrong)


@given(st.lists(st.integers(0, 2**31)))
def test_numbers_of_paths_come_back(numbers: list[int]) -> None:
    """In any order."""
    assert decode_path_numbers(encode_path_numbers(numbers)) == numbers


def test_the_hash_of_a_path_is_that_of_its_names() -> None:
    """Whether it is complete counts; two paths whose names only join alike differ."""
    one, two = Frame("a", "b"), Frame("ab", "")
    assert (
        len({path_hash(CallPath((one,))), path_hash(CallPath((one,), complete=False)), path_hash(CallPath((two,)))})
        == 3
    )


def test_rows_are_as_small_as_promised() -> None:
    """At most 110 bytes for 1,000 calls, and 900 with 60 call paths."""
    rng = np.random.default_rng(7)
    sizes, with_paths = [], []
    for _ in range(20):
        centres = rng.uniform(8, 14, rng.integers(1, 4))
        durations = np.exp(rng.choice(centres, 1000) + rng.normal(0, 0.25, 1000)).astype(np.int64)
        shares = 1 / np.arange(1, 61)
        chosen = rng.choice(60, 1000, p=shares / shares.sum())
        paths = [
            PathHistogram(
                path=CallPath((Frame(f"f{number}", "app"),)),
                histogram=Histogram.from_durations(durations[chosen == number]),
            )
            for number in np.unique(chosen)
        ]
        numbers = rng.permutation(1000)[: len(paths)].tolist()
        sizes.append(len(encode_histograms((Histogram.from_durations(durations),))))
        with_paths.append(sizes[-1] + len(encode_paths(paths)) + len(encode_path_numbers(numbers)))
    assert np.mean(sizes) <= 110
    assert np.mean(with_paths) <= 900
