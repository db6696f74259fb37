"""The state of a function's detector, as plain numbers that a checkpoint holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .alarm import Stream
from .changes import OF_CHANGES, STEPS
from .disturbances import DISTURBED, FAR
from .innovations import PRIOR_SPREAD, started
from .streams import Streams

FIRST_SECONDS = 10.0
"""Time between windows that is assumed at first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Excursion:
    """Evidence above 0 for one factor of change."""

    step: int
    """Index of the factor."""
    evidence: float
    size: float
    unsure: float
    absorbed: float
    windows: float
    total: float
    since: float
    lately: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamState:
    """What is known of one stream; the fields are those of ``streams.Streams``."""

    stream: Stream
    baseline: float
    variance: float
    lagged: float
    square: float
    last: float
    interval: float
    seen: float
    place: float
    doubt: float
    outlier: float
    disturbed: float
    gap: float = 0.0
    offset: float = 0.0
    begun: float = 1.0
    entry: float = 0.0
    age: float = 0.0
    moved: float = 0.0
    far: float = FAR * DISTURBED
    excursions: tuple[Excursion, ...] = ()
    ended_ns: int = 0
    """When its last window ended."""
    sampling: float = 0.0
    """Sampling variance of its last window."""
    opened: bool = False
    """True from an alarm until it is settled or adopted: the baseline stays."""
    changed_ns: int = 0
    """While it is open: when the change began, ..."""
    recent: float = 0.0
    """... the location over the newest windows, less the baseline, ..."""
    after: float = 0.0
    """... and how many windows that mean is of."""
    peak: float = 0.0
    """Largest evidence of the present excursion, to calibrate the threshold."""
    assumed: float = PRIOR_SPREAD
    """Spread that counts with its windows as if ``PRIOR_WINDOWS`` had shown it."""


_SCALARS = (
    "baseline", "variance", "lagged", "square", "last", "interval", "seen", "place", "doubt", "outlier", "disturbed",
    "gap", "offset", "begun", "entry", "age", "moved", "far",
)  # fmt: skip


def to_arrays(states: Sequence[StreamState]) -> Streams:
    """Return the states as arrays."""
    count = len(states)
    scalars = {name: np.array([getattr(one, name) for one in states], dtype=np.float64) for name in _SCALARS}
    rows = {name: np.zeros((count, len(STEPS))) for name in OF_CHANGES}
    for row, one in enumerate(states):
        for excursion in one.excursions:
            for name in OF_CHANGES:
                rows[name][row, excursion.step] = getattr(excursion, name)
    return Streams(**scalars, **rows)


def scalars_of(streams: Streams, row: int) -> dict[str, Any]:
    """Return the numbers of one stream."""
    return {name: float(getattr(streams, name)[row]) for name in _SCALARS}


def excursions_of(streams: Streams, row: int) -> tuple[Excursion, ...]:
    """Return the evidence above 0 of one stream."""
    return tuple(
        Excursion(step=int(index), **{name: float(getattr(streams, name)[row, index]) for name in OF_CHANGES})
        for index in np.flatnonzero(streams.evidence[row] > 0)
    )


def first_state(stream: Stream, place: float, sampling: float) -> StreamState:
    """Return the state of a stream before its first window, whose location is its baseline."""
    made = started(np.array([place]), np.array([PRIOR_SPREAD**2 + sampling]), np.array([FIRST_SECONDS]))
    return StreamState(stream=stream, **scalars_of(made, 0), sampling=sampling)
