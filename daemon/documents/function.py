"""One function in the specification: what was observed, what that cost, and what is stated."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any

from specmine.daemon.config.settings import SECOND
from specmine.daemon.controller.allocation.function_request import kind_for
from specmine.daemon.controller.allocation.request import price
from specmine.daemon.controller.allocation.utility import utility
from specmine.daemon.controller.call_counts import calls_interval, estimated_calls
from specmine.daemon.controller.function import FunctionState
from specmine.daemon.controller.hotness import Total, share
from specmine.daemon.controller.phase import FINISHED, State
from specmine.daemon.controller.problems.call_edges import callees_of
from specmine.daemon.controller.provisional import document_of
from specmine.daemon.controller.reasons import by_waiting, violated_off_cpu
from specmine.daemon.controller.state import ControllerState
from specmine.mining.assertions.checks import Check
from specmine.mining.off_cpu.host_causes import host_times
from specmine.mining.regression.host_effect import host_evidence
from specmine.model.call_path import Frame
from specmine.model.function import Reason
from specmine.model.host.environment import environment_from
from specmine.model.inside.waits import pooled_waits
from specmine.model.json_codec import encode
from specmine.model.verdict import Verdict

from .data import Data, data_of
from .inside import class_waits_facts, inside_facts, known_inside, spread_facts, waits_facts
from .levels import Levels, level_facts, levels_of, quantiles, span_of
from .programs import program_of
from .statements import statements
from .time_split import SplitCalls, class_facts, explained, on_cpu_facts, split_calls, time_facts
from .timestamps import date_of, dates_of, utc_offset_ns
from .verdicts import verdict_of, verdict_on_cpu
from .violation_context import context_of
from .violations import Context, violation_entry

_MOST_KNOWN = 4096
_Basis = tuple[object, ...]
_known: dict[tuple[str, bool], tuple[_Basis, _Basis, dict[str, Any]]] = {}
"""What is stated of a function, by its key and ``detail``, with what it follows from: a document is made every few
seconds, while most functions have a window each minute. ``keep`` forgets functions that are there no more. What is out
of date goes as soon as one of both is made anew, since it holds windows."""


def keep(functions: AbstractSet[str]) -> None:
    """Forget what is known of all functions but these, by key."""
    for place in [place for place in tuple(_known) if place[0] not in functions]:
        _known.pop(place, None)  # several threads ask


def description_of(
    function: FunctionState,
    state: ControllerState,
    total: Total,
    detail: bool,
    around: Context | None = None,
    levels: Levels | None = None,
    idle: float = 0.0,
) -> dict[str, Any]:
    """Return the JSON values of a function; ``detail`` adds all durations timed, ``idle`` is its share of idle waits.

    ``around`` are the names around violations, the same for all functions of a state. Without ``levels`` they are those
    of the windows that the state retains.
    """
    around = context_of(state) if around is None else around
    callees = _callees(function, state)
    basis: _Basis = (
        function.identity, function.phase, function.history, function.inference, function.explanation,
        function.verification, function.violations, function.waits, function.provisional, levels, state.environment,
        state.started,
    )  # fmt: skip
    marks = (utc_offset_ns(state), callees)
    known = _looked_up((function.key, detail), basis, marks)
    if known is None:
        _looked_up((function.key, not detail), basis, marks)
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        known = _stated(function, state, callees, detail, levels)
        _known[function.key, detail] = basis, marks, known
    named = {"function": function.function.name, "program": program_of(function, state) or None}
    return named | known | _current(function, state, total, around) | {"idle_share": idle}


def _looked_up(place: tuple[str, bool], basis: _Basis, marks: _Basis) -> dict[str, Any] | None:
    """Return what is known if it follows from the same objects; forget it if it does not."""
    known = _known.get(place)
    if known is None:
        return None
    if known[1] == marks and all(old is new for old, new in zip(known[0], basis, strict=True)):
        return known[2]
    _known.pop(place, None)  # several threads ask
    return None


def _callees(function: FunctionState, state: ControllerState) -> frozenset[Frame]:
    """Return the timed functions that samples found to be called, where it is known what is inside calls."""
    if not any(one.inside for one in (*function.history.timing, *function.history.paths)):
        return frozenset()
    called = callees_of(function.key, state.functions)
    return frozenset(each.function.frame for each in called if each.history.totals.timed)


def _current(function: FunctionState, state: ControllerState, total: Total, around: Context) -> dict[str, Any]:
    """Return the part of an entry that changes with each sample, each call and the time, and what is violated."""
    counts, prices = function.probe.counts, state.started.prices if state.started else None
    return {
        "calls": estimated_calls(function.probe, state.now_ns),
        "calls_interval": calls_interval(function.probe, state.now_ns),
        "calls_counted": counts.calls,
        "calls_exact": counts.calls > 0 and not counts.gaps,
        "watched_seconds": counts.watched_ns * 1e-9,
        "newest_window_age_seconds": _age_s(function, state),
        "rate_per_second": function.probe.counted_rate,
        "rate_is_least": function.probe.is_least,
        "utility": utility(function, state.now_ns, state.running),
        "time_share": share(function, total),
        "price_ns": price(prices, kind_for(function), function.function) if prices else None,
        "spent_seconds": counts.cost_ns * 1e-9,
        "violations": [violation_entry(one, around) for one in function.violations.all],
    }


def _age_s(function: FunctionState, state: ControllerState) -> float | None:
    """Return how long ago the newest window ended, in s; None while there is none."""
    newest = [each[-1].end_ns for each in (function.history.timing, function.history.paths) if each]
    return max(0.0, (state.now_ns - max(newest)) / SECOND) if newest else None


def _stated(
    function: FunctionState, state: ControllerState, callees: frozenset[Frame], detail: bool, levels: Levels | None
) -> dict[str, Any]:
    """Return the part of an entry that follows from the windows of a function and its state."""
    named, data = function.function, data_of(function)
    levels = levels or levels_of(function, data)
    verdict = verdict_of(function, levels.verdict)
    totals, retained = function.history.totals, function.history.longest
    bias = data.bias_ns if data else (retained[-1].bias_ns if retained else 0.0)
    entry: dict[str, Any] = {
        "module": named.module,
        "in_program": named.in_program,
        "build_id": named.build_id,
        "key": named.key,
        "offset": named.offset,
        "mangled": named.mangled,
        "aliases": list(named.aliases),
        "state": function.state.value,
        "reason": _reason(function.reason),
        "needed": function.reason.remedy if function.reason and function.reason.remedy else None,
        "since": date_of(state, function.phase.since_ns),
        "timed": totals.timed,
        "inner": totals.inner,
        "censored": totals.censored,
        "observations": totals.observations,
        "grade": "stepped" if named.stepped else "emulated",
        "bias_seconds": bias * 1e-9,
        "uncertainty_seconds": max((one.uncertainty_ns for one in retained[-1:]), default=0.0) * 1e-9,
        "climbed_from": function.identity.climbed or None,
        "descended_from": function.identity.descended or None,
        "verdict": verdict.value,
        "checked": date_of(state, function.verification.checked_ns) if function.verification.checks else None,
        "checks": [_check(check) for check in function.verification.checks],
        "host_causes": _host_causes(function, state) if verdict is Verdict.VIOLATED else [],
        "provisional": document_of(function.provisional) if function.state not in FINISHED else None,
        "inherited": _inherited(function, state),
        **level_facts(levels.whole),
        "observed": quantiles(levels.observed) if levels.observed is not None else None,
        "observed_span": dates_of(state, levels.observed_ns[0] if levels.observed_ns else None),
        "windows_span": dates_of(state, span_of((*function.history.timing, *function.history.paths))),
        **statements(function, data, levels, lambda span: dates_of(state, span)),
        "time": None,
        "on_cpu": _on_cpu(function, levels, data.split if data else split_calls(retained, bias), detail),
    }
    inside = known_inside(function.history)
    entry["spread"] = spread_facts(inside, bias, callees)
    waits = pooled_waits(function.waits)
    entry["waits"] = waits_facts(waits, date_of(state, waits.end_ns) if waits is not None else None)
    if data is not None:
        took, stood = inside_facts(inside, data.edges, data.bias_ns, callees), class_waits_facts(waits, data.edges)
        entry["classes"] = [one | more | at for one, more, at in zip(entry["classes"], took, stood, strict=True)]
    if data is not None and data.split is not None:
        entry |= _explained_by_time(entry, function, data, data.split, state)
    if detail:
        entry["histogram"] = encode(function.history.histogram)
    return entry


def _inherited(function: FunctionState, state: ControllerState) -> dict[str, Any] | None:
    """Return where a statement comes from that other hosts learned; None for one of this host's own."""
    inherited = function.inference.inherited
    if inherited is None or function.state not in FINISHED:
        return None
    since = date_of(state, inherited.since_ns)
    return {"build_id": inherited.build_id, "hosts": inherited.hosts, "since": since}


