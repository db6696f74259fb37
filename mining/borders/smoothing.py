"""Smoothing of a CDF by the resolution of its durations, so that classes closer than that are not distinguished."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from specmine.model.buckets import BUCKETS

from .valleys import EDGES

_WIDTH = np.diff(EDGES)


def smoothed_cdf(cdf: NDArray[np.float64], resolution_ns: float, last: int) -> NDArray[np.float64]:
    """Return the CDF after a triangular error of +-resolution was added to each duration.

    Parameters
    ----------
    cdf : ndarray of float64, shape (BUCKETS + 1,)
        At the bucket edges, linear between them.
    resolution_ns : float
        More than 0.
    last : int
        Last edge that is smoothed; above it the CDF stays as it is.

    Returns
    -------
    ndarray of float64, shape (BUCKETS + 1,)
    """
    box = _box(resolution_ns, last)
    return _boxed(_boxed(cdf, box), box)


@dataclass(frozen=True, slots=True, eq=False)
class _Box:
    """Begins and ends of the intervals [edge - width/2, edge + width/2], the same for every histogram."""

    width_ns: float
    last: int
    known: int
    """Last edge that an interval reaches."""
    index: NDArray[np.intp]
    """Buckets of their begins, then of their ends."""
    offset: NDArray[np.float64]
    """Distance from the lower edge of these buckets, ns."""
    inside: NDArray[np.bool_]
    beyond: NDArray[np.float64]
    """Distance above the known edges, where the CDF is 1, ns."""


@lru_cache(maxsize=32)
def _box(width_ns: float, last: int) -> _Box:
    half = 0.5 * width_ns
    known = min(int(np.searchsorted(EDGES, EDGES[last] + half)) + 1, BUCKETS)
    at = np.concatenate((EDGES[: last + 1] - half, EDGES[: last + 1] + half))
    index = np.clip(np.searchsorted(EDGES[: known + 1], at, side="right") - 1, 0, known - 1)
    return _Box(
        width_ns=width_ns,
        last=last,
        known=known,
        index=index,
        offset=np.minimum(at, EDGES[known]) - EDGES[index],
        inside=at > EDGES[0],
        beyond=np.maximum(at - EDGES[known], 0.0),
    )


def _boxed(cdf: NDArray[np.float64], box: _Box) -> NDArray[np.float64]:
    """Return the mean of a CDF over these intervals."""
    values = cdf[: box.known + 1]
    rise = np.diff(values)
    integral = np.concatenate(([0.0], np.cumsum((values[:-1] + 0.5 * rise) * _WIDTH[: box.known])))
    index, offset = box.index, box.offset
    to = integral[index] + offset * (values[index] + (0.5 * rise / _WIDTH[: box.known])[index] * offset) + box.beyond
    to *= box.inside
    count = box.last + 1
    mean = np.minimum(np.maximum((to[count:] - to[:count]) / box.width_ns, 0.0), 1.0)
    return np.concatenate((mean, np.maximum(cdf[count:], mean[-1])))
