"""The host's part in a change between two builds, from durations and environments of each, in little memory."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from specmine.mining.regression.host_effect import host_evidence
from specmine.model.buckets import BUCKET_MIDDLES, bucket_of
from specmine.model.histogram import EMPTY, Histogram
from specmine.model.host.environment import Environment, common, environment_from

Build = tuple[tuple[str, str], str]
"""Function and module, and the build."""
MOST = 4_000
"""Builds of functions held at most, some 1 kB each; the oldest go first."""


class HostEffects:
    """Holds the durations and the environment of each build, and returns the host's part in a change."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._calls: dict[Build, Histogram] = {}
        self._vectors: dict[Build, Environment] = {}
        self._evidence: dict[tuple[Build, Build], tuple[tuple[int, ...], dict[str, Any]]] = {}

    def add(self, build: Build, histogram: Histogram, bias_ns: float, environment: Mapping[str, Any] | None) -> None:
        """Add a lifetime: its durations, what probes added to each, and the environment of its host."""
        self._calls[build] = self._calls.pop(build, EMPTY) + _without_bias(histogram, bias_ns)
        if environment:
            before, now = self._vectors.get(build), environment_from(environment)
            # what differed between the lifetimes of a build counts as unknown
            self._vectors[build] = (common([before, now]) or now) if before else now
        for old in list(self._calls)[: max(0, len(self._calls) - MOST)]:
            del self._calls[old]
            self._vectors.pop(old, None)

    def keep(self, builds: Collection[Build]) -> None:
        """Forget all but these."""
        self._calls = {build: each for build, each in self._calls.items() if build in builds}
        self._vectors = {build: each for build, each in self._vectors.items() if build in builds}
        self._evidence = {pair: each for pair, each in self._evidence.items() if self._calls.keys() >= {*pair}}

    def explained(self, base: Build, new: Build, lifetimes: tuple[int, ...]) -> dict[str, Any]:
        """Return the part of the change that the hosts explain, as ``host`` of ``specmine compare``.

        ``lifetimes`` are those counted on both sides: while they stay the same, so does the result.
        """
        known = self._evidence.get((base, new))
        if known is None or known[0] != lifetimes:
            vectors = self._vectors.get(base), self._vectors.get(new)
            known = (
                lifetimes,
                host_evidence(self._calls.get(base, EMPTY), self._calls.get(new, EMPTY), vectors).document(),
            )
            for old in list(self._evidence)[: max(0, len(self._evidence) - MOST)]:
                del self._evidence[old]
            self._evidence[base, new] = known
        return known[1]


def _without_bias(histogram: Histogram, bias_ns: float) -> Histogram:
    middles = BUCKET_MIDDLES[histogram.buckets] - bias_ns
    return Histogram.from_pairs(bucket_of(np.maximum(middles, 0.0).round()), histogram.counts)
