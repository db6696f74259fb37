"""A snapshot as rows of metrics: pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from .counters import Counters, Reading, Stated

Row = tuple[str, tuple[str, ...], float]
"""Short name of the family, values of its labels, value."""
_VERDICTS = ("holds", "violated", "unknown")
_CHANGES = ("worse", "better", "equivalent", "undecided")
_MOST_CHANGES = 50  # ten series each
_LONGEST_LABEL = 400


def of_function(each: Reading, label: tuple[str, str], counters: Counters) -> Iterator[Row]:
    """Turn a function into rows, under the values of the labels function and module."""
    yield "function_info", (*label, each.build_id), 1
    yield "function_state", (*label, each.state), 1
    yield "utility_ratio", label, each.utility
    yield "function_calls", label, each.calls
    yield "function_timed_calls", label, each.timed
    yield "watched_seconds", label, each.watched_ns / 1e9
    yield "function_overhead_seconds", label, each.cost_ns / 1e9
    for part, time_ns in each.split_ns:
        yield "timed_call_seconds", (*label, part), time_ns / 1e9
    for verdict in _VERDICTS if each.on_cpu else ():
        yield "on_cpu_assertion_state", (*label, verdict), float(each.on_cpu == verdict)
    for behaviour in each.behaviours:
        yield from _of_behaviour(each, behaviour, (*label, behaviour.id))
    for name, values in (("calls", counters.calls(each.key)), ("call_seconds", counters.seconds(each.key))):
        for (behaviour_id, upper), value in values.items():
            yield name, (*label, behaviour_id, upper), value


def _of_behaviour(each: Reading, behaviour: Stated, label: tuple[str, ...]) -> Iterator[Row]:
    yield "behaviour_info", (*label, each.build_id, plain(behaviour.expression)), 1
    for upper, share in zip(each.uppers, behaviour.shares, strict=True):
        yield "assertion_share_ratio", (*label, upper), share
    for verdict in _VERDICTS:
        yield "assertion_state", (*label, verdict), float(behaviour.verdict == verdict)
    if each.checked_utc_ns is not None:
        yield "assertion_last_check_timestamp_seconds", label, each.checked_utc_ns / 1e9


def whole(status: Mapping[str, Any]) -> Iterator[Row]:
    """Turn the status into rows; what is not known yet is left out, never shown as 0."""
    host, store = status["host"], status["store"]
    overhead, agent = status["budget"]["overhead"], status["budget"]["agent"]
    yield "info", (status["version"], host.get("link", ""), host.get("kernel", "")), 1
    yield "start_timestamp_seconds", (), _seconds(status["started"])
    yield "snapshot_timestamp_seconds", (), _seconds(status["updated"])
    yield "processes", (), sum(each["processes"] for each in status["lifetimes"])
    plain_values = {
        "overhead_promised_ratio": overhead["promised_ratio"],
        "overhead_lent_ratio": overhead["lent_ratio"],
        "overhead_predicted_ratio": overhead["predicted_ratio"],
        "overhead_seconds": overhead["spent_seconds"],
        "program_cpu_seconds": overhead["program_cpu_seconds"],
        "agent_promised_ratio": agent["promised_ratio"],
        "agent_seconds": agent["spent_seconds"],
        "agent_pressure_ratio": agent["pressure"],
        "bystander_hits": status["bystander_hits"],
        "probes_off": status["probes"] == "off",
        "resident_bytes": status["resident_bytes"],
        "unwind_row_bytes": status["unwind_row_bytes"],
        "store_observations": store.get("written"),
        "store_failures": store.get("failures"),
        "store_dropped": store.get("dropped"),
    }
    yield from ((name, (), float(value)) for name, value in plain_values.items() if value is not None)
    for name, experiment in status["experiments"].items():
        yield from _of_experiment(plain(name), experiment)
    tables = {
        "functions": status["functions"],
        "refused_functions": status["refusals"],
        "price_seconds": status["prices_seconds"],
        "lost": status["lost"],
        "stacks": status["stacks"],
    }
    for name, table in tables.items():
        yield from ((name, (plain(key),), float(value)) for key, value in table.items())


def _of_experiment(name: str, experiment: Mapping[str, Any]) -> Iterator[Row]:
    """Turn an experiment into rows: a value always stands beside the time it was measured at."""
    numbers = {"value": experiment["value"], "ground_truth": experiment["ground_truth"]}
    numbers |= {"samples": experiment["samples"], "duration_seconds": experiment["duration_seconds"]}
    for key, value in numbers.items():
        if isinstance(value, int | float):
            yield f"experiment_{key}", (name,), value
    if experiment["time"] is not None:
        yield "experiment_timestamp_seconds", (name,), _seconds(experiment["time"])
    yield "experiment_valid", (name,), float(experiment["valid"])
    yield "experiment_cpu_seconds", (name,), experiment["cpu_seconds"]
    for reason, count in experiment["skipped"].items():
        yield "experiment_skipped", (name, plain(reason)), count


def changes(status: Mapping[str, Any]) -> Iterator[Row]:
    """Turn the comparisons into rows: those with an alarm, then the others, of each function."""
    for each in status.get("changes", ())[:_MOST_CHANGES]:
        label = tuple(plain(str(each[name])) for name in ("function", "module", "base", "new"))
        for state in _CHANGES:
            yield "change_state", (*label, state), float(each["verdict"] == state)
        yield "change_ratio", label, each["ratio"]
        for bound, value in zip(("low", "high"), each["interval"] or (), strict=False):
            yield "change_bound_ratio", (*label, bound), value
        for side, number in zip(("base", "new"), each["lifetimes"], strict=True):
            yield "change_lifetimes", (*label, side), number
        yield "change_alarm", (*label, each["direction"]), float(each["alarm"] == "raised" and each["cause"])
        yield "change_acknowledged", (*label, each["direction"]), float(each["alarm"] == "acknowledged")


def plain(text: str) -> str:
    """Return a name fit for a label: control characters escaped, not endless; the encoder sees to quotes."""
    safe = "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)
    return safe if len(safe) <= _LONGEST_LABEL else f"{safe[: _LONGEST_LABEL - 3]}..."


def _seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()
