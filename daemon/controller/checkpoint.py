"""What a restarted daemon needs to go on where the last one was: a JSON record for each function, and back.

Observations are not in the record: the store keeps them in rows of their own. Times belong to the clock of one
boot, so the record holds lengths of time only. Those of violations are UTC.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from specmine.mining.assertions.checks import Check, Verification
from specmine.mining.assertions.explanation import Explanation
from specmine.mining.borders.inference import Inference
from specmine.mining.off_cpu.on_cpu import OnCpu
from specmine.mining.regression.lifetime_utility import Lifetimes
from specmine.mining.settings import MiningSettings
from specmine.model.function import Function, Reason
from specmine.model.histogram import EMPTY, Histogram
from specmine.model.json_codec import decode, encode
from specmine.model.observation import Kind, Observation

from .call_counts import CallCounts, ProbeState
from .function import ExplanationState, FunctionState, Identity
from .history import RETAINED, History, Summary, Totals, joined
from .inference import InferenceState, Inherited
from .phase import FINISHED, Phase, State
from .sampling.profile import Profile
from .violations.function_violations import FunctionViolations


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Record:
    """The part of a function's state that outlives the daemon."""

    state: State
    reason: Reason | None = None
    hinted: bool = False
    climbed: str = ""
    descended: str = ""
    inherited: Inherited | None = None
    programs: tuple[str, ...] = ()
    profile: Profile = field(default_factory=Profile)
    rate: float | None = None
    totals: Mapping[str, Any] = field(default_factory=dict)
    """``CallCounts`` and ``Totals`` as one object."""
    span_ns: int = 0
    histogram: Histogram = EMPTY
    lifetimes: Lifetimes = field(default_factory=Lifetimes)
    tried: int = 0
    learned: Inference | None = None
    result: Explanation | None = None
    on_cpu: OnCpu | None = None
    explained_with: int = 0
    checks: tuple[Check, ...] = ()
    violations: int = 0
    changes: FunctionViolations = field(default_factory=FunctionViolations)
    """Times in UTC."""


def function_record(function: FunctionState, now_ns: int, utc_offset_ns: int = 0) -> dict[str, Any]:
    """Return what to store of a function, as JSON values; ``utc_offset_ns`` added to its times gives UTC."""
    probe, history, inference = function.probe, function.history, function.inference
    on_cpu = inference.on_cpu
    record = Record(
        state=function.state,
        reason=function.reason,
        hinted=function.identity.hinted,
        climbed=function.identity.climbed,
        descended=function.identity.descended,
        inherited=inference.inherited,
        programs=function.identity.programs,
        profile=function.profile,
        rate=probe.counted_rate,
        totals=encode(probe.counts) | encode(history.totals),
        span_ns=probe.span_ns(now_ns),
        histogram=history.histogram,
        lifetimes=history.lifetimes,
        tried=history.tried,
        learned=inference.learned,
        result=function.explanation.result,
        on_cpu=replace(on_cpu, found=()) if on_cpu else None,  # of observations that are not stored whole
        explained_with=function.explanation.observations,
        checks=function.verification.checks,
        violations=function.verification.violations,
        changes=function.violations.shifted(utc_offset_ns),
    )
    encoded: dict[str, Any] = encode(record)
    return encoded


def restored(
    functions: Iterable[Function],
    records: Mapping[str, Mapping[str, Any]],
    observations: Iterable[Observation],
    now_ns: int,
    mining: MiningSettings,
    utc_offset_ns: int = 0,
) -> dict[str, FunctionState]:
    """Return the functions as the last daemon left them.

    Parameters
    ----------
    functions : iterable of Function
    records : mapping
        Function key to ``function_record``; a function whose record no longer fits starts anew.
    observations : iterable of Observation
        The newest of each function and kind, oldest first, times on this boot's clock.
    now_ns : int
    mining : MiningSettings
    utc_offset_ns : int
        What to add to this boot's clock to get UTC.
    """
    retained: dict[tuple[str, Kind], list[Observation]] = {}
    for observation in observations:
        retained.setdefault((observation.function, observation.kind), []).append(observation)
    states = {}
    for function in functions:
        timing, paths = (
            joined(retained.get((function.key, kind), ()), mining.minimum_calls)[-RETAINED[kind] * mining.recent :]
            for kind in (Kind.TIME, Kind.PATH)
        )
        try:
            record = decode(Record, records[function.key])
            state = _state(function, record, now_ns, timing=timing, paths=paths)
            states[function.key] = replace(state, violations=record.changes.shifted(-utc_offset_ns))
        except (KeyError, ValueError):
            continue  # without a record, or with one of another version
    return states


def _state(
    function: Function,
    record: Record,
    now_ns: int,
    *,
    timing: tuple[Observation, ...],
    paths: tuple[Observation, ...],
) -> FunctionState:
    # probes are off now and refusals belong to processes that may be gone, so both are found out again
    state = record.state
    if state in (State.TIMING, State.REFUSED, State.EXCLUDED):
        state = State.CANDIDATE
    if state in FINISHED and state is not State.SINGLE and record.learned is None:
        state = State.CANDIDATE
    if state is State.EXPLAINING:
        paths = tuple(observation for observation in paths if observation.timed)
    counts: CallCounts = decode(CallCounts, record.totals)
    return FunctionState(
        identity=Identity(
            function=function,
            hinted=record.hinted,
            climbed=record.climbed,
            descended=record.descended,
            programs=record.programs,
        ),
        phase=Phase(state=state, reason=record.reason, since_ns=now_ns),
        profile=record.profile,
        probe=ProbeState(
            rate=record.rate,
            counts=replace(counts, gaps=counts.gaps or counts.watched_ns > 0),
            earlier_ns=record.span_ns,
        ),
        history=History(
            timing=timing,
            paths=paths,
            histogram=record.histogram,
            summary=Summary.of(record.histogram),
            lifetimes=record.lifetimes,
            tried=record.tried,
            totals=decode(Totals, record.totals),
        ),
        inference=InferenceState(
            chain=record.learned,
            kind=Kind.PATH if record.result is not None else Kind.TIME,
            learned=record.learned,
            inherited=replace(record.inherited, since_ns=now_ns) if record.inherited is not None else None,
            on_cpu=record.on_cpu,
        ),
        explanation=ExplanationState(result=record.result, observations=record.explained_with),
        verification=Verification(
            checks=record.checks,
            checked_ns=now_ns if state in FINISHED else None,
            violations=record.violations,
        ),
    )
