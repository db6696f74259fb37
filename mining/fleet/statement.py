"""A statement that hosts of a fleet inherit: the shape of a function's durations, mined from many hosts.

The shape is borders and expressions. Levels belong to a host, so the statement is moved to the host's own scale.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from specmine.mining.assertions.explanation import Explanation
from specmine.mining.borders.inference import Inference, at_resolution, borders_of
from specmine.mining.borders.stability import StableBorder
from specmine.mining.settings import MiningSettings
from specmine.model.buckets import BUCKET_EDGES, BUCKETS, SUB_BITS
from specmine.model.histogram import Histogram
from specmine.model.observation import Observation

FARTHEST_OCTAVES = 1.0
"""Hosts whose medians lie a factor of two apart share no borders."""
REACH = 0.05
"""Borders between which fewer calls of a window lie are one."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InheritedStatement:
    """What the fleet states of one function."""

    function: str
    """Key of the function."""
    build_id: str
    """The build that it was learned from: a new build begins with the statement of the one before."""
    learned: Inference
    result: Explanation | None = None
    """How call paths explain the classes."""
    median_ns: float
    """Of the hosts' medians, corrected for the probes: the scale of the borders."""
    hosts: int
    """On which it was learned."""
    calls: int = 0


def unknown_borders(observation: Observation, learned: Inference, settings: MiningSettings) -> int:
    """Return how many borders of a window the statement does not have.

    Parameters
    ----------
    observation : Observation
        Of enough calls to be judged.
    learned : Inference
        On the scale of the window.
    settings : MiningSettings
    """
    histogram, total = observation.histogram, max(1, observation.timed)
    shift_ns = observation.bias_ns - learned.bias_ns
    known = [_below(histogram, edge_at(BUCKET_EDGES[edge] + shift_ns)) / total for edge in learned.edges]
    found = [_below(histogram, border.edge) / total
             for border in borders_of(observation, at_resolution(settings, [observation]))]  # fmt: skip
    return sum(all(abs(share - each) >= REACH for each in known) for share in found)


def octaves(statement: InheritedStatement, median_ns: float) -> float | None:
    """Return how far a host's median lies from that of the fleet, log2; None if too far to share anything."""
    if median_ns <= 0 or statement.median_ns <= 0:
        return None
    found = math.log2(median_ns / statement.median_ns)
    return found if abs(found) <= FARTHEST_OCTAVES else None


def rescaled(statement: InheritedStatement, by: float) -> InheritedStatement:
    """Return a statement on the scale of a host whose durations are ``2**by`` times those of the fleet."""
    if round(by * (1 << SUB_BITS)) == 0:
        return statement
    factor, learned, result = 2.0**by, statement.learned, statement.result
    borders: list[StableBorder] = []
    for border in learned.borders:
        duration_ns = (border.duration_ns - learned.bias_ns) * factor + learned.bias_ns
        regions = tuple((low * factor, high * factor) for low, high in border.regions)
        edge = max(edge_at(duration_ns), borders[-1].edge + 1 if borders else 1)
        borders.append(replace(border, edge=edge, duration_ns=duration_ns, regions=regions))
    edges: list[int] = []
    for edge in result.borders if result is not None else ():
        moved = (BUCKET_EDGES[edge] - result.bias_ns) * factor + result.bias_ns if result is not None else 0.0
        edges.append(max(edge_at(moved), edges[-1] + 1 if edges else 1))
    return replace(
        statement,
        learned=replace(learned, borders=tuple(borders)),
        result=replace(result, borders=tuple(edges)) if result is not None else None,
        median_ns=statement.median_ns * factor,
    )


def edge_at(duration_ns: float) -> int:
    """Return the bucket that begins nearest to a duration."""
    return int(np.clip(np.abs(np.log(BUCKET_EDGES[1:-1] / max(duration_ns, 1.0))).argmin() + 1, 1, BUCKETS - 1))


def _below(histogram: Histogram, edge: int) -> int:
    return int(histogram.class_counts([edge])[0])
