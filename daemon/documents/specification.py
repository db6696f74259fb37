"""What is known as one JSON document, ``specmine.specification/1``: pure and canonical."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from specmine.daemon.controller.function import FunctionState
from specmine.daemon.controller.hotness import Total, is_worth_it, total_of
from specmine.daemon.controller.phase import State
from specmine.daemon.controller.problems.idle_time import idle_shares
from specmine.daemon.controller.state import ControllerState

from .detectable import keep as keep_detectable
from .function import description_of
from .function import keep as keep_functions
from .levels import Levels
from .levels import keep as keep_levels
from .timestamps import date_of
from .violation_context import context_of

SCHEMA = "specmine.specification/1"
LISTED_WHILE_COLD = 20
"""Candidates that are not worth measuring are listed up to this number, the warmest first."""


def specification(
    state: ControllerState, *, detail: bool = False, levels: Mapping[str, Levels] = MappingProxyType({})
) -> dict[str, Any]:
    """Return the document.

    Parameters
    ----------
    state : ControllerState
    detail : bool
        Adds ``histogram``, all durations timed as ``[[bucket, calls], ...]``, to each function.
    levels : mapping
        Levels by the key of the function, where they rest on more windows than the state retains.

    Returns
    -------
    dict
        JSON values only, functions sorted by calls, then name. Durations are in seconds, less what the probes
        add to them.
    """
    keep_levels(state.functions.keys())
    keep_functions(state.functions.keys())
    keep_detectable(state.functions.keys())
    total = total_of(state.functions.values(), state.elsewhere)
    around, idle = context_of(state), idle_shares(state.functions)
    listed = sorted(
        (
            description_of(each, state, total, detail, around, levels.get(each.key), idle.get(each.key, 0.0))
            for each in _listed(state, total)
        ),
        key=lambda entry: (-entry["calls"], entry["function"], entry["module"], entry["key"]),
    )
    return {
        "schema": SCHEMA,
        "program": _program(state),
        "host": dict(sorted(state.started.host.items())) if state.started else {},
        "environment": json.loads(json.dumps(state.environment, sort_keys=True)),
        "collection": _collection(state, total),
        "functions": listed,
    }


def last_specification(state: ControllerState, *, detail: bool = False) -> dict[str, Any]:
    """Return the document as it follows from the state alone, whatever was shown before.

    While functions are watched, the levels of a finished one are computed once, when somebody first asks for them. So
    what was shown last depends on when. The document that stays must not: a replay comes to the same.
    """
    for keep in (keep_levels, keep_functions, keep_detectable):
        keep(frozenset())
    return specification(state, detail=detail)


def _listed(state: ControllerState, total: Total) -> list[FunctionState]:
    cold = [function for function in state.functions.values() if _is_cold(function, total)]
    cold.sort(key=lambda function: (-function.profile.inclusive_ns, function.key))
    listed = {function.key for function in cold[:LISTED_WHILE_COLD]}
    return [function for key, function in state.functions.items() if key in listed or not _is_cold(function, total)]


def _is_cold(function: FunctionState, total: Total) -> bool:
    return function.state is State.CANDIDATE and not is_worth_it(function, total)


def _program(state: ControllerState) -> dict[str, Any]:
    lifetimes = [state.lifetimes[key] for key in sorted(state.lifetimes)]
    lifetimes.sort(key=lambda each: each.start_ns)
    first = lifetimes[0] if lifetimes else None
    return {
        "name": first.called if first else None,
        "path": first.executable if first else None,
        "build_id": first.build_id if first else None,
        "exit_status": state.batch.exit_status if state.batch else None,
        "lifetimes": [
            {"id": each.id, "pid": each.pid, "program": each.called, "path": each.executable, "build_id": each.build_id,
             "processes": each.processes}
            for each in lifetimes
        ],
    }  # fmt: skip


def _collection(state: ControllerState, total: Total) -> dict[str, Any]:
    account, batch, started = state.account, state.batch, state.started
    seconds = (state.now_ns - state.began_ns) * 1e-9
    cpu = account.spent.program_cpu_ns
    return {
        "seconds": seconds,
        "overhead_budget_ratio": state.settings.overhead,
        "overhead_ratio": account.spent.overhead_ns / cpu if cpu else 0.0,
        "allowed_seconds": account.earned_ns * 1e-9,
        "overhead_seconds": account.spent.overhead_ns * 1e-9,
        "program_cpu_seconds": cpu * 1e-9,
        "agent_cpu_seconds": state.agent_cost.spent_ns * 1e-9,
        "lost": dict(sorted(batch.lost.items())) if batch else {},
        "unwinding": dict(sorted(batch.unwinding.items())) if batch else {},
        "jit_cpu_ratio": state.runtime.cpu_ns / total.cpu_ns if total.cpu_ns > 0 else None,
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
        "began": date_of(state, state.began_ns),
        "at": date_of(state, state.now_ns),
        "stopped": state.stopped or None,
    }


def _experiments(state: ControllerState) -> list[dict[str, Any]]:
    """Return what loaded CPUs of the host meanwhile, oldest first: calls on these are not as usual."""
    return [
        {
            "name": each.name,
            "cpus": list(each.cpus),
            "start": date_of(state, each.start_ns),
            "end": date_of(state, each.end_ns),
        }
        for each in sorted(state.marks, key=lambda mark: (mark.start_ns, mark.name))
        if each.end_ns > state.began_ns and each.start_ns < state.now_ns
    ]
