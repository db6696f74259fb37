"""Observations hold equal things once, and come back from JSON as they were."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from specmine.model.histogram import EMPTY, Histogram
from specmine.model.json_codec import decode, encode
from specmine.model.observation import Kind, Observation, PathHistogram, with_shared_paths
from specmine.model.split import Split, unbroken
from tests.support.planted import paper_program, path_of
from tests.support.simulated import SECOND


def observed(calls: int = 3000) -> Observation:
    """Return an observation with three call paths."""
    random = np.random.default_rng(1)
    parts = [Histogram.from_durations(random.lognormal(10, 0.3, calls // 3).astype(np.int64)) for _ in range(3)]
    z = paper_program()[0]
    by_way = zip(z.ways, parts, strict=True)
    return Observation(
        function="k", lifetime="l", kind=Kind.PATH, start_ns=5, end_ns=7 * SECOND, histogram=Histogram.sum(parts),
        calls=calls + 9, watched_ns=6 * SECOND, inner=3, censored=2, bias_ns=250.5,
        paths=tuple(PathHistogram(path=path_of(way, z.name), histogram=part) for way, part in by_way),
    )  # fmt: skip


def test_it_comes_back_as_it_was() -> None:
    """Nothing is lost through JSON: without a call, with splits, with splits of some paths."""
    plain = observed()
    waited = Histogram.from_pairs(plain.histogram.buckets, plain.histogram.counts * 7)
    moved = plain.histogram + Histogram.from_pairs([100], [9])
    split = Split(waiting_ns=waited, blocked_ns=EMPTY, on_cpu=moved)
    first = replace(plain.paths[0], split=unbroken(plain.paths[0].histogram))
    for each in (
        plain,
        replace(plain, histogram=EMPTY, paths=()),
        replace(plain, split=split, paths=(first, *plain.paths[1:])),
        replace(plain, split=unbroken(plain.histogram)),
    ):
        assert encode(decode(Observation, encode(each))) == encode(each)


def test_time_on_cpu_that_equals_the_durations_is_held_once() -> None:
    """Of most calls nothing is known but that they never left their CPU."""
    plain = observed()
    again: Observation = decode(Observation, encode(replace(plain, split=unbroken(plain.histogram))))
    assert again.split is not None
    assert again.split.on_cpu is again.histogram


def test_equal_call_paths_are_one_object() -> None:
    """Windows that follow each other share their paths."""
    first = observed()
    second = with_shared_paths(observed(), (first,))
    assert all(a.path is b.path for a, b in zip(first.paths, second.paths, strict=True))
    assert encode(second) == encode(first)
