"""What a restarted daemon needs to go on where the last one was: a JSON record for each function, and back.

Observations are not in the record: the store keeps them in rows of their own. Times are of the clock of one
boot, so the record holds lengths of time only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from specmine.mining.assertions.explanation import JobResult
from specmine.mining.borders.inference import Check, Conclusion
from specmine.mining.off_cpu.on_cpu import OnCpu
from specmine.mining.regression.lifetime_utility import Lifetimes
from specmine.mining.settings import MiningSettings
from specmine.model.function import Function, Reason
from specmine.model.histogram import Counts
from specmine.model.json_codec import decode, encode
from specmine.model.observation import Kind, Observation
from specmine.model.sparse import Kept, kept

from .function import EMPTY, Knowledge, Totals
from .history import HELD, spread_of
from .phase import FINISHED, State
from .profile import Where


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Record:
    """The part of the knowledge of a function that outlives the daemon."""

    state: State
    reason: Reason | None = None
    hinted: bool = False
    climbed: str = ""
    where: Where = field(default_factory=Where)
    rate: float | None = None
    totals: Totals = field(default_factory=Totals)
    span_ns: int = 0
    histogram: Counts = field(default_factory=lambda: EMPTY)
    lifetimes: Lifetimes = field(default_factory=Lifetimes)
    tried: int = 0
    learned: Conclusion | None = None
    result: JobResult | None = None
    on_cpu: OnCpu | None = None
    explained_with: int = 0
    checks: tuple[Check, ...] = ()
    violations: int = 0


def function_record(known: Knowledge, now_ns: int) -> dict[str, Any]:
    """Return what to store of a function, as JSON values."""
    span = known.span_ns + (now_ns - known.first_watch_ns if known.first_watch_ns is not None else 0)
    record = Record(
        state=known.state,
        reason=known.reason,
        hinted=known.hinted,
        climbed=known.climbed,
        where=known.where,
        rate=known.rate,
        totals=known.totals,
        span_ns=span,
        histogram=known.histogram,
        lifetimes=known.lifetimes,
        tried=known.tried,
        learned=known.learned,
        result=known.result,
        on_cpu=replace(known.on_cpu, found=()) if known.on_cpu else None,  # of observations that are not stored whole
        explained_with=known.explained_with,
        checks=known.checks,
        violations=known.violations,
    )
    encoded: dict[str, Any] = encode(record)
    return encoded


def restored(
    functions: Iterable[Function],
    records: Mapping[str, Mapping[str, Any]],
    observations: Iterable[Observation],
    now_ns: int,
    mining: MiningSettings,
) -> dict[str, Knowledge]:
    """Return the knowledge of the last daemon, by function.

    Parameters
    ----------
    functions : iterable of Function
    records : mapping
        Function key to ``function_record``; a function whose record no longer fits starts anew.
    observations : iterable of Observation
        The newest of each function and kind, oldest first, times on this boot's clock.
    now_ns : int
    mining : MiningSettings
    """
    recent = mining.recent
    held: dict[tuple[str, Kind], list[Observation]] = {}
    for each in observations:
        held.setdefault((each.function, each.kind), []).append(each)
    known = {}
    for function in functions:
        try:
            record = decode(Record, records[function.key]) if function.key in records else None
        except ValueError:
            record = None
        if record is None:
            continue
        timing = tuple(kept(each) for each in held.get((function.key, Kind.TIME), ())[-recent:])
        paths = tuple(kept(each) for each in held.get((function.key, Kind.PATH), ())[-HELD[Kind.PATH] * recent :])
        known[function.key] = _knowledge(function, record, now_ns, timing=timing, paths=paths)
    return known


def _knowledge(
    function: Function,
    record: Record,
    now_ns: int,
    *,
    timing: tuple[Kept, ...],
    paths: tuple[Kept, ...],
) -> Knowledge:
    # probes are off now and refusals belong to processes that may be gone, so both are found out again
    state = record.state
    if state in (State.TIMING, State.REFUSED, State.EXCLUDED):
        state = State.CANDIDATE
    if state in FINISHED and state is not State.SINGLE and record.learned is None:
        state = State.CANDIDATE
    if state is State.EXPLAINING:
        paths = tuple(each for each in paths if each.timed)
    return Knowledge(
        function=function,
        state=state,
        reason=record.reason,
        since_ns=now_ns,
        hinted=record.hinted,
        climbed=record.climbed,
        where=record.where,
        rate=record.rate,
        totals=replace(record.totals, gaps=record.totals.gaps or record.totals.watched_ns > 0),
        timing=timing,
        paths=paths,
        found=(
            (Kind.TIME, (None,) * len(timing)),
            (Kind.PATH, (None,) * len(paths)),
        ),
        histogram=record.histogram,
        spread_ns=spread_of(record.histogram),
        lifetimes=record.lifetimes,
        tried=record.tried,
        learned=record.learned,
        chain=record.learned,
        chain_kind=Kind.PATH if record.result is not None else Kind.TIME,
        result=record.result,
        on_cpu=record.on_cpu,
        explained_with=record.explained_with,
        checks=record.checks,
        violations=record.violations,
        checked_ns=now_ns if state in FINISHED else None,
        span_ns=record.span_ns,
    )
