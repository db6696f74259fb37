"""Observations as they are held for long: of some thousand buckets few hold calls, so only those are kept.

A histogram of 1,120 buckets takes 9 kB, and an observation with call paths has one for each; kept this way it is
some hundred bytes. Mining gets the observation back as it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .buckets import BUCKETS
from .call_path import CallPath
from .histogram import Counts
from .observation import Kind, Observation, PathHistogram
from .split import Split


@dataclass(frozen=True, slots=True, eq=False)
class Sparse:
    """The buckets of a histogram that hold calls."""

    buckets: NDArray[np.uint16]
    calls: NDArray[np.uint32] | NDArray[np.uint64]

    @property
    def counts(self) -> Counts:
        """The whole histogram."""
        counts = np.zeros(BUCKETS, dtype=np.uint64)
        counts[self.buckets] = self.calls
        return counts


def sparse(counts: Counts) -> Sparse:
    """Return the buckets that hold calls."""
    buckets = np.flatnonzero(counts)
    calls = counts[buckets]
    small = len(calls) == 0 or int(calls.max()) < 1 << 32
    return Sparse(buckets.astype(np.uint16), calls.astype(np.uint32) if small else calls)


@dataclass(frozen=True, slots=True, eq=False)
class SparseSplit:
    """A split in little memory; None for zeros, and for calls that were on CPU as long as they lasted."""

    waiting_ns: Sparse | None
    blocked_ns: Sparse | None
    on_cpu: Sparse | None

    def whole(self, counts: Counts) -> Split:
        """Return the split as it was, of calls with these durations."""
        zeros = np.zeros(BUCKETS, dtype=np.uint64)
        return Split(
            waiting_ns=self.waiting_ns.counts if self.waiting_ns else zeros,
            blocked_ns=self.blocked_ns.counts if self.blocked_ns else zeros,
            on_cpu=self.on_cpu.counts if self.on_cpu else counts,
        )


def sparse_split(split: Split | None, counts: Counts) -> SparseSplit | None:
    """Return what must be held of a split of calls with these durations."""
    if split is None:
        return None
    return SparseSplit(
        waiting_ns=sparse(split.waiting_ns) if split.waiting_ns.any() else None,
        blocked_ns=sparse(split.blocked_ns) if split.blocked_ns.any() else None,
        on_cpu=None if np.array_equal(split.on_cpu, counts) else sparse(split.on_cpu),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Kept:
    """An observation in little memory; the fields are those of Observation."""

    function: str
    lifetime: str
    kind: Kind
    start_ns: int
    end_ns: int
    calls: int
    timed: int
    watched_ns: int
    inner: int
    censored: int
    bias_ns: float
    uncertainty_ns: float
    histogram: Sparse
    paths: tuple[tuple[CallPath, Sparse, SparseSplit | None], ...]
    split: SparseSplit | None = None

    @property
    def counts(self) -> Counts:
        """Calls per bucket of duration."""
        return self.histogram.counts

    def whole_split(self) -> Split | None:
        """Return what its calls did of their time, None if this is not known."""
        return None if self.split is None else self.split.whole(self.counts)

    def whole(self) -> Observation:
        """Return the observation as it was."""
        return Observation(
            function=self.function,
            lifetime=self.lifetime,
            kind=self.kind,
            start_ns=self.start_ns,
            end_ns=self.end_ns,
            counts=self.counts,
            calls=self.calls,
            watched_ns=self.watched_ns,
            inner=self.inner,
            censored=self.censored,
            bias_ns=self.bias_ns,
            uncertainty_ns=self.uncertainty_ns,
            paths=tuple(
                PathHistogram(path=path, counts=own.counts, split=split.whole(own.counts) if split else None)
                for path, own, split in self.paths
            ),
            split=self.whole_split(),
        )


def kept(seen: Observation, known: Mapping[CallPath, CallPath] | None = None) -> Kept:
    """Return an observation to be held; equal call paths that are ``known`` are shared."""
    same = known or {}
    return Kept(
        function=seen.function,
        lifetime=seen.lifetime,
        kind=seen.kind,
        start_ns=seen.start_ns,
        end_ns=seen.end_ns,
        calls=seen.calls,
        timed=seen.timed,
        watched_ns=seen.watched_ns,
        inner=seen.inner,
        censored=seen.censored,
        bias_ns=seen.bias_ns,
        uncertainty_ns=seen.uncertainty_ns,
        histogram=sparse(seen.counts),
        paths=tuple(
            (same.get(each.path, each.path), sparse(each.counts), sparse_split(each.split, each.counts))
            for each in seen.paths
        ),
        split=sparse_split(seen.split, seen.counts),
    )
