"""The status: what the daemon watches, what that costs, and what failed. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from specmine.daemon.config.settings import SECOND
from specmine.daemon.controller.allocation.function_request import predicted
from specmine.daemon.controller.allocation.means import Means
from specmine.daemon.controller.allocation.request import affordable_window
from specmine.daemon.controller.function import FunctionState
from specmine.daemon.controller.hotness import is_idle
from specmine.daemon.controller.phase import FINISHED, State
from specmine.daemon.controller.reasons import PASSING
from specmine.daemon.controller.sharing.orders import left_out
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.controller.violations.cpu_shortage import Shortage
from specmine.mining.fleet.duty import Purpose
from specmine.model.batch import PURPOSES, Lifetime, Spent

from .programs import programs_of
from .short_of_cpu import shortage_in_words
from .timestamps import date_of, rfc3339, utc_offset_ns

SCHEMA = "specmine.status/1"
LEARNING_SHARE = 0.5
"""Of the overhead budget: checks take up to a third, and calls that give no duration the rest."""

FIRST_LOOK_NS = 5 * SECOND
"""By then the programs that ran before were seen."""
TICKS = 100
"""In a second of /proc, on every machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonFacts:
    """What the controller does not know of its daemon."""

    version: str = ""
    pid: int = 0
    programs: tuple[str, ...] = ()
    promised: float = 0.01
    """The overhead budget, leases included."""
    agent_promised: float = 0.01
    lent_ratio: float = 0.0
    """Part of the budget that is leased."""
    metrics: str = ""
    kill_switch: str = ""
    """The file that switches all probes off."""
    store: Mapping[str, Any] = field(default_factory=dict)
    resident_bytes: int = 0
    """Of the daemon's own process."""
    helpers_resident: Mapping[str, int] = field(default_factory=dict)
    """Bytes of memory of helpers that the kernel side does not know."""
    notes: tuple[str, ...] = ()
    restarts: Mapping[str, int] = field(default_factory=dict)
    """How often each process that the kernel side does not know broke and was started anew."""
    experiments: Mapping[str, Any] = field(default_factory=dict)
    """The journal's entries by experiment."""
    changes: tuple[Mapping[str, Any], ...] = ()
    """Comparisons between builds, as ``buildhistory.entries`` has them."""
    unmatched_names: tuple[Mapping[str, Any], ...] = ()
    """Names in ``functions.watch`` that no function of the programs has: ``name``, ``programs``, ``alike``."""


def status_of(state: ControllerState, daemon: DaemonFacts) -> dict[str, Any]:
    """Return the document ``specmine.status/1``.

    Parameters
    ----------
    state : ControllerState
        After the source has started.
    daemon : DaemonFacts

    Returns
    -------
    dict
        JSON values; times RFC 3339 UTC, durations in seconds, ratios of CPU time.
    """
    offset = utc_offset_ns(state)
    started = state.started
    batch = state.batch
    refused = Counter(_refusal_codes(state))
    helpers = {**(batch.resident if batch else {}), **daemon.helpers_resident}
    resident = {"daemon": daemon.resident_bytes, **dict(sorted(helpers.items()))}
    return {
        "schema": SCHEMA,
        "version": daemon.version,
        "pid": daemon.pid,
        "started": rfc3339(state.began_ns + offset),
        "updated": rfc3339(state.now_ns + offset),
        "host": dict(started.host) if started else {},
        "notes": [*(started.notes if started else ()), *daemon.notes, *_experiment_notes(daemon.experiments)],
        "probes": "off" if batch is not None and batch.switched_off else "on",
        "breakpoints": batch.breakpoints if batch is not None and batch.breakpoints >= 0 else None,
        "kill_switch": daemon.kill_switch,
        "programs": list(daemon.programs),
        "watched": _watched(state, daemon),
        "unmatched_names": [
            {name: list(value) if isinstance(value, tuple) else value for name, value in each.items()}
            for each in daemon.unmatched_names
        ],
        "lifetimes": _lifetimes(state),
        "functions": {name.value: count for name, count in _by_state(state).items() if count},
        "budget": _budget(state, daemon),
        "prices_seconds": _prices(state),
        "bystander_hits": state.bystander_hits,
        "refusals": dict(sorted(refused.items())),
        "lost": dict(sorted(batch.lost.items())) if batch else {},
        "restarts": dict(sorted((dict(batch.restarts if batch else {}) | dict(daemon.restarts)).items())),
        "stacks": dict(sorted(batch.unwinding.items())) if batch else {},
        "unwind_row_bytes": batch.row_bytes if batch else 0,
        "resident_bytes": sum(resident.values()),
        "resident_bytes_by_process": resident,
        "store": dict(daemon.store),
        "metrics": daemon.metrics,
        "fleet": _fleet(state),
        "environment": dict(state.environment),
        "changes": [dict(each) for each in daemon.changes],
        "experiments": {name: _experiment(each) for name, each in sorted(daemon.experiments.items())},
    }


