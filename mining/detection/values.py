"""From an observation to the numbers that are watched: a location and its sampling variance for each stream."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specmine.mining.assertions.behaviour_windows import windows_of_formula
from specmine.mining.assertions.expression import Formula
from specmine.mining.levels.window import FLOOR_NS, class_of
from specmine.model.buckets import BUCKET_MIDDLES, shifted_edges
from specmine.model.call_path import CallPath
from specmine.model.histogram import Histogram
from specmine.model.observation import Observation
from specmine.model.violation import What

from .alarm import Stream

LEAST_CALLS = 30
"""Calls of a window, or of a part of it, that have a location."""
UPPER, UPPER_CALLS = 0.1, 210
"""Share of the slowest calls that have a stream of their own, in windows of so many calls: as many as most hold."""
MEAN_CALLS, MEAN_VARIANCE = 100, 0.05
"""The mean duration has one in windows of so many calls, and at most this sampling variance of its logarithm."""
TRIMMED = 0.01
"""Share of calls at either end that count as the nearest other one."""
ROUND = 0.005
"""Share that is added to both sides of a share, so that its logit is finite and hardly depends on single calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is watched of a function: the classes and behaviours of its assertion."""

    edges: tuple[int, ...] = ()
    """First bucket of each class but the lowest ..."""
    bias_ns: float = 0.0
    """... at this bias."""
    behaviours: tuple[tuple[str, Formula], ...] = ()
    """Expression and formula of each."""
    shared: frozenset[str] = frozenset()
    known: Collection[CallPath] = ()
    """Complete paths that were learned; empty: none were. What is farther out than ``CallPath.near`` may differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One stream's value of one window."""

    stream: Stream
    place: float
    """Mean log duration in ns for a level, the logit for a share."""
    variance: float
    """Of sampling, and of what the bias of durations is not known by."""


def values_of(observation: Observation, subject: Subject) -> tuple[Value, ...]:
    """Return the values of all streams that an observation tells something about."""
    found = _levels("true", observation.histogram, observation.bias_ns, subject, observation)
    if len(subject.behaviours) > 1 and (observation.paths or observation.told_inside):
        for expression, formula in subject.behaviours:
            for window in windows_of_formula((observation,), formula, subject.shared):
                found += _levels(expression, window.histogram, observation.bias_ns, subject, observation)
    if subject.known and observation.paths:
        complete = [part for part in observation.paths if part.path.complete]
        calls = sum(part.histogram.total for part in complete)
        known = {path.near for path in subject.known}
        unknown = sum(part.histogram.total for part in complete if part.path.near not in known)
        if calls >= LEAST_CALLS:
            found.append(_share(Stream(what=What.PATH, part="path"), unknown, calls))
    return tuple(found)


def share_of(place: float) -> float:
    """Return the share whose value in a stream is ``place``."""
    return min(1.0, max(0.0, (1 + 2 * ROUND) / (1 + math.exp(-place)) - ROUND))


def mean_log(histogram: Histogram, bias_ns: float, uncertainty_ns: float = 0.0) -> tuple[float, float]:
    """Return the winsorised mean log duration in ns less the bias, and its variance.

    The variance is that of sampling, and of what is not known of the bias. Durations within the uncertainty count as
    it: their logarithms would tell of nothing else.
    """
    logs, counts = _logs(histogram, bias_ns, uncertainty_ns)
    total = float(counts.sum())
    reached = np.cumsum(counts)
    low = logs[int(np.searchsorted(reached, TRIMMED * total))]
    high = logs[min(len(logs) - 1, int(np.searchsorted(reached, (1 - TRIMMED) * total)))]
    inside = np.clip(logs, low, high)
    mean = float(inside @ counts) / total
    sampling = float((inside - mean) ** 2 @ counts) / total / max(1.0, total - 1)
    return mean, sampling + _unknown(mean, uncertainty_ns)


