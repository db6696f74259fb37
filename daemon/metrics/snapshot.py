"""What the metrics show of each function: a snapshot of what the controller knows. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from specmine.daemon.config.settings import SECOND
from specmine.daemon.controller.allocation.utility import utility
from specmine.daemon.controller.function import FunctionState
from specmine.daemon.controller.history import Totals
from specmine.daemon.controller.phase import FINISHED, State
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.documents.data import data_of
from specmine.daemon.documents.detectable import detectable_factor
from specmine.daemon.documents.detectable import keep as keep_detectable
from specmine.daemon.documents.levels import keep as keep_levels
from specmine.daemon.documents.levels import levels_of
from specmine.daemon.documents.programs import programs_of
from specmine.daemon.documents.timestamps import utc_offset_ns
from specmine.daemon.documents.verdicts import verdict_of_behaviour, verdict_on_cpu
from specmine.daemon.documents.violation_context import context_of
from specmine.daemon.documents.violations import Context, subject_of
from specmine.model.buckets import BUCKET_EDGES
from specmine.model.histogram import Histogram
from specmine.model.level import Level

from .observed_level import keep as keep_observed
from .observed_level import observed_levels
from .violation_snapshot import CLOSED_NS, ShownViolation

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedBehaviour:
    """One behaviour of an assertion."""

    id: str
    """12 hex digits, of (function, build, expression)."""
    expression: str
    class_calls: tuple[int, ...]
    """Calls of each class that the assertion rests on."""
    verdict: str = "unknown"
    """holds, violated, unknown."""
    expected: Level = field(default_factory=Level)
    """The level that is asserted."""
    observed: Level = field(default_factory=Level)
    """The level of the newest windows."""

    @property
    def shares(self) -> tuple[float, ...]:
        """Share of each class."""
        total = max(1, sum(self.class_calls))
        return tuple(calls / total for calls in self.class_calls)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FunctionSnapshot:
    """One function now."""

    key: str
    name: str
    module: str
    build_id: str
    programs: tuple[str, ...] = ()
    """Names of the programs that it belongs to."""
    code: str = ""
    """Digest of its machine code."""
    running: bool = True
    """Whether a lifetime of its build, or in which it was observed, goes on."""
    seen_ns: int = 0
    """End of its newest window, CLOCK_MONOTONIC."""
    state: str
    utility: float
    calls: int
    watched_ns: int
    cost_ns: float
    lost_ns: float
    """Estimated time that calls took more than asserted."""
    totals: Totals
    histogram: Histogram
    bias_ns: float
    borders: tuple[int, ...] = ()
    """First bucket of each class but the lowest."""
    behaviours: tuple[StatedBehaviour, ...] = ()
    checked_utc_ns: int | None = None
    on_cpu: str = ""
    """Verdict on what is asserted of its time on CPU; '' where nothing is."""
    violations: tuple[ShownViolation, ...] = ()
    """Those that are open, and those that have just closed."""
    suspected: bool = False
    """A change is suspected that no open violation is about."""
    detectable: float | None = None
    """The factor that would be found within a minute; None: not known."""
    class_calls: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """Calls so far by (behaviour, upper end of the class); ``ClassCounters`` adds them."""
    class_seconds: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """Time in these calls."""

    @property
    def program(self) -> str:
        """The label: the program's name, of several all with commas between."""
        return ",".join(self.programs)

    @property
    def is_violated(self) -> bool:
        """True while a violation is open."""
        return any(each.is_open for each in self.violations)

    @property
    def parts_seconds(self) -> Mapping[str, float]:
        """Running, waiting and blocked time of the timed calls; empty where calls are not split."""
        totals = self.totals
        if not totals.running_ns:
            return {}
        parts = {"running": totals.running_ns, "waiting": totals.waiting_ns, "blocked": totals.blocked_ns}
        return {part: time_ns / 1e9 for part, time_ns in parts.items()}

    @property
    def uppers(self) -> tuple[str, ...]:
        """Upper end of each class, seconds as text; ``+Inf`` for the last."""
        stated = (max(0.0, float(BUCKET_EDGES[edge]) - self.bias_ns) / SECOND for edge in self.borders)
        return (*(f"{seconds:.6g}" for seconds in stated), "+Inf")


