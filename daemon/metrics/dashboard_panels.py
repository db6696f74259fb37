"""The panels of the dashboards: each a question, with the queries that answer it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

WHERE = 'instance=~"$instance", program=~"$program"'
_FUNCTION = f'{WHERE}, function=~"$function"'
GREY = "#8b96a1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One question, and the queries that answer it."""

    title: str
    text: str
    kind: str
    width: int
    height: int
    queries: tuple[tuple[str, str], ...]
    """Each with the text of its legend."""
    unit: str = "none"
    log: bool = False
    stack: bool = False
    red_from: float | None = None
    overrides: tuple[Mapping[str, Any], ...] = ()


Rows = tuple[tuple[str, tuple[Panel, ...]], ...]

PROBLEMS: Rows = (
    ("Now", (
        Panel(title="What is slower?", kind="stat", width=8, height=4, red_from=1,
              text="Functions with an open violation that no deeper one explains and nobody acknowledged.",
              queries=(('count(count by (program, function) (specmine_violation{direction="slower", ' + WHERE
                        + "} == 1 unless specmine_violation_explained == 1 "
                        "unless specmine_violation_acknowledged == 1)) or vector(0)", ""),)),
        Panel(title="Is anything unseen?", kind="stat", width=8, height=4, red_from=1,
              text="Daemons that do not answer, and programs that run while no call was counted for 3 minutes.",
              queries=(('count(up{job="specmine"} == 0 or on (instance, program) (specmine_program_processes > 0 and '
                        "time() - specmine_program_last_call_timestamp_seconds > 180)) or vector(0)", ""),)),
        Panel(title="Does it keep its limit?", kind="stat", width=8, height=4, unit="percentunit", red_from=1,
              text="Overhead of the last 10 minutes by what is promised: above 100 % the promise is broken.",
              queries=(("max(rate(specmine_overhead_seconds_total[10m]) / (specmine_overhead_promised_ratio * "
                        "rate(specmine_program_cpu_seconds_total[10m]) + specmine_overhead_floor_ratio))", ""),)),
        Panel(title="What, since when, why?", kind="table", width=24, height=8,
              text="Open violations in the words of the alert. `specmine violations FUNCTION` has the evidence.",
              queries=(("specmine_violation_info{" + WHERE + "} * on (instance, program, function, module, behaviour, "
                        "what, direction) group_left () specmine_violation_factor_ratio", ""),)),
        Panel(title="When did what change?", kind="state-timeline", width=24, height=7,
              text="One lane a function; coloured while a violation of it is open.",
              queries=(("max by (program, function) (specmine_violation{" + WHERE + "})",
                        "{{program}}: {{function}}"),)),
    )),
    ("One function", (
        Panel(title="Is it as fast as usual?", kind="timeseries", width=12, height=9, unit="s", log=True,
              text="Quantiles of the newest calls. The grey lines are the range of an unchanged program.",
              queries=(("specmine_observed_seconds{" + _FUNCTION + "}", "{{quantile}} {{instance}}"),
                       ("specmine_expected_seconds{" + _FUNCTION + "}", "normal {{quantile}} {{bound}}")),
              overrides=({"matcher": {"id": "byRegexp", "options": "normal.*"},
                          "properties": [{"id": "color", "value": {"mode": "fixed", "fixedColor": GREY}},
                                         {"id": "custom.lineStyle", "value": {"fill": "dash", "dash": [4, 4]}}]},)),
        Panel(title="Does it depend on the caller?", kind="timeseries", width=12, height=9, unit="s", log=True,
              text="Median of each behaviour. The legend is the assertion's expression over call edges.",
              queries=(('specmine_observed_seconds{quantile="p50", ' + _FUNCTION + "} * on (instance, program, "
                        "function, module, behaviour) group_left (expression) specmine_behaviour_info",
                        "{{expression}}"),)),
        Panel(title="How often is it called?", kind="timeseries", width=8, height=7, unit="reqps",
              text="Calls counted by the time for which calls were counted.",
              queries=(("sum by (instance, program) (rate(specmine_function_calls_total{" + _FUNCTION + "}[5m])) / "
                        "sum by (instance, program) (rate(specmine_watched_seconds_total{" + _FUNCTION + "}[5m]))",
                        "{{program}} {{instance}}"),)),
        Panel(title="Which share of its calls is slow?", kind="timeseries", width=8, height=7, unit="percentunit",
              stack=True, text="Calls by class of durations; `upper` is the upper border of the class in seconds.",
              queries=(("sum by (upper) (rate(specmine_calls_total{" + _FUNCTION + "}[5m])) / ignoring (upper) "
                        "group_left () sum(rate(specmine_calls_total{" + _FUNCTION + "}[5m]))", "up to {{upper}} s"),)),
        Panel(title="Does it compute or wait?", kind="timeseries", width=8, height=7, unit="s", stack=True,
              text="Time in timed calls, by what the thread did: running, waiting for a CPU, blocked.",
              queries=(("sum by (part) (rate(specmine_timed_call_seconds_total{" + _FUNCTION + "}[5m]))",
                        "{{part}}"),)),
    )),
    ("Hosts", (
        Panel(title="Which host stands out?", kind="bargauge", width=24, height=8, unit="none",
              text="Median on each host by the median over hosts: 1 is like the others.",
              queries=(('avg by (instance, function) (specmine_observed_seconds{quantile="p50", ' + _FUNCTION
                        + "}) / on (function) group_left () quantile by (function) (0.5, "
                        + 'specmine_observed_seconds{quantile="p50", ' + _FUNCTION + "})",
                        "{{instance}} {{function}}"),)),
        Panel(title="Does it take ever longer?", kind="timeseries", width=24, height=7, unit="s",
              text="Time a second that calls took more than asserted, by program.",
              queries=(("topk(10, rate(specmine_lost_seconds_total{" + WHERE + "}[1h]))",
                        "{{program}}: {{function}}"),)),
    )),
)  # fmt: skip

