"""What is known as one JSON document, ``specmine.specification/1``: pure and canonical."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from specmine.mining.change.hosting import host_evidence
from specmine.mining.environment import environment_from
from specmine.mining.expressions import shared_names, shown, to_records
from specmine.mining.observation import (
    BUCKETS,
    CallPath,
    Counts,
    Reason,
    bucket_edges,
    frozen_counts,
)
from specmine.mining.shares import class_counts
from specmine.mining.waiting import host_times
from specmine.probes.encoding import encode

from .allocation import kind_for, utility
from .budget import price
from .conclusions import Check
from .controller import ControllerState
from .finding import Total, is_worth_it, share, total_of
from .inheriting import document_of
from .jobs import JobResult
from .kept import Kept
from .knowledge import FINISHED, Knowledge, State
from .reasons import by_waiting, violated_off_cpu
from .timesplit import SplitCalls, class_facts, explained, on_cpu_facts, path_facts, split_calls, time_facts

SCHEMA = "specmine.specification/1"
LISTED_WHILE_COLD = 20
"""Candidates that are not worth measuring are listed up to this number, the warmest first."""


def specification(state: ControllerState, *, detail: bool = False) -> dict[str, Any]:
    """Return the document.

    Parameters
    ----------
    state : ControllerState
    detail : bool
        Adds ``histogram``, all durations timed as ``[[bucket, calls], ...]``, to each function.

    Returns
    -------
    dict
        JSON values only, functions sorted by calls, then name. Durations are in seconds, less what the probes
        add to them.
    """
    total = total_of(state.known.values())
    listed = sorted(
        (_function(each, state, total, detail) for each in _listed(state, total)),
        key=lambda entry: (-entry["calls"], entry["function"], entry["module"], entry["key"]),
    )
    return {
        "schema": SCHEMA,
        "program": _program(state),
        "host": dict(sorted(state.started.host.items())) if state.started else {},
        "environment": json.loads(json.dumps(state.environment, sort_keys=True)),
        "collection": _collection(state),
        "functions": listed,
    }


def dumps(document: Mapping[str, Any]) -> str:
    """Return the canonical text: floats to 6 significant digits, no NaN, a newline at the end."""
    return json.dumps(_rounded(document), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def is_learned(document: Mapping[str, Any]) -> bool:
    """Tell whether something is stated about at least one function."""
    return any(each["state"] in FINISHED for each in document["functions"])


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, Mapping):
        return {key: _rounded(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(each) for each in value]
    return value


def _listed(state: ControllerState, total: Total) -> list[Knowledge]:
    cold = [each for each in state.known.values() if _is_cold(each, total)]
    cold.sort(key=lambda each: (-each.where.inclusive_ns, each.function.key))
    kept = {each.function.key for each in cold[:LISTED_WHILE_COLD]}
    return [each for key, each in state.known.items() if key in kept or not _is_cold(each, total)]


def _is_cold(each: Knowledge, total: Total) -> bool:
    return each.state is State.CANDIDATE and not is_worth_it(each, total)


def _program(state: ControllerState) -> dict[str, Any]:
    lifetimes = [state.lifetimes[key] for key in sorted(state.lifetimes)]
    lifetimes.sort(key=lambda each: each.start_ns)
    first = lifetimes[0] if lifetimes else None
    return {
        "path": first.executable if first else None,
        "build_id": first.build_id if first else None,
        "exit_status": state.batch.exit_status if state.batch else None,
        "lifetimes": [
            {"id": each.id, "pid": each.pid, "path": each.executable, "build_id": each.build_id,
             "processes": each.processes}
            for each in lifetimes
        ],
    }  # fmt: skip


def _collection(state: ControllerState) -> dict[str, Any]:
    purse, batch, started = state.purse, state.batch, state.started
    seconds = (state.now_ns - state.began_ns) * 1e-9
    cpu = purse.spent.program_cpu_ns
    return {
        "seconds": seconds,
        "budget_ratio": state.settings.budget,
        "spent_ratio": purse.spent.inside_ns / cpu if cpu else 0.0,
        "allowed_seconds": purse.earned_ns * 1e-9,
        "inside_seconds": purse.spent.inside_ns * 1e-9,
        "program_cpu_seconds": cpu * 1e-9,
        "beside_cpu_seconds": state.beside.spent_ns * 1e-9,
        "lost": dict(sorted(batch.lost.items())) if batch else {},
        "unwinding": dict(sorted(batch.unwinding.items())) if batch else {},
        "bystander_hits": state.bystander_hits,
        "prices_ns": {
            "count": started.prices.count_ns,
            "time": started.prices.time_ns,
            "path": started.prices.path_ns,
            "stepped": started.prices.stepped_ns,
            "sample": started.prices.sample_ns,
        }
        if started
        else {},
        "notes": list(started.notes) if started else [],
        "experiments": _experiments(state),
        "began": _utc(state, state.began_ns),
        "at": _utc(state, state.now_ns),
        "stopped": state.stopped or None,
    }


def _experiments(state: ControllerState) -> list[dict[str, Any]]:
    """Return what loaded CPUs of the host meanwhile, oldest first: calls on these are not as usual."""
    return [
        {
            "name": each.name,
            "cpus": list(each.cpus),
            "start": _utc(state, each.start_ns),
            "end": _utc(state, each.end_ns),
        }
        for each in sorted(state.marks, key=lambda mark: (mark.start_ns, mark.name))
        if each.end_ns > state.began_ns and each.start_ns < state.now_ns
    ]


def _utc(state: ControllerState, at_ns: int | None) -> str | None:
    offset = state.started.host.get("utc_offset_ns") if state.started else None
    if offset is None or at_ns is None:
        return None
    moment = datetime.fromtimestamp((at_ns + int(offset)) // 1_000_000 / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Data:
    """What the statements about a function rest on."""

    counts: Counts
    edges: tuple[int, ...]
    bias_ns: float
    uncertainty_ns: float
    held: tuple[Kept, ...]
    split: SplitCalls | None
    """What the same calls did of their time; None where this is not known."""


def _data(each: Knowledge) -> _Data | None:
    """Return the histogram that the classes cut, None while nothing is stable."""
    if each.learned is None or each.state in (State.CANDIDATE, State.WAITING, State.TIMING, State.UNSTABLE):
        return None
    explained_by_paths = each.result is not None and bool(each.paths)
    held = each.paths if explained_by_paths else each.timing or each.paths
    bias_ns = each.result.bias_ns if each.result is not None and explained_by_paths else each.learned.bias_ns
    return _Data(
        counts=_summed(held),
        edges=each.result.borders if each.result is not None and explained_by_paths else each.learned.edges,
        bias_ns=bias_ns,
        uncertainty_ns=max((one.uncertainty_ns for one in held), default=each.learned.uncertainty_ns),
        held=held,
        split=split_calls(held, bias_ns),
    )


def _summed(observations: Sequence[Kept]) -> Counts:
    total = np.zeros(BUCKETS, dtype=np.uint64)
    for observation in observations:
        total += observation.counts
    return frozen_counts(total)


def _function(each: Knowledge, state: ControllerState, total: Total, detail: bool) -> dict[str, Any]:
    function, totals, data = each.function, each.totals, _data(each)
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
        "since": _utc(state, each.since_ns),
        "calls": each.estimated_calls(state.now_ns),
        "calls_interval": each.calls_interval(state.now_ns),
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
        "checked": _utc(state, each.checked_ns) if each.checks else None,
        "checks": [_check(check) for check in each.checks],
        "host_causes": _host_causes(each, state),
        "provisional": document_of(each.inherited) if each.state not in FINISHED else None,
        **_statements(each, data),
        "time": None,
        "on_cpu": on_cpu_facts(each.on_cpu, data.split if data else split_calls(each.observations, bias), detail),
    }
    if data is not None and data.split is not None:
        entry |= _explained_by_time(entry, each, data, data.split, state)
    if detail:
        entry["histogram"] = encode(each.histogram)
    return entry


def _explained_by_time(
    entry: dict[str, Any], each: Knowledge, data: _Data, calls: SplitCalls, state: ControllerState
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


def _reason(reason: Reason | None) -> dict[str, str] | None:
    return {"code": reason.code, "text": reason.text, "remedy": reason.remedy} if reason else None


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


def _seconds(edge: int, bias_ns: float) -> float:
    return max(0.0, float(bucket_edges()[edge]) - bias_ns) * 1e-9


def _statements(each: Knowledge, data: _Data | None) -> dict[str, Any]:
    """Return borders, classes, behaviours and paths: nothing is claimed before the function is stable."""
    if data is None:
        return {"borders_seconds": [], "borders": [], "classes": [], "behaviours": [], "paths": []}
    upper = [_seconds(edge, data.bias_ns) for edge in data.edges]
    shares = _shares(class_counts(data.counts, data.edges))
    result = each.result if each.state in (State.EXPLAINED, State.UNEXPLAINED) else None
    behaviours: list[dict[str, Any]] = []
    paths: list[dict[str, Any]] = []
    if result is not None:
        behaviours, paths = behaviours_and_paths(result, path_facts(data.held, data.bias_ns))
    if not behaviours and each.state in FINISHED:
        calls = int(data.counts.sum())
        count = len(paths) or None
        behaviours = [{"expression": "true", "formula": [[]], "calls": calls, "paths": count, "shares": shares}]
    return {
        "borders_seconds": upper,
        "borders": _borders(each, data),
        "classes": [
            {"upper_seconds": bound, "share": part} for bound, part in zip([*upper, None], shares, strict=True)
        ],
        "behaviours": behaviours,
        "paths": paths,
    }


def _borders(each: Knowledge, data: _Data) -> list[dict[str, Any]]:
    known = each.learned.borders if each.learned and len(each.learned.borders) == len(data.edges) else ()
    edges = bucket_edges()
    stated = []
    for place, edge in enumerate(data.edges):
        evidence: dict[str, Any] = {}
        if place < len(known):
            border = known[place]
            evidence = {
                "cdf": border.cdf,
                "found": border.found,
                "of": border.of,
                "depth": border.evidence.depth,
                "significance": border.evidence.significance,
                "lower_calls": border.evidence.lower_calls,
                "upper_calls": border.evidence.upper_calls,
            }
        stated.append(
            {
                "seconds": _seconds(edge, data.bias_ns),
                "evidence": evidence,
                # a border lies between two buckets: it is known no finer than the wider of the two
                "uncertainty_seconds": max(float(edges[edge + 1] - edges[edge]), data.uncertainty_ns) * 1e-9,
            }
        )
    return stated


def behaviours_and_paths(
    result: JobResult, times: Mapping[CallPath, Mapping[str, float]] | None = None
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return both lists sorted by calls, the paths' references renumbered to match."""
    order = sorted(
        range(len(result.behaviours)),
        key=lambda at: (-result.behaviours[at].calls, result.behaviours[at].expression),
    )
    place = {old: new for new, old in enumerate(order)}
    behaviours = [
        {
            "expression": each.expression,
            "formula": to_records(each.formula),
            "calls": each.calls,
            "paths": each.paths,
            "shares": _shares(each.class_calls),
        }
        for each in (result.behaviours[old] for old in order)
    ]
    shared = shared_names(each.path for each in result.paths)
    paths = [
        {
            "frames": [shown(frame, shared) for frame in each.path.frames],
            "complete": each.path.complete,
            "calls": each.calls,
            "shares": _shares(each.class_calls),
            "behaviour": place[each.behaviour] if each.behaviour is not None else None,
            "certainty": each.certainty if each.behaviour is not None else None,
            **(times or {}).get(each.path, {}),
        }
        for each in sorted(result.paths, key=lambda one: (-one.calls, one.path))
    ]
    return behaviours, paths


def _shares(class_calls: Iterable[int]) -> list[float]:
    numbers = [int(number) for number in class_calls]
    return [number / max(sum(numbers), 1) for number in numbers]
