"""Every metric with the function that reads its values. The exporter and docs/metrics.md follow this list.

A new metric is an entry here, or in ``function_families`` if it is of a function, and a row in docs/metrics.md. What it
reads is in the status (``documents/status``) or in the snapshot of a function (``snapshot``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .family import Family, counter, gauge, labelled
from .function_families import OF_A_FUNCTION, OF_FUNCTIONS, OF_VIOLATIONS, one_of

Status = Mapping[str, Any]
_CHANGE_VERDICTS = ("worse", "better", "equivalent", "undecided")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scraped:
    """What is counted over all functions of a scrape."""

    folded: int
    open: int
    disturbed: bool


def _seconds(moment: str | None) -> float | None:
    return None if moment is None else datetime.fromisoformat(moment).timestamp()


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) else None


OF_PROGRAMS: tuple[Family[Mapping[str, Any]], ...] = labelled(
    ("program",),
    gauge("program_chosen", "1 if the configuration chooses the program.", lambda p: p["chosen"]),
    gauge("program_processes", "Living processes of the program.", lambda p: p["processes"]),
    counter("program_calls", "Calls counted in the program's functions.", lambda p: p["calls"]),
    counter(
        "program_own_cpu_seconds",
        "CPU time of the program's processes while watched.",
        lambda p: p["cpu_seconds"],
    ),
    gauge(
        "program_last_call_timestamp_seconds",
        "When a call of one of its functions was last counted.",
        lambda p: _seconds(p["last_call"]),
    ),
    gauge(
        "program_cpu_waiting_ratio",
        "Share of the time in which its threads could run that they waited for a CPU.",
        lambda p: p["cpu_waiting_ratio"],
    ),
    gauge(
        "program_cpu_throttled_ratio",
        "Share of the periods of its CPU limit in which the program was stopped; 0 without a limit.",
        lambda p: p["cpu_throttled_ratio"],
    ),
    gauge(
        "program_short_of_cpu",
        "1 while more than usual keeps the program from CPU time, else 0.",
        lambda p: bool(p["short_of_cpu"]),
    ),
)

OF_THE_DAEMON: tuple[Family[Status], ...] = (
    gauge(
        "info",
        "Version and link of the kernel side; always 1.",
        lambda s: {(s["version"], s["host"].get("link", ""), s["host"].get("kernel", "")): 1},
        *("version", "link", "kernel"),
    ),
    gauge("start_timestamp_seconds", "When the kernel side was started.", lambda s: _seconds(s["started"])),
    gauge(
        "snapshot_timestamp_seconds", "Time of the snapshot that this scrape shows.", lambda s: _seconds(s["updated"])
    ),
    gauge(
        "processes",
        "Living processes of the watched programs.",
        lambda s: sum(each["processes"] for each in s["lifetimes"]),
    ),
    gauge("functions", "Functions known, by state.", lambda s: s["functions"], "state"),
    gauge("probes_off", "1 while the kill switch keeps all probes off, else 0.", lambda s: s["probes"] == "off"),
    gauge(
        "refused_functions",
        "Functions that cannot be watched as wanted, by reason.",
        lambda s: s["refusals"],
        "reason",
    ),
    # fleet
    gauge(
        "fleet_told_timestamp_seconds",
        "When the fleet last said who observes what; absent without one.",
        lambda s: _seconds(s["fleet"]["told"]),
    ),
    gauge(
        "fleet_shares",
        "1 while what the fleet asks for counts, 0 while this host is alone.",
        lambda s: s["fleet"]["in_force"],
    ),
    gauge(
        "fleet_duties",
        "Functions that the fleet asks this host to observe, by purpose.",
        lambda s: s["fleet"]["duties"],
        "purpose",
    ),
    gauge(
        "fleet_left_functions",
        "Functions that are left to other hosts now.",
        lambda s: s["fleet"]["left_to_others"],
    ),
    gauge(
        "fleet_inherited_functions",
        "Functions whose statement was learned on other hosts.",
        lambda s: s["fleet"]["inherited"],
    ),
    # cost
    gauge(
        "overhead_promised_ratio",
        "Most CPU time to add to watched programs, as a share of theirs.",
        lambda s: s["budget"]["overhead"]["promised_ratio"],
    ),
    gauge(
        "overhead_floor_ratio",
        "CPU time a second that is promised in any case, however little the programs use.",
        lambda s: s["budget"]["overhead"]["floor_seconds"],
    ),
    gauge(
        "overhead_lent_ratio",
        "Part of the promise that is leased to a mine command on this host.",
        lambda s: s["budget"]["overhead"]["lent_ratio"],
    ),
    gauge(
        "overhead_predicted_ratio",
        "CPU time that the present plan adds, as a share of the programs'.",
        lambda s: s["budget"]["overhead"]["predicted_ratio"],
    ),
    counter(
        "overhead_seconds",
        "CPU time added to watched programs: hits by their prices, a model.",
        lambda s: s["budget"]["overhead"]["spent_seconds"],
    ),
    counter(
        "overhead_purpose_seconds",
        "The same by what it was spent on.",
        lambda s: {name.removesuffix("_seconds"): value for name, value in s["budget"]["overhead"]["spent_on"].items()},
        "purpose",
    ),
    counter(
        "program_cpu_seconds",
        "CPU time of the watched programs while watched.",
        lambda s: s["budget"]["overhead"]["program_cpu_seconds"],
    ),
    gauge(
        "agent_promised_ratio",
        "Most CPU time of specmine's own processes, as a share of one CPU.",
        lambda s: s["budget"]["agent"]["promised_ratio"],
    ),
    counter(
        "agent_seconds",
        "CPU time of specmine's own processes, and of tracing waits in programs that nobody watches.",
        lambda s: s["budget"]["agent"]["spent_seconds"],
    ),
    counter(
        "agent_answers_seconds",
        "The part of it that answers to scrapes and other requests take; beyond a third of the limit it comes on top.",
        lambda s: s["budget"]["agent"]["answers_seconds"],
    ),
    gauge(
        "agent_pressure_ratio",
        "How much specmine holds itself back to keep that promise, from 0 to 1.",
        lambda s: s["budget"]["agent"]["pressure"],
    ),
    gauge(
        "agent_stretch_ratio",
        "How many times further apart plans are where that is not enough, from 1 to 4.",
        lambda s: s["budget"]["agent"]["stretch"],
    ),
    gauge(
        "price_seconds",
        "What one hit costs the watched thread on this host, with caches as cold as they were recently.",
        lambda s: s["prices_seconds"],
        "what",
    ),
    counter("bystander_hits", "Hits of processes that nobody chose.", lambda s: s["bystander_hits"]),
    gauge(
        "resident_bytes",
        "Resident memory of each of specmine's processes.",
        lambda s: s["resident_bytes_by_process"],
        "process",
    ),
    gauge("unwind_row_bytes", "Kernel memory that holds unwind rows.", lambda s: s["unwind_row_bytes"]),
    # health
    counter("process_restarts", "Own processes that broke and were started anew.", lambda s: s["restarts"], "process"),
    counter("lost", "What did not fit into bounded memory in the kernel.", lambda s: s["lost"], "what"),
    counter("stacks", "Stacks walked, by outcome.", lambda s: s["stacks"], "outcome"),
    counter("store_observations", "Observations written to the store.", lambda s: s["store"].get("written")),
    counter("store_failures", "Attempts to write to the store that failed.", lambda s: s["store"].get("failures")),
    counter(
        "store_dropped",
        "Records dropped because the store could not be written for long.",
        lambda s: s["store"].get("dropped"),
    ),
)

OF_EXPERIMENTS: tuple[Family[Mapping[str, Any]], ...] = labelled(
    ("experiment",),
    gauge(
        "experiment_value",
        "What an experiment last derived of this host, in base units.",
        lambda e: _number(e["value"]),
    ),
    gauge(
        "experiment_ground_truth",
        "What the kernel reports of the same.",
        lambda e: _number(e["ground_truth"]),
    ),
    gauge("experiment_samples", "Samples that the value rests on.", lambda e: _number(e["samples"])),
    gauge("experiment_timestamp_seconds", "When the value was measured.", lambda e: _seconds(e["time"])),
    gauge("experiment_duration_seconds", "How long that took.", lambda e: _number(e["duration_seconds"])),
    gauge(
        "experiment_valid",
        "1 if the last try gave a value, 0 if it was skipped or unsure.",
        lambda e: float(e["valid"]),
    ),
    counter("experiment_skipped", "Tries that gave no value, by reason.", lambda e: e["skipped"], "reason"),
    counter("experiment_cpu_seconds", "CPU time of an experiment's load.", lambda e: e["cpu_seconds"]),
)

OF_CHANGES: tuple[Family[Mapping[str, Any]], ...] = labelled(
    OF_A_FUNCTION,
    gauge(
        "change_info",
        "The two builds that are compared; always 1.",
        lambda c: {(str(c["base"]), str(c["new"])): 1},
        *("base", "new"),
    ),
    gauge(
        "change_state",
        "Verdict on a function between two builds: one state is 1.",
        lambda c: one_of(c["verdict"], _CHANGE_VERDICTS),
        "state",
    ),
    gauge("change_ratio", "New over base of the median durations of lifetimes.", lambda c: c["ratio"]),
    gauge(
        "change_bound_ratio",
        "Ends of the always-valid 99 % interval of that ratio.",
        lambda c: dict(zip(("low", "high"), c["interval"] or (), strict=False)),
        "bound",
    ),
    gauge(
        "change_lifetimes",
        "Lifetimes of each side that were compared.",
        lambda c: dict(zip(("base", "new"), c["lifetimes"], strict=True)),
        "side",
    ),
    gauge(
        "change_alarm",
        "1 while an alarm is raised; of callers and callees the deepest.",
        lambda c: {c["direction"]: float(c["alarm"] == "raised" and c["cause"])},
        "direction",
    ),
    gauge(
        "change_acknowledged",
        "1 while an alarm stands that somebody acknowledged.",
        lambda c: {c["direction"]: float(c["alarm"] == "acknowledged")},
        "direction",
    ),
)

OF_A_SCRAPE: tuple[Family[Scraped], ...] = (
    gauge("functions_folded", 'Functions whose series are folded into function="other".', lambda s: s.folded),
    gauge("violations_open", "Violations that are open, those of folded functions too.", lambda s: s.open),
    gauge("host_disturbed", "1 while the host explains an open violation, else 0.", lambda s: s.disturbed),
)

FAMILIES: tuple[Family[Any], ...] = (
    *OF_FUNCTIONS,
    *OF_VIOLATIONS,
    *OF_PROGRAMS,
    *OF_THE_DAEMON,
    *OF_A_SCRAPE,
    *OF_EXPERIMENTS,
    *OF_CHANGES,
)
