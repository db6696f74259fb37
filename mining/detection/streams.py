"""The state of the streams that the detector watches, as arrays."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(slots=True)
class Streams:
    """The state of streams; each array has one entry or row a stream. Owned by whoever calls ``step``."""

    baseline: Floats
    variance: Floats
    """Of a window about the baseline, sampling included."""
    lagged: Floats
    """Mean product of neighbouring residuals, bounded ..."""
    square: Floats
    """... and their mean square."""
    last: Floats
    """The residual that the next is compared with, bounded ..."""
    gap: Floats
    """... and the seconds since then."""
    interval: Floats
    """Usual seconds between windows."""
    seen: Floats
    """Windows that something was learned from."""
    place: Floats
    """The filter's estimate of the wander about the baseline ..."""
    doubt: Floats
    """... and its variance."""
    outlier: Floats
    """Probability that the last window was disturbed ..."""
    offset: Floats
    """... by how much ..."""
    begun: Floats
    """... with which probability by something that began with this window ..."""
    entry: Floats
    """... and had lasted for so many seconds ..."""
    age: Floats
    """... and for how many seconds if it is what disturbed the window before."""
    moved: Floats
    """Probability that it was not disturbed, and that the wander jumped."""
    disturbed: Floats
    """Share of disturbed windows."""
    far: Floats
    """Share of windows that are far off."""
    evidence: Floats
    """The CUSUM of each factor, shape (streams, factors)."""
    size: Floats
    """How large such a change is, by the windows since it began, in log units ..."""
    unsure: Floats
    """... and the variance of that."""
    absorbed: Floats
    """How much of the change the filter has taken into its estimate."""
    windows: Floats
    """Windows since the CUSUM was last 0."""
    total: Floats
    """Sum of their residuals ..."""
    lately: Floats
    """... and the mean of the newest."""
    since: Floats
    """When the first of them began, s."""

    def take(self, rows: NDArray[np.intp]) -> Streams:
        """Return some streams, copied."""
        return Streams(*(getattr(self, field.name)[rows] for field in fields(Streams)))

    def put(self, rows: NDArray[np.intp], other: Streams) -> None:
        """Replace some streams."""
        for field in fields(Streams):
            getattr(self, field.name)[rows] = getattr(other, field.name)