def snapshots(state: ControllerState) -> list[FunctionSnapshot]:
    """Return a snapshot of each function that was ever watched, the most important first.

    Functions with an open violation come first, then those with an assertion, then the others, each by calls.
    """
    for keep in (keep_levels, keep_detectable, keep_observed):
        keep(state.functions.keys())
    offset, context = utc_offset_ns(state), context_of(state)
    watched = [
        _snapshot(function, state, offset, context)
        for function in state.functions.values()
        if function.history.totals.observations or function.violations.open or function.state is not State.CANDIDATE
    ]
    return sorted(
        watched, key=lambda each: (not each.is_violated, not each.behaviours, -each.calls, each.name, each.key)
    )


def behaviour_id(function: str, build_id: str, expression: str) -> str:
    """Return the 12 hex digits that name a behaviour."""
    return hashlib.sha256("\0".join((function, build_id, expression)).encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _id(function: FunctionState, expression: str) -> str:
    named = function.function
    return behaviour_id(f"{named.name} ({named.module})", named.build_id, expression)


def _snapshot(function: FunctionState, state: ControllerState, utc_offset: int, context: Context) -> FunctionSnapshot:
    named, counts, check_ns = function.function, function.probe.counts, function.verification.checked_ns
    borders, bias_ns, stated = _stated(function, state.now_ns)
    on_cpu = verdict_on_cpu(function)
    return FunctionSnapshot(
        key=named.key,
        name=named.name,
        module=named.module,
        build_id=named.build_id,
        programs=programs_of(function, state),
        code=named.code,
        running=_is_running(function, state),
        seen_ns=max((one.end_ns for one in function.history.longest[-1:]), default=0),
        state=function.state.value,
        utility=utility(function, state.now_ns, state.running),
        calls=counts.calls,
        watched_ns=counts.watched_ns,
        cost_ns=counts.cost_ns,
        lost_ns=function.violations.lost.total_ns,
        totals=function.history.totals,
        histogram=function.history.histogram,
        bias_ns=bias_ns,
        borders=borders,
        behaviours=stated,
        checked_utc_ns=None if check_ns is None else check_ns + utc_offset,
        on_cpu=on_cpu.value if on_cpu is not None else "",
        violations=_violations(function, context, state.now_ns),
        suspected=function.violations.suspected,
        detectable=detectable_factor(function, state.now_ns, state.detection.threshold),
    )


def _violations(function: FunctionState, context: Context, now_ns: int) -> tuple[ShownViolation, ...]:
    """Return the violations that are open or have just closed."""
    return tuple(
        ShownViolation(
            violation=each,
            subject=subject_of(each, context),
            behaviour=_id(function, each.expression),
        )
        for each in function.violations.all
        if each.closed_ns is None or now_ns - each.closed_ns <= CLOSED_NS
    )


def _is_running(function: FunctionState, state: ControllerState) -> bool:
    seen = {name for name, _ in function.history.lifetimes.moments}
    return any(each.build_id == function.function.build_id or each.id in seen for each in state.running)


def _stated(function: FunctionState, now_ns: int) -> tuple[tuple[int, ...], float, tuple[StatedBehaviour, ...]]:
    """Return borders, bias and behaviours; none before the function is finished."""
    learned, result = function.inference.learned, function.explanation.result
    if function.state not in FINISHED or learned is None:
        return (), 0.0, ()
    yardstick = function.violations.yardstick
    observed = observed_levels(function, now_ns)
    levels = levels_of(function, data_of(function)).verdicts
    if result is not None and result.behaviours:
        rows = [(each.expression, each.class_calls) for each in result.behaviours]
        borders, bias_ns = result.borders, result.bias_ns
    else:
        borders, bias_ns = learned.edges, learned.bias_ns
        rows = [("true", tuple(function.history.histogram.class_counts(borders).tolist()))]
    stated = tuple(
        StatedBehaviour(
            id=_id(function, expression),
            expression=expression,
            class_calls=class_calls,
            verdict=verdict_of_behaviour(function, expression, levels.get(expression)).value,
            expected=yardstick.levels.get(expression, Level()) if yardstick else Level(),
            observed=observed.get(expression, Level()),
        )
        for expression, class_calls in rows
    )
    return borders, bias_ns, stated