def _fleet(state: ControllerState) -> dict[str, Any]:
    """Return what the fleet asks this host for, and whether that counts now."""
    orders, functions = state.orders, state.functions
    in_force = orders.in_force(state.settings, state.now_ns)
    purposes = Counter(each.purpose.value for each in orders.duties.values()) if in_force else Counter[str]()
    return {
        "shares": state.settings.shares,
        "told": rfc3339(orders.told_ns + utc_offset_ns(state)) if orders.told_ns is not None else None,
        "in_force": in_force,
        "duties": {each.value: purposes[each.value] for each in Purpose},
        "left_to_others": len(left_out(orders, functions, state.settings, state.now_ns, state.began_ns)),
        "statements": len(orders.statements),
        "inherited": sum(
            each.inference.inherited is not None and each.state in FINISHED for each in functions.values()
        ),
    }


def _experiment_notes(entries: Mapping[str, Any]) -> list[str]:
    """Return a sentence if host experiments are skipped for want of a compiler."""
    reasons = [entry["last"]["reason"] for entry in entries.values() if entry["last"]["reason"]]
    missing = next((reason for reason in reasons if reason["code"] == "needs-native"), None)
    return [f"host experiments are skipped: {missing['text']}; {missing['remedy']}"] if missing else []


def _experiment(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is known by an experiment: the last valid result, and how the last try went."""
    last, result = entry["last"], entry["valid"] or {}
    names = ("value", "unit", "interval", "ground_truth", "samples", "time", "duration_seconds")
    return {
        **{name: result.get(name) for name in names},
        "valid": bool(last["valid"]),
        "last_try": last["time"],
        "reason": last["reason"],
        "skipped": dict(sorted(entry["skipped"].items())),
        "cpu_seconds": entry["cpu_seconds"],
    }


def _lifetimes(state: ControllerState) -> list[dict[str, Any]]:
    names = ("pid", "executable", "build_id", "processes")
    living = sorted((each for each in state.lifetimes.values() if each.processes > 0), key=lambda each: each.id)
    return [
        {
            "program": each.called,
            **{name: getattr(each, name) for name in names},
            "started": date_of(state, _start_ns(each, state)),
        }
        for each in living
    ]


def _start_ns(lifetime: Lifetime, state: ControllerState) -> int:
    """Return when a program started: what ran before specmine was first seen soon after that started.

    What comes later is seen at its exec. The start in a lifetime's name is on the clock that goes on while the host is
    suspended, so it may be too late.
    """
    ticks = lifetime.id.rpartition(":")[2]
    if lifetime.start_ns - state.began_ns > FIRST_LOOK_NS or not ticks.isdigit():
        return lifetime.start_ns
    return min(lifetime.start_ns, int(ticks) * SECOND // TICKS)


def _watched(state: ControllerState, daemon: DaemonFacts) -> list[dict[str, Any]]:
    """Return the programs that are chosen or were seen, by name: living processes, and when a call was last counted."""
    lifetimes = [*state.lifetimes.values()]
    chosen = {
        name
        for choice in daemon.programs
        for name in {each.called for each in lifetimes if each.chosen == choice} or {PurePath(choice).name}
    }
    called, processes = dict[str, int](), Counter[str]()
    for each in lifetimes:
        processes[each.called] += each.processes
    for function in state.functions.values():
        if function.probe.called_ns is not None:
            for name in programs_of(function, state):
                called[name] = max(called.get(name, 0), function.probe.called_ns)
    return [
        {
            "program": name,
            "chosen": name in chosen,
            "processes": processes[name],
            "cpu_seconds": state.account.spent.cpu_by_program.get(name, 0) / SECOND,
            "last_call": rfc3339(called[name] + utc_offset_ns(state)) if name in called else None,
            **_cpu_shortage(state.shortages.get(name) if processes[name] else None, state),
        }
        for name in sorted(chosen | {each.called for each in lifetimes})
    ]


def _cpu_shortage(one: Shortage | None, state: ControllerState) -> dict[str, Any]:
    """Return what keeps a program from CPU time, as shares; in words if it is more than usual."""
    now = one.now if one is not None else None
    return {
        "cpu_waiting_ratio": now.waiting if now is not None else None,
        "cpu_throttled_ratio": now.throttled if now is not None else None,
        "cpu_limit": (now.limit_cpus or None) if now is not None else None,
        "cpu_steal_ratio": now.steal if now is not None else None,
        "short_of_cpu": shortage_in_words(one, state) if one and one.since_ns else "",
    }


def _by_state(state: ControllerState) -> dict[State, int]:
    counts = Counter(function.state for function in state.functions.values())
    return {name: counts.get(name, 0) for name in State}


def _refusal_codes(state: ControllerState) -> list[str]:
    phases = [function.phase for function in state.functions.values()]
    lasting = [phase.refused[0][1].code for phase in phases if phase.refused]
    passing = [phase.reason.code for phase in phases if phase.reason and phase.reason.code in PASSING]
    return lasting + passing


def _budget(state: ControllerState, daemon: DaemonFacts) -> dict[str, Any]:
    spent = state.account.spent
    lived_ns = max(1, state.now_ns - state.began_ns)
    cpu_rate = state.account.cpu_rate
    planned = predicted_ns(state)
    waiting = Counter(each.reason.code for each in state.functions.values() if _waits(each) and each.reason)
    return {
        "overhead": {
            "promised_ratio": daemon.promised,
            "lent_ratio": daemon.lent_ratio,
            "floor_seconds": state.settings.floor_ns / SECOND,
            "predicted_ratio": planned / cpu_rate if cpu_rate > 0 else None,
            "predicted_seconds_per_second": planned / SECOND,
            "spent_ratio": spent.overhead_ns / spent.program_cpu_ns if spent.program_cpu_ns else None,
            "spent_seconds": spent.overhead_ns / SECOND,
            "spent_on": {f"{purpose}_seconds": spent.purposes[purpose] / SECOND for purpose in _purposes(spent)},
            "program_cpu_seconds": spent.program_cpu_ns / SECOND,
            "waiting_functions": waiting["budget"],
            "waiting_seconds": _learning_seconds(state, waiting["budget"]),
        },
        "agent": {
            "promised_ratio": daemon.agent_promised,
            "spent_ratio": state.agent_cost.spent_ns / lived_ns,
            "spent_seconds": state.agent_cost.spent_ns / SECOND,
            "start_seconds": state.agent_cost.start_ns / SECOND,
            "answers_seconds": state.agent_cost.answered_ns / SECOND,
            "pressure": state.agent_cost.pressure,
            "stretch": state.agent_cost.stretch,
            "waiting_functions": waiting["slots"] if state.agent_cost.pressure > 0 else 0,
        },
    }


def _waits(function: FunctionState) -> bool:
    return function.state is State.WAITING and not is_idle(function)


def _learning_seconds(state: ControllerState, functions: int) -> float | None:
    """Return about how long it takes at the present budget to learn so many functions; None while nothing is earned."""
    if not functions or state.started is None or state.account.rate <= 0:
        return None
    mining, prices = state.settings.mining, state.started.prices
    calls = mining.chain_observations * affordable_window(state.account.rate, prices, state.settings)
    return functions * calls * prices.time_ns / (LEARNING_SHARE * state.account.rate)


def _purposes(spent: Spent) -> list[str]:
    """Return what overhead was spent on, in the order of the ledger."""
    return [purpose for purpose in PURPOSES if purpose in spent.purposes]


def predicted_ns(state: ControllerState) -> float:
    """Return the predicted overhead of the present watches, ns per second."""
    if state.started is None:
        return 0.0
    prices = state.started.prices
    means = Means(
        budget=state.account.rate,
        income=state.account.rate,
        cash=0.0,
        prices=prices,
        slow_links=False,
        now_ns=state.now_ns,
    )
    watches = sum(
        predicted(function, function.probe.watch, means, state.settings)
        for function in state.functions.values()
        if function.probe.watch is not None
    )
    return watches + state.hertz * prices.sample_ns * state.account.cpu_rate / SECOND


def _prices(state: ControllerState) -> dict[str, float]:
    if state.started is None:
        return {}
    prices = state.started.prices
    names = ("count", "time", "path", "stepped", "sample", "bias")
    return {name: getattr(prices, f"{name}_ns") / SECOND for name in names}
