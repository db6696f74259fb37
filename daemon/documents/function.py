"""One function in the specification: what was observed of it, what that cost, and what is said about it."""

from __future__ import annotations

from typing import Any

import numpy as np

from specmine.daemon.controller.budget import price
from specmine.daemon.controller.call_counts import calls_interval, estimated_calls
from specmine.daemon.controller.function import Knowledge
from specmine.daemon.controller.hotness import Total, share
from specmine.daemon.controller.phase import FINISHED, State
from specmine.daemon.controller.provisional import document_of
from specmine.daemon.controller.reasons import by_waiting, violated_off_cpu
from specmine.daemon.controller.scheduler import kind_for, utility
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.controller.timestamps import date_of
from specmine.mining.borders.inference import Check
from specmine.mining.off_cpu.host_causes import host_times
from specmine.mining.regression.host_effect import host_evidence
from specmine.model.function import Reason
from specmine.model.host_environment import environment_from
from specmine.model.json_codec import encode

from .statements import Data, data_of, statements
from .time_split import SplitCalls, class_facts, explained, on_cpu_facts, split_calls, time_facts


def description_of(each: Knowledge, state: ControllerState, total: Total, detail: bool) -> dict[str, Any]:
    """Return the JSON values of a function; ``detail`` adds all durations timed."""
    function, totals, data = each.function, each.totals, data_of(each)
    prices = state.started.prices if state.started else None
    bias = data.bias_ns if data else (each.observations[-1].bias_ns if each.observations else 0.0)
    entry: dict[str, Any] = {
        "function": function.name,
        "module": function.module,
        "build_id": function.build_id,
        "key": function.key,
        "offset": function.offset,
        "mangled": function.mangled,
        "aliases": list(function.aliases),
        "state": each.state.value,
        "reason": _reason(each.reason),
        "needed": each.reason.remedy if each.reason and each.reason.remedy else None,
        "since": date_of(state, each.since_ns),
        "calls": estimated_calls(each, state.now_ns),
        "calls_interval": calls_interval(each, state.now_ns),
        "calls_counted": totals.calls,
        "calls_exact": totals.calls > 0 and not totals.gaps,
        "watched_seconds": totals.watched_ns * 1e-9,
        "rate_per_second": each.rate,
        "timed": totals.timed,
        "inner": totals.inner,
        "censored": totals.censored,
        "observations": totals.observations,
        "utility": utility(each, state.now_ns, state.running),
        "time_share": share(each, total),
        "grade": "stepped" if function.stepped else "emulated",
        "price_ns": price(prices, kind_for(each), function) if prices else None,
        "spent_seconds": totals.cost_ns * 1e-9,
        "bias_seconds": bias * 1e-9,
        "uncertainty_seconds": max((one.uncertainty_ns for one in each.observations[-1:]), default=0.0) * 1e-9,
        "climbed_from": each.climbed or None,
        "verdict": _verdict(each),
        "checked": date_of(state, each.checked_ns) if each.checks else None,
        "checks": [_check(check) for check in each.checks],
        "host_causes": _host_causes(each, state),
        "provisional": document_of(each.inherited) if each.state not in FINISHED else None,
        **statements(each, data),
        "time": None,
        "on_cpu": on_cpu_facts(each.on_cpu, data.split if data else split_calls(each.observations, bias), detail),
    }
    if data is not None and data.split is not None:
        entry |= _explained_by_time(entry, each, data, data.split, state)
    if detail:
        entry["histogram"] = encode(each.histogram)
    return entry


def _explained_by_time(
    entry: dict[str, Any], each: Knowledge, data: Data, calls: SplitCalls, state: ControllerState
) -> dict[str, Any]:
    """Return what changes in an entry where it is known what calls did of their time."""
    result, host = each.result, host_times(environment_from(state.environment))
    found = explained(calls, data.edges, host, [one.class_calls for one in result.paths] if result else ())
    classes = [
        one | class_facts(part, main=place == found.main)
        for place, (one, part) in enumerate(zip(entry["classes"], found.classes, strict=True))
    ]
    facts = time_facts(calls, found, host)
    changed: dict[str, Any] = {"classes": classes, "time": facts}
    if each.reason is not None and each.reason.code == "violated" and _holds_on_cpu(each):
        changed["reason"] = _reason(violated_off_cpu(each.reason, facts["waiting"], facts["blocked"]))
    if each.state is State.UNEXPLAINED and found.explained and (each.reason is None or each.reason.code != "violated"):
        changed["reason"] = _reason(by_waiting([part.label for part in found.classes if part.label]))
        changed["needed"] = changed["reason"]["remedy"] if changed["reason"] else None
    return changed


def _holds_on_cpu(each: Knowledge) -> bool:
    return each.on_cpu is not None and each.on_cpu.check is not None and each.on_cpu.check.verdict == "holds"


def _verdict(each: Knowledge) -> str:
    verdicts = {check.verdict for check in each.checks}
    return "violated" if "violated" in verdicts else "holds" if "holds" in verdicts else "unknown"


def _host_causes(each: Knowledge, state: ControllerState) -> list[dict[str, Any]]:
    """Return what of a violation the host explains: classes that gained calls at what it adds to a call."""
    if _verdict(each) != "violated" or not state.environment or not each.observations:
        return []
    newest = each.observations[-1].counts
    before = each.histogram - np.minimum(newest, each.histogram)
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
