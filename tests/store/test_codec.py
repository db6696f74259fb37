"""Histograms and call paths as bytes: what is written is read again, and damaged bytes are refused."""

from __future__ import annotations

import json
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmine.model.buckets import BUCKETS
from specmine.model.call_path import CallPath, Frame
from specmine.model.histogram import EMPTY, Histogram
from specmine.model.observation import PathHistogram
from specmine.model.split import Split
from specmine.store.codec import (
    decode_histogram,
    decode_paths,
    decode_split,
    encode_histogram,
    encode_paths,
    encode_split,
    packed,
    read_histogram,
    read_paths,
)
from specmine.store.histogram_reader import LENGTH, DamagedBytes, HistogramReader

histograms = st.dictionaries(st.integers(0, BUCKETS - 1), st.integers(1, 1 << 40), max_size=5).map(
    lambda used: Histogram.from_pairs(list(used), list(used.values()))
)
splits = st.builds(Split, waiting_ns=histograms, blocked_ns=histograms, on_cpu=histograms)
frames = st.builds(Frame, st.sampled_from("abc"), st.sampled_from(["app", "lib.so"]))
paths = st.lists(
    st.builds(CallPath, st.lists(frames, max_size=4).map(tuple), st.booleans()), max_size=6, unique=True
).flatmap(
    lambda each: st.tuples(
        *(st.builds(PathHistogram, path=st.just(path), histogram=histograms, split=st.none() | splits) for path in each)
    )
)
MAIN, APP = ("main", "app"), ("work", "app")


def parts(split: Split | None) -> tuple[Histogram, ...] | None:
    """Return the histograms of a split."""
    return None if split is None else (split.waiting_ns, split.blocked_ns, split.on_cpu)


@given(histograms, splits)
def test_histograms_and_splits_are_read_as_they_were_written(histogram: Histogram, split: Split) -> None:
    """Empty ones, too."""
    assert decode_histogram(encode_histogram(histogram)) == histogram
    assert parts(decode_split(encode_split(split))) == parts(split)


@given(paths)
def test_call_paths_are_read_as_they_were_written(told: tuple[PathHistogram, ...]) -> None:
    """Their frames, whether they are complete, their calls, and what these did of their time."""
    found = decode_paths(encode_paths(told))
    assert [(each.path, each.histogram, parts(each.split)) for each in found] == [
        (each.path, each.histogram, parts(each.split)) for each in told
    ]


@given(st.lists(histograms, max_size=4), paths)
def test_values_read_together_are_as_if_read_alone(some: list[Histogram], told: tuple[PathHistogram, ...]) -> None:
    """In any order and number; the numbers of one do not widen those of another."""
    reader = HistogramReader()
    later = [read_histogram(encode_histogram(each), reader) for each in some]
    of_paths = read_paths(encode_paths(told), reader)
    held = reader.histograms()
    assert [each(held) for each in later] == some
    assert [each(held).counts.dtype for each in later] == [each.counts.dtype for each in some]
    assert [(each.path, each.histogram, parts(each.split)) for each in of_paths(held)] == [
        (each.path, each.histogram, parts(each.split)) for each in told
    ]


def written(table: object, histograms: list[bytes]) -> bytes:
    """Return the bytes of call paths with any head."""
    head = json.dumps(table).encode()
    return zlib.compress(LENGTH.pack(len(head)) + head + b"".join(histograms))


ONE = packed(Histogram.from_pairs([7, 9], [1, 2]))
BACKWARDS = LENGTH.pack(2) + np.array([9, 7], "<u2").tobytes() + np.array([1, 2], "<u8").tobytes()
BEYOND = LENGTH.pack(1) + np.array([BUCKETS], "<u2").tobytes() + np.array([1], "<u8").tobytes()
NONE = LENGTH.pack(1) + np.array([7], "<u2").tobytes() + np.array([0], "<u8").tobytes()


@pytest.mark.parametrize(
    ("table", "histograms"),
    [
        ({"frames": [MAIN], "paths": [[1, 0], [1, 0]]}, [ONE, ONE]),
        ({"frames": [MAIN, MAIN], "paths": [[1, 0], [1, 1]]}, [ONE, ONE]),
        ({"frames": [MAIN], "paths": [[1, 0], [1, 1]]}, [ONE, ONE]),
        ({"frames": [MAIN, APP], "paths": [[1, 0], [1, 1]]}, [ONE]),
        ({"frames": [MAIN, APP], "paths": [[1, 0], [1, 1]]}, [ONE, ONE[:-1]]),
        ({"frames": [MAIN, APP], "paths": [[1, 0], [1, 1]]}, [ONE, BACKWARDS]),
        ({"frames": [MAIN, APP], "paths": [[1, 0], [1, 1]]}, [BEYOND, ONE]),
        ({"frames": [MAIN, APP], "paths": [[1, 0], [1, 1]]}, [ONE, NONE]),
        ({"frames": [MAIN], "paths": [[1, 0]], "splits": [1]}, [ONE, ONE, ONE, ONE]),
        ({"frames": [MAIN], "paths": [[1, 0]], "splits": [0]}, [ONE, ONE, ONE]),
        ({"frames": [MAIN], "paths": [[1, *([0] * 5000)]]}, [ONE]),
        ({"frames": [MAIN], "paths": [[]]}, [ONE]),
        ({"frames": [["main"]], "paths": [[1, 0]]}, [ONE]),
        ({"paths": []}, []),
    ],
)
def test_damaged_call_paths_are_refused(table: object, histograms: list[bytes]) -> None:
    """Nothing that cannot be is taken in: no path twice, no bucket out of order, no split of no path."""
    with pytest.raises(DamagedBytes):
        decode_paths(written(table, histograms))


def test_a_histogram_without_calls_takes_no_place_among_others() -> None:
    """Where one ends and the next begins, bucket numbers may go down."""
    some = Histogram.from_pairs([500], [3])
    told = tuple(
        PathHistogram(path=CallPath((Frame(name, "app"),)), histogram=histogram)
        for name, histogram in (("a", EMPTY), ("b", some), ("c", EMPTY), ("d", Histogram.from_pairs([2], [1])))
    )
    assert [each.histogram for each in decode_paths(encode_paths(told))] == [each.histogram for each in told]
