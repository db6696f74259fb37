"""Observations held in little memory come back as they were."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest

from specmine.model.buckets import BUCKETS
from specmine.model.histogram import histogram_of
from specmine.model.json_codec import decode, encode
from specmine.model.observation import Kind, Observation, PathHistogram
from specmine.model.sparse import Kept, kept
from specmine.model.split import Split, split_or_unbroken
from tests.support.planted import paper_program, path_of
from tests.support.simulated import SECOND


def observed(calls: int = 3000) -> Observation:
    """Return an observation with three call paths."""
    random = np.random.default_rng(1)
    parts = [histogram_of(random.lognormal(10, 0.3, calls // 3).astype(np.int64)) for _ in range(3)]
    z = paper_program()[0]
    every = parts[0] + parts[1] + parts[2]
    by_way = zip(z.ways, parts, strict=True)
    return Observation(
        function="k", lifetime="l", kind=Kind.PATH, start_ns=5, end_ns=7 * SECOND, counts=every, calls=calls + 9,
        watched_ns=6 * SECOND, inner=3, censored=2, bias_ns=250.5,
        paths=tuple(PathHistogram(path=path_of(way, z.name), counts=own) for way, own in by_way),
    )  # fmt: skip


def bytes_of(held: Kept) -> int:
    """Return what the arrays take."""
    every = [held.histogram, *(own for _, own, _ in held.paths)]
    return sum(sys.getsizeof(each.buckets) + sys.getsizeof(each.calls) for each in every)


def test_it_comes_back_as_it_was() -> None:
    """Nothing of an observation is lost, not even of one without a call."""
    for seen in (observed(), replace(observed(), counts=histogram_of([]), paths=())):
        assert encode(kept(seen).whole()) == encode(seen)
        assert kept(seen).timed == seen.timed


def test_what_calls_did_of_their_time_comes_back() -> None:
    """Splits are kept whole: where some calls left their CPU, where none did, and on paths."""
    seen = observed()
    moved = seen.counts.copy()
    moved[100] += moved[moved.argmax()]
    split = Split(waiting_ns=seen.counts * np.uint64(7), blocked_ns=np.zeros(BUCKETS, np.uint64), on_cpu=moved)
    for each in (split, split_or_unbroken(seen.counts, None)):
        paths = tuple(replace(one, split=split_or_unbroken(one.counts, None)) for one in seen.paths[:1])
        whole = replace(seen, split=each, paths=(*paths, *seen.paths[1:]))
        assert encode(kept(whole).whole()) == encode(whole)
        assert encode(decode(Observation, encode(whole))) == encode(whole)


def test_counts_beyond_32_bits_are_kept() -> None:
    """Merged observations of years may hold more calls than fit into 32 bits."""
    seen = replace(observed(), counts=observed().counts * np.uint64(1 << 40))
    assert kept(seen).whole().timed == 3000 << 40


def test_it_is_small_and_shares_its_paths() -> None:
    """An observation with three paths takes a tenth of its dense form, and equal paths are one object."""
    first = kept(observed())
    second = kept(observed(), {path: path for path, _, _ in first.paths})
    assert bytes_of(first) < 4 * 9000 / 10
    assert all(a is b for (a, _, _), (b, _, _) in zip(first.paths, second.paths, strict=True))


@pytest.mark.parametrize("paths", [0, 3])
def test_counts_are_the_whole_histogram(paths: int) -> None:
    """The sum over buckets is there without the rest."""
    seen = replace(observed(), paths=observed().paths[:paths])
    assert (kept(seen).counts == seen.counts).all()
