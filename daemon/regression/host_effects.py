"""What the host explains of a change between two builds: durations and environments of each, kept small."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from specmine.mining.regression.host_effect import host_evidence
from specmine.model.buckets import BUCKET_MIDDLES, bucket_of
from specmine.model.histogram import EMPTY, Histogram
from specmine.model.host_environment import Environment, common, environment_from

Build = tuple[tuple[str, str], str]
"""Function and module, and the build."""
MOST = 4_000
"""Builds of functions held at most, some 1 kB each; the oldest go first."""


class ChangeHosts:
    """Remembers what the calls of each build took, on which kind of host, and judges pairs of builds by it."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._calls: dict[Build, Histogram] = {}
        self._vectors: dict[Build, Environment] = {}
        self._judged: dict[tuple[Build, Build], tuple[tuple[int, ...], dict[str, Any]]] = {}

    def add(self, build: Build, histogram: Histogram, bias_ns: float, environment: Mapping[str, Any] | None) -> None:
        """Add a lifetime: its calls by duration, what probes added to each, and what was known of the host then."""
        self._calls[build] = self._calls.pop(build, EMPTY) + _without_bias(histogram, bias_ns)
        if environment:
            before, now = self._vectors.get(build), environment_from(environment)
            # of what differed between lifetimes of a build nothing is known
            self._vectors[build] = (common([before, now]) or now) if before else now
        for old in list(self._calls)[: max(0, len(self._calls) - MOST)]:
            del self._calls[old]
            self._vectors.pop(old, None)

    def explained(self, base: Build, new: Build, lifetimes: tuple[int, ...]) -> dict[str, Any]:
        """Return what of the change the hosts explain, as ``specmine compare`` tells it in ``host``.

        ``lifetimes`` are those counted on both sides: while they stay the same, so does the answer.
        """
        known = self._judged.get((base, new))
        if known is None or known[0] != lifetimes:
            vectors = self._vectors.get(base), self._vectors.get(new)
            known = (
                lifetimes,
                host_evidence(self._calls.get(base, EMPTY), self._calls.get(new, EMPTY), vectors).document(),
            )
            for old in list(self._judged)[: max(0, len(self._judged) - MOST)]:
                del self._judged[old]
            self._judged[base, new] = known
        return known[1]


def _without_bias(histogram: Histogram, bias_ns: float) -> Histogram:
    middles = BUCKET_MIDDLES[histogram.buckets] - bias_ns
    return Histogram.from_pairs(bucket_of(np.maximum(middles, 0.0).round()), histogram.counts)