def mean_log_of_upper(
    histogram: Histogram, bias_ns: float, uncertainty_ns: float = 0.0, *, share: float = UPPER
) -> tuple[float, float]:
    """Return the mean log duration of the slowest calls, and its variance.

    That of sampling is that of a conditional tail expectation: the calls beyond the quantile vary, and so does the
    quantile (Manistre and Hancock, *Variance of the CTE estimator*, North American Actuarial Journal 9, 2005).
    """
    logs, counts = _logs(histogram, bias_ns, uncertainty_ns)
    total = float(counts.sum())
    wanted = share * total
    above = np.cumsum(counts[::-1])[::-1]
    taken = np.clip(wanted - (above - counts), 0.0, counts)
    mean = float(logs @ taken) / wanted
    quantile = float(logs[np.flatnonzero(taken)[0]])
    spread = float((logs - mean) ** 2 @ taken) / wanted
    return mean, (spread + (1 - share) * (mean - quantile) ** 2) / wanted + _unknown(mean, uncertainty_ns)


def log_of_mean(histogram: Histogram, bias_ns: float, uncertainty_ns: float = 0.0) -> tuple[float, float]:
    """Return the logarithm of the mean duration in ns less the bias, and its variance.

    The latter is by the delta method (Casella and Berger, *Statistical Inference*, section 5.5.4).

    A few calls that are hundreds of times as slow move it, and nothing else. The variance is at most
    ``MEAN_VARIANCE``: one such call alone is a disturbance. As noise, it would teach the stream to expect more of them.
    """
    logs, counts = _logs(histogram, bias_ns, uncertainty_ns)
    durations, total = np.exp(logs), float(counts.sum())
    mean = float(durations @ counts) / total
    spread = float((durations - mean) ** 2 @ counts) / max(1.0, total - 1)
    sampling = min(MEAN_VARIANCE, spread / total / mean**2)
    return math.log(mean), sampling + _unknown(math.log(mean), uncertainty_ns)


def _unknown(mean: float, uncertainty_ns: float) -> float:
    """Return the variance of a mean log duration by the uncertainty of durations, which is two standard deviations."""
    return (0.5 * uncertainty_ns / math.exp(mean)) ** 2


def _levels(
    expression: str, histogram: Histogram, bias_ns: float, subject: Subject, observation: Observation
) -> list[Value]:
    calls = histogram.total
    if calls < LEAST_CALLS:
        return []
    unsure_ns = observation.uncertainty_ns
    found = [_level(expression, "all", mean_log(histogram, bias_ns, unsure_ns))]
    if calls >= MEAN_CALLS and expression == "true":
        found.append(_level(expression, "mean", log_of_mean(histogram, bias_ns, unsure_ns)))
    if calls >= UPPER_CALLS:
        found.append(_level(expression, "upper", mean_log_of_upper(histogram, bias_ns, unsure_ns)))
    if not subject.edges:
        return found
    edges = shifted_edges(subject.edges, subject.bias_ns, observation.bias_ns)
    numbers = histogram.class_counts(edges).tolist()
    for index, number in enumerate(numbers):
        if number >= LEAST_CALLS and expression == "true":
            place = mean_log(class_of(histogram, edges, index), bias_ns, unsure_ns)
            found.append(_level(expression, f"class {index}", place))
        if index or len(numbers) > 2:  # of two shares one says all
            stream = Stream(what=What.SHARE, part=f"share {index}", expression=expression)
            found.append(_share(stream, number, calls))
    return found


def _level(expression: str, part: str, found: tuple[float, float]) -> Value:
    return Value(stream=Stream(what=What.LEVEL, part=part, expression=expression), place=found[0], variance=found[1])


def _share(stream: Stream, number: int, calls: int) -> Value:
    share = number / calls
    rounded = (share + ROUND) / (1 + 2 * ROUND)
    exact = (number + 1) / (calls + 2)
    error = exact * (1 - exact) / calls / (rounded * (1 - rounded)) ** 2
    return Value(stream=stream, place=math.log(rounded / (1 - rounded)), variance=error)


def _logs(
    histogram: Histogram, bias_ns: float, uncertainty_ns: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the log durations of the buckets, ascending, and their calls."""
    durations = np.maximum(BUCKET_MIDDLES[histogram.buckets] - bias_ns, max(FLOOR_NS, uncertainty_ns))
    return np.log(durations), histogram.counts.astype(np.float64)
