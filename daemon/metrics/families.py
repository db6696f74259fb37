"""Every metric: kind, labels, meaning. The exporter and docs/metrics.md follow this list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One metric. A counter's name ends in ``_total`` in a scrape, not here."""

    name: str
    kind: Literal["counter", "gauge"]
    help: str
    labels: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """Name as a scrape shows it."""
        return f"{self.name}_total" if self.kind == "counter" else self.name


FUNCTION = ("function", "module")
BEHAVIOUR = (*FUNCTION, "behaviour")
CLASS = (*BEHAVIOUR, "upper")
CHANGE = (*FUNCTION, "base", "new")


def _gauge(name: str, text: str, *labels: str) -> Family:
    return Family(name=f"specmine_{name}", kind="gauge", help=text, labels=labels)


def _counter(name: str, text: str, *labels: str) -> Family:
    return Family(name=f"specmine_{name}", kind="counter", help=text, labels=labels)


FAMILIES = (
    # per function
    _gauge("function_info", "A function and the build it belongs to; always 1.", *FUNCTION, "build_id"),
    _gauge(
        "function_state",
        "Where a function stands; 1 for the present state, others absent.",
        *FUNCTION,
        "state",
    ),
    _gauge("utility_ratio", "How much is to be learned by observing the function now.", *FUNCTION),
    _counter("function_calls", "Calls counted while the function was watched.", *FUNCTION),
    _counter("function_timed_calls", "Calls whose duration was measured.", *FUNCTION),
    _counter("watched_seconds", "Time for which the function's calls were counted.", *FUNCTION),
    _counter("function_overhead_seconds", "Predicted CPU time that watching the function added.", *FUNCTION),
    _counter("timed_call_seconds", "Time in timed calls: running, waiting for a CPU, blocked.", *FUNCTION, "part"),
    _gauge("on_cpu_assertion_state", "Last verdict on what is asserted of time on CPU.", *FUNCTION, "state"),
    # per behaviour and class of a function with an assertion
    _gauge("behaviour_info", "A behaviour and its expression; always 1.", *BEHAVIOUR, "build_id", "expression"),
    _counter("calls", "Calls by behaviour and class of durations.", *CLASS),
    _counter("call_seconds", "Time in calls by behaviour and class of durations.", *CLASS),
    _gauge("assertion_share_ratio", "Share of a behaviour's calls that the assertion expects in a class.", *CLASS),
    _gauge("assertion_state", "Verdict of the last check of an assertion: one state is 1.", *BEHAVIOUR, "state"),
    _gauge("assertion_last_check_timestamp_seconds", "When the assertion was last checked.", *BEHAVIOUR),
    # the whole
    _gauge("info", "Version and link of the kernel side; always 1.", "version", "link", "kernel"),
    _gauge("start_timestamp_seconds", "When the kernel side was started."),
    _gauge("snapshot_timestamp_seconds", "When what this scrape shows was last renewed."),
    _gauge("processes", "Living processes of the watched programs."),
    _gauge("functions", "Functions known, by state.", "state"),
    _gauge("functions_folded", 'Functions whose series are folded into function="other".'),
    _gauge("probes_off", "1 while the kill switch keeps all probes off, else 0."),
    _gauge("refused_functions", "Functions that cannot be watched as wanted, by reason.", "reason"),
    # cost
    _gauge("overhead_promised_ratio", "Most CPU time to add to watched programs, as a share of theirs."),
    _gauge("overhead_lent_ratio", "Part of the promise lent to a mine command beside the daemon."),
    _gauge("overhead_predicted_ratio", "CPU time that the present plan adds, as a share of the programs'."),
    _counter("overhead_seconds", "CPU time added to watched programs: hits by their prices, a model."),
    _counter("program_cpu_seconds", "CPU time of the watched programs while watched."),
    _gauge("agent_promised_ratio", "Most CPU time of specmine's own processes, as a share of one CPU."),
    _counter(
        "agent_seconds",
        "CPU time of specmine's own processes, and what following waits costs programs that nobody watches.",
    ),
    _gauge("agent_pressure_ratio", "How much specmine holds itself back to keep that promise, from 0 to 1."),
    _gauge(
        "price_seconds", "What one hit costs the watched thread on this host, with caches as cold as lately.", "what"
    ),
    _counter("bystander_hits", "Hits of processes that nobody chose."),
    _gauge("resident_bytes", "Resident memory of the daemon."),
    _gauge("unwind_row_bytes", "Kernel memory that holds unwind rows."),
    # the host, by experiment
    _gauge("experiment_value", "What an experiment last derived of this host, in base units.", "experiment"),
    _gauge("experiment_ground_truth", "What the kernel told of the same.", "experiment"),
    _gauge("experiment_samples", "Samples that the value rests on.", "experiment"),
    _gauge("experiment_timestamp_seconds", "When the value was measured.", "experiment"),
    _gauge("experiment_duration_seconds", "How long that took.", "experiment"),
    _gauge("experiment_valid", "1 if the last try gave a value, 0 if it was skipped or unsure.", "experiment"),
    _counter("experiment_skipped", "Tries that gave no value, by reason.", "experiment", "reason"),
    _counter("experiment_cpu_seconds", "CPU time of an experiment's load.", "experiment"),
    # changes between builds
    _gauge("change_state", "Verdict on a function between two builds: one state is 1.", *CHANGE, "state"),
    _gauge("change_ratio", "New over base of the median durations of lifetimes.", *CHANGE),
    _gauge("change_bound_ratio", "Ends of the always-valid 99 % interval of that ratio.", *CHANGE, "bound"),
    _gauge("change_lifetimes", "Lifetimes of each side that were compared.", *CHANGE, "side"),
    _gauge("change_alarm", "1 while an alarm is raised; of callers and callees the deepest.", *CHANGE, "direction"),
    _gauge("change_acknowledged", "1 while an alarm stands that somebody acknowledged.", *CHANGE, "direction"),
    # health
    _counter("lost", "What did not fit into bounded memory in the kernel.", "what"),
    _counter("stacks", "Stacks walked, by outcome.", "outcome"),
    _counter("store_observations", "Observations written to the store."),
    _counter("store_failures", "Attempts to write to the store that failed."),
    _counter("store_dropped", "Things given up because the store could not be written for long."),
)

BY_NAME = {family.name.removeprefix("specmine_"): family for family in FAMILIES}