def _on_cpu(function: FunctionState, levels: Levels, calls: SplitCalls | None, detail: bool) -> dict[str, Any] | None:
    facts = on_cpu_facts(function.inference.on_cpu, calls, detail)
    verdict = verdict_on_cpu(function)
    if facts is not None and verdict is not None:
        facts = {**facts, "verdict": verdict.value}
    return facts if facts is None or levels.on_cpu is None else {**facts, **level_facts(levels.on_cpu)}


def _explained_by_time(
    entry: dict[str, Any], function: FunctionState, data: Data, calls: SplitCalls, state: ControllerState
) -> dict[str, Any]:
    """Return what changes in an entry where it is known what calls did of their time."""
    result, host = function.explanation.result, host_times(environment_from(state.environment))
    found = explained(calls, data.edges, host, [one.class_calls for one in result.paths] if result else ())
    classes = [
        one | class_facts(part, main=place == found.main)
        for place, (one, part) in enumerate(zip(entry["classes"], found.classes, strict=True))
    ]
    facts = time_facts(calls, found, host)
    changed: dict[str, Any] = {"classes": classes, "time": facts}
    if function.reason is not None and function.reason.code == "violated" and _holds_on_cpu(function):
        changed["reason"] = _reason(violated_off_cpu(function.reason, facts["waiting"], facts["blocked"]))
    if (
        function.state is State.UNEXPLAINED
        and found.explained
        and (function.reason is None or function.reason.code != "violated")
    ):
        changed["reason"] = _reason(by_waiting([part.label for part in found.classes if part.label]))
        changed["needed"] = changed["reason"]["remedy"] if changed["reason"] else None
    return changed


def _holds_on_cpu(function: FunctionState) -> bool:
    return verdict_on_cpu(function) is Verdict.HOLDS


def _host_causes(function: FunctionState, state: ControllerState) -> list[dict[str, Any]]:
    """Return what of a violation the host explains: classes that gained calls at what it adds to a call."""
    if not state.environment or not function.history.longest:
        return []
    newest = function.history.longest[-1].histogram
    before = function.history.histogram.without(newest)
    host = environment_from(state.environment)
    return [
        shift.document() | {"code": shift.cause.code}
        for shift in host_evidence(before, newest, (host, host)).shifts
        if shift.cause is not None
    ]


def _check(check: Check) -> dict[str, Any]:
    return {
        "expression": check.subject,
        "verdict": check.verdict,
        "calls": check.calls,
        "shares": list(check.shares),
        "p_value": check.p_value,
    }


def _reason(reason: Reason | None) -> dict[str, str] | None:
    return {"code": reason.code, "text": reason.text, "remedy": reason.remedy} if reason else None
