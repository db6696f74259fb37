"""Windows: what levels are estimated from. One histogram each, of all calls, of a class, or of some call paths."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from specmine.model.buckets import BUCKETS, shifted_edges
from specmine.model.histogram import Histogram
from specmine.model.observation import Observation

FLOOR_NS = 1.0
"""Least duration after the probes' bias is subtracted."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Window:
    """Durations of calls over a time window of one lifetime."""

    histogram: Histogram
    """As measured: the probes' bias is in them."""
    start_ns: int
    end_ns: int
    lifetime: str = ""
    bias_ns: float = 0.0
    uncertainty_ns: float = 0.0
    """Of the bias."""


def windows_of(observations: Iterable[Observation]) -> tuple[Window, ...]:
    """Return a window of all calls of each observation."""
    return tuple(window_of(one, one.histogram) for one in observations)


def windows_of_class(
    observations: Iterable[Observation], edges: Sequence[int], index: int, bias_ns: float
) -> tuple[Window, ...]:
    """Return a window of the calls of one class of each observation that has some.

    Parameters
    ----------
    observations : iterable of Observation
    edges : sequence of int
        First bucket of each class but the lowest, at the bias ``bias_ns``.
    index : int
        Number of the class, from 0.
    bias_ns : float
        What the probes added where the edges were learned; for other observations the edges move.
    """
    found = []
    for one in observations:
        found.append(window_of(one, class_of(one.histogram, shifted_edges(tuple(edges), bias_ns, one.bias_ns), index)))
    return tuple(window for window in found if window.histogram.total)


def class_of(histogram: Histogram, edges: Sequence[int], index: int) -> Histogram:
    """Return the calls of a class; ``edges`` are the first buckets of all classes but the lowest."""
    ends = (0, *edges, BUCKETS)
    return histogram.part(ends[index], ends[index + 1])


def window_of(observation: Observation, histogram: Histogram) -> Window:
    """Return the window of some calls of an observation."""
    return Window(
        histogram=histogram,
        start_ns=observation.start_ns,
        end_ns=observation.end_ns,
        lifetime=observation.lifetime,
        bias_ns=observation.bias_ns,
        uncertainty_ns=observation.uncertainty_ns,
    )
