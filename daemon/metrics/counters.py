"""Calls and time of each function by behaviour and class, as counters that only grow. Pure.

A snapshot has a histogram of all timed calls and a number of counted ones. The durations that are new since the last
snapshot give the split over classes. The assertion's own proportions give the split of a class over behaviours. Both
are applied to the calls counted. So the series add up to the calls counted while watched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from specmine.daemon.config.settings import SECOND
from specmine.model.buckets import BUCKET_MIDDLES
from specmine.model.histogram import EMPTY, Histogram

from .snapshot import FunctionSnapshot

Floats = NDArray[np.float64]


@dataclass(slots=True)
class _Account:
    """The counters of one function."""

    calls_seen: int
    histogram: Histogram
    split: Floats | None = None
    """Share of each class in the newest durations."""
    seconds: Floats | None = None
    """Mean duration in each class, seconds."""
    borders: tuple[int, ...] | None = None
    calls_by: dict[tuple[str, str], float] = field(default_factory=dict)
    seconds_by: dict[tuple[str, str], float] = field(default_factory=dict)


class ClassCounters:
    """The counters of all functions. FunctionSnapshot them twice without news changes nothing."""

    def __init__(self) -> None:
        """Begin at nothing."""
        self._accounts: dict[str, _Account] = {}

    def advance(self, functions: Sequence[FunctionSnapshot]) -> list[FunctionSnapshot]:
        """Take new snapshots and return them with their counters; functions that are gone are forgotten."""
        self._accounts = {function.key: self._advanced(function) for function in functions}
        return [_with_counters(function, self._accounts[function.key]) for function in functions]

    def _advanced(self, function: FunctionSnapshot) -> _Account:
        account = self._accounts.get(function.key)
        if account is None or function.calls < account.calls_seen:
            account = _Account(calls_seen=0, histogram=EMPTY)
        if not function.behaviours:
            return account  # what comes before the first assertion is counted with it
        if account.borders != function.borders:
            account.borders, account.split, account.seconds = function.borders, None, None
        self._split(account, function)
        _add(account, function, max(0, function.calls - account.calls_seen))
        account.calls_seen, account.histogram = function.calls, function.histogram
        return account

    @staticmethod
    def _split(account: _Account, function: FunctionSnapshot) -> None:
        """Renew the split over classes and the mean durations, if there are new durations."""
        new = function.histogram.without(account.histogram)
        if not new.total and account.split is not None:
            return
        histogram = new if new.total else function.histogram
        number = histogram.class_counts(function.borders).astype(np.float64)
        total = number.sum()
        account.split = number / total if total else np.full(len(number), 1 / len(number))
        durations = np.maximum(BUCKET_MIDDLES - function.bias_ns, 0.0) / SECOND
        seconds = np.add.reduceat(histogram.dense * durations, [0, *function.borders])
        account.seconds = seconds / np.maximum(number, 1.0)


def _add(account: _Account, function: FunctionSnapshot, calls: int) -> None:
    """Spread new calls over behaviours and classes."""
    assert account.split is not None and account.seconds is not None
    weights = np.array([each.class_calls for each in function.behaviours], dtype=np.float64)
    of_class = weights.sum(axis=0)
    even = np.full_like(weights, 1 / len(function.behaviours))
    parts = np.divide(weights, of_class, out=even, where=of_class > 0)
    calls_by, seconds_by = {}, {}
    for row, behaviour in enumerate(function.behaviours):
        for column, upper in enumerate(function.uppers):
            key = (behaviour.id, upper)
            more = calls * float(account.split[column] * parts[row, column])
            calls_by[key] = account.calls_by.get(key, 0.0) + more
            seconds_by[key] = account.seconds_by.get(key, 0.0) + more * float(account.seconds[column])
    account.calls_by, account.seconds_by = calls_by, seconds_by


def _with_counters(function: FunctionSnapshot, account: _Account) -> FunctionSnapshot:
    return replace(function, class_calls=account.calls_by, class_seconds=account.seconds_by)
