"""Calls and time of each function by behaviour and class, as counters that only grow. Pure.

What the controller knows is a histogram of all timed calls and a number of counted ones. Between two readings
the new durations give the split over classes; the assertion's own proportions give the split of a class over
behaviours; both are laid over the calls counted. So the series add up to the calls counted while watched.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from specmine.daemon.config.settings import SECOND
from specmine.daemon.controller.function import FunctionState
from specmine.daemon.controller.phase import FINISHED, State
from specmine.daemon.controller.scheduler import utility
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.documents.timestamps import utc_offset_ns
from specmine.model.buckets import BUCKET_EDGES, BUCKET_MIDDLES
from specmine.model.histogram import Counts

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """One behaviour of an assertion."""

    id: str
    """12 hex digits, of (function, build, expression)."""
    expression: str
    class_calls: tuple[int, ...]
    """Calls of each class that the assertion rests on."""
    verdict: str = "unknown"
    """holds, violated, unknown."""

    @property
    def shares(self) -> tuple[float, ...]:
        """Share of each class."""
        total = max(1, sum(self.class_calls))
        return tuple(calls / total for calls in self.class_calls)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reading:
    """What is known of one function now."""

    key: str
    name: str
    module: str
    build_id: str
    state: str
    utility: float
    calls: int
    watched_ns: int
    timed: int
    cost_ns: float
    histogram: Counts
    bias_ns: float
    borders: tuple[int, ...] = ()
    """First bucket of each class but the lowest."""
    behaviours: tuple[Stated, ...] = ()
    checked_utc_ns: int | None = None
    split_ns: tuple[tuple[str, float], ...] = ()
    """Running, waiting and blocked time of the timed calls; empty where calls are not split."""
    on_cpu: str = ""
    """Verdict on what is asserted of its time on CPU; '' where nothing is."""

    @property
    def uppers(self) -> tuple[str, ...]:
        """Upper end of each class, seconds as text; ``+Inf`` for the last."""
        stated = (max(0.0, float(BUCKET_EDGES[edge]) - self.bias_ns) / SECOND for edge in self.borders)
        return (*(f"{seconds:.6g}" for seconds in stated), "+Inf")


def readings(state: ControllerState) -> list[Reading]:
    """Return a reading of each function that was ever watched, the most important first.

    Functions with an assertion come first, then the others, each by calls.
    """
    offset = utc_offset_ns(state)
    found = [
        _reading(function, state, offset)
        for function in state.functions.values()
        if function.history.totals.observations or function.state is not State.CANDIDATE
    ]
    return sorted(found, key=lambda each: (not each.behaviours, -each.calls, each.name, each.key))


def behaviour_id(function: str, build_id: str, expression: str) -> str:
    """Return the 12 hex digits that name a behaviour."""
    return hashlib.sha256("\0".join((function, build_id, expression)).encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _reading(function: FunctionState, state: ControllerState, utc_offset: int) -> Reading:
    named, counts, check_ns = function.function, function.probe.counts, function.verification.checked_ns
    borders, bias_ns, stated = _stated(function)
    on_cpu = function.inference.on_cpu
    return Reading(
        key=named.key,
        name=named.name,
        module=named.module,
        build_id=named.build_id,
        state=function.state.value,
        utility=utility(function, state.now_ns, state.running),
        calls=counts.calls,
        watched_ns=counts.watched_ns,
        timed=function.history.totals.timed,
        cost_ns=counts.cost_ns,
        histogram=function.history.histogram,
        bias_ns=bias_ns,
        borders=borders,
        behaviours=stated,
        checked_utc_ns=None if check_ns is None else check_ns + utc_offset,
        split_ns=_split(function),
        on_cpu=on_cpu.check.verdict if on_cpu is not None and on_cpu.check is not None else "",
    )


def _split(function: FunctionState) -> tuple[tuple[str, float], ...]:
    totals = function.history.totals
    if not totals.running_ns:
        return ()
    return (("running", totals.running_ns), ("waiting", totals.waiting_ns), ("blocked", totals.blocked_ns))


def _stated(function: FunctionState) -> tuple[tuple[int, ...], float, tuple[Stated, ...]]:
    """Return borders, bias and behaviours; none before the function is finished."""
    learned, result, named = function.inference.learned, function.explanation.result, function.function
    if function.state not in FINISHED or learned is None:
        return (), 0.0, ()
    title = f"{named.name} ({named.module})"
    verdicts = {check.subject: check.verdict for check in function.verification.checks}
    if result is not None and result.behaviours:
        rows = [(each.expression, each.class_calls) for each in result.behaviours]
        borders, bias_ns = result.borders, result.bias_ns
    else:
        borders, bias_ns = learned.edges, learned.bias_ns
        counts = by_class(function.history.histogram.astype(np.float64), borders)
        rows = [("true", tuple(int(count) for count in counts))]
    stated = tuple(
        Stated(
            id=behaviour_id(title, named.build_id, expression),
            expression=expression,
            class_calls=class_calls,
            verdict=verdicts.get(expression, "unknown"),
        )
        for expression, class_calls in rows
    )
    return borders, bias_ns, stated


def by_class(values: Floats, borders: Sequence[int]) -> Floats:
    """Add up values per bucket, shape (BUCKETS,), to values per class, shape (len(borders) + 1,)."""
    return np.add.reduceat(values, [0, *borders])


@dataclass(slots=True)
class _Account:
    """The counters of one function."""

    calls_seen: int
    histogram: Counts
    split: Floats | None = None
    """Share of each class in the newest durations."""
    seconds: Floats | None = None
    """Mean duration in each class, seconds."""
    borders: tuple[int, ...] | None = None
    calls_by: dict[tuple[str, str], float] = field(default_factory=dict)
    seconds_by: dict[tuple[str, str], float] = field(default_factory=dict)


class Counters:
    """The counters of all functions. Reading them twice without news changes nothing."""

    def __init__(self) -> None:
        """Begin at nothing."""
        self._accounts: dict[str, _Account] = {}

    def advance(self, found: Sequence[Reading]) -> None:
        """Take up new readings; functions that are gone are forgotten."""
        self._accounts = {each.key: self._advanced(each) for each in found}

    def calls(self, key: str) -> Mapping[tuple[str, str], float]:
        """Return calls by (behaviour, upper end of the class) of a function."""
        return self._accounts[key].calls_by

    def seconds(self, key: str) -> Mapping[tuple[str, str], float]:
        """Return time in seconds by (behaviour, upper end of the class) of a function."""
        return self._accounts[key].seconds_by

    def _advanced(self, reading: Reading) -> _Account:
        account = self._accounts.get(reading.key)
        if account is None or reading.calls < account.calls_seen:
            account = _Account(calls_seen=0, histogram=np.zeros_like(reading.histogram))
        if not reading.behaviours:
            return account  # what comes before the first assertion is counted with it
        if account.borders != reading.borders:
            account.borders, account.split, account.seconds = reading.borders, None, None
        self._split(account, reading)
        _add(account, reading, max(0, reading.calls - account.calls_seen))
        account.calls_seen, account.histogram = reading.calls, reading.histogram
        return account

    @staticmethod
    def _split(account: _Account, reading: Reading) -> None:
        """Renew the split over classes and the mean durations, if there are new durations."""
        new = np.maximum(reading.histogram.astype(np.float64) - account.histogram.astype(np.float64), 0.0)
        for counts in (new, reading.histogram.astype(np.float64)):
            if counts.sum() > 0:
                break
        if counts is not new and account.split is not None:
            return
        durations = np.maximum(BUCKET_MIDDLES - reading.bias_ns, 0.0) / SECOND
        number = by_class(counts, reading.borders)
        total = number.sum()
        account.split = number / total if total else np.full(len(number), 1 / len(number))
        means = by_class(counts * durations, reading.borders) / np.maximum(number, 1.0)
        account.seconds = means


def _add(account: _Account, reading: Reading, calls: int) -> None:
    """Spread new calls over behaviours and classes."""
    assert account.split is not None and account.seconds is not None
    weights = np.array([each.class_calls for each in reading.behaviours], dtype=np.float64)
    of_class = weights.sum(axis=0)
    even = np.full_like(weights, 1 / len(reading.behaviours))
    parts = np.divide(weights, of_class, out=even, where=of_class > 0)
    calls_by, seconds_by = {}, {}
    for row, behaviour in enumerate(reading.behaviours):
        for column, upper in enumerate(reading.uppers):
            key = (behaviour.id, upper)
            more = calls * float(account.split[column] * parts[row, column])
            calls_by[key] = account.calls_by.get(key, 0.0) + more
            seconds_by[key] = account.seconds_by.get(key, 0.0) + more * float(account.seconds[column])
    account.calls_by, account.seconds_by = calls_by, seconds_by