COST: Rows = (
    ("What watching costs", (
        Panel(title="What does it add to the programs?", kind="timeseries", width=12, height=8, unit="percentunit",
              text="CPU time that probes add, by their calibrated prices, as a share of the programs' CPU time.",
              queries=(("rate(specmine_overhead_seconds_total[10m]) / rate(specmine_program_cpu_seconds_total[10m])",
                        "{{instance}}"), ("specmine_overhead_promised_ratio", "limit {{instance}}"))),
        Panel(title="What does it use itself?", kind="timeseries", width=12, height=8, unit="percentunit",
              text="CPU time of specmine's own processes, as a share of one CPU.",
              queries=(("rate(specmine_agent_seconds_total[10m])", "{{instance}}"),
                       ("rate(specmine_agent_answers_seconds_total[10m])", "of it for answers {{instance}}"),
                       ("specmine_agent_promised_ratio", "limit {{instance}}"))),
        Panel(title="How much memory?", kind="timeseries", width=12, height=7, unit="bytes",
              text="Resident memory of specmine's processes, and kernel memory of unwind rows.",
              queries=(("specmine_resident_bytes", "{{process}} {{instance}}"),
                       ("specmine_unwind_row_bytes", "unwind rows {{instance}}"))),
        Panel(title="What was it spent on?", kind="timeseries", width=6, height=7, unit="percentunit", stack=True,
              text="Overhead by purpose, as CPU time a second.",
              queries=(("sum by (purpose) (rate(specmine_overhead_purpose_seconds_total[10m]))", "{{purpose}}"),)),
        Panel(title="Was anybody else disturbed?", kind="stat", width=6, height=7, red_from=1,
              text="Hits of processes that nobody chose, in a day.",
              queries=(("sum(increase(specmine_bystander_hits_total[1d]))", ""),)),
    )),
    ("Where it is blind", (
        Panel(title="In which state are the functions?", kind="timeseries", width=12, height=8, stack=True,
              text="Functions known, by state; docs/cli.md says what each means.",
              queries=(("sum by (state) (specmine_functions)", "{{state}}"),)),
        Panel(title="Why can some not be timed?", kind="table", width=12, height=8,
              text="Functions that cannot be watched as wanted, by reason.",
              queries=(("sum by (reason) (specmine_refused_functions)", "{{reason}}"),)),
        Panel(title="What got lost?", kind="timeseries", width=12, height=7, unit="cps",
              text="What did not fit into bounded memory in the kernel.",
              queries=(("sum by (what) (rate(specmine_lost_total[5m]))", "{{what}}"),)),
        Panel(title="Are stacks complete?", kind="timeseries", width=12, height=7, unit="cps", stack=True,
              text="Stacks walked, by outcome.",
              queries=(("sum by (outcome) (rate(specmine_stacks_total[5m]))", "{{outcome}}"),)),
        Panel(title="Does something break?", kind="timeseries", width=12, height=7,
              text="Own processes that were started anew, and writes to the store that failed, in an hour.",
              queries=(("sum by (process) (increase(specmine_process_restarts_total[1h]))", "restarts: {{process}}"),
                       ("sum(increase(specmine_store_failures_total[1h]))", "store"))),
        Panel(title="What does the host do to timing?", kind="table", width=12, height=7,
              text="What experiments measured, where the last try was valid; in base units.",
              queries=(("specmine_experiment_value and specmine_experiment_valid == 1", "{{experiment}}"),)),
    )),
)  # fmt: skip


def panels() -> Iterator[Panel]:
    """Yield every panel."""
    for rows in (PROBLEMS, COST):
        for _, held in rows:
            yield from held
