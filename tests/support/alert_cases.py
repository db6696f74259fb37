"""For each alert rule: series with which it fires, and series with which it does not."""

from __future__ import annotations

from collections.abc import Mapping

from tests.support.promtool import Case

HOST = {"instance": "shop-03:9752", "job": "specmine"}
FUNCTION = {"program": "shop", "function": "checksum", "module": "shop"}
LEVEL = {"behaviour": "0123456789ab", "what": "level", "direction": "slower"}
TITLE = "shop: checksum 2.1x slower since 02:47, new code"
TEXT = "checksum (shop) 2.1x slower since 02:47:10: median 160 us, normal 72-80 us; cause: code"


def series(name: str, labels: Mapping[str, str]) -> str:
    """Return a series as promtool reads it."""
    inner = ",".join(f'{label}="{value}"' for label, value in {**HOST, **labels}.items())
    return f"specmine_{name}{{{inner}}}" if name != "up" else f"up{{{inner}}}"


def violation(values: str, *, factor: str = "2.1x60", cost: str = "0.3x60", **more: str) -> dict[str, str]:
    """Return the series of one violation; ``acknowledged`` and ``explained`` are values, other names are labels."""
    marks = {name: more.pop(name, "0x60") for name in ("acknowledged", "explained")}
    labels = FUNCTION | LEVEL | more
    return {
        series("violation", labels): values,
        series("violation_factor_ratio", labels): factor,
        series("violation_time_ratio", labels): cost,
        **{series(f"violation_{name}", labels): value for name, value in marks.items()},
    }


def info(values: str, *, cause: str = "code", title: str = TITLE, **more: str) -> dict[str, str]:
    """Return the series with the words of a violation."""
    words = {"cause": cause, "because": "", "where": "all calls", "title": title, "text": TEXT}
    return {series("violation_info", FUNCTION | LEVEL | words | more): values}


def program(chosen: str = "1x80", processes: str = "4x80", calls: str = "0+300x80") -> dict[str, str]:
    """Return the series of a program."""
    labels = {"program": "shop"}
    return {
        series("program_chosen", labels): chosen,
        series("program_processes", labels): processes,
        series("program_calls_total", labels): calls,
    }


def checked(calls: str) -> dict[str, str]:
    """Return the series of a function whose last check was at the start."""
    return {
        series("assertion_last_check_timestamp_seconds", FUNCTION | {"behaviour": "0123456789ab"}): "0x120",
        series("function_calls_total", FUNCTION): calls,
    }


def cost(overhead: str, cpu: str, floor: str = "0.001x80") -> dict[str, str]:
    """Return the series of the budget, with 1 % promised."""
    return {
        series("overhead_seconds_total", {}): overhead,
        series("program_cpu_seconds_total", {}): cpu,
        series("overhead_promised_ratio", {}): "0.01x80",
        series("overhead_floor_ratio", {}): floor,
    }


def creep(lost: str) -> dict[str, str]:
    """Return the series of lost time, of a program that uses half a CPU beside one that uses four."""
    return {
        series("lost_seconds_total", FUNCTION): lost,
        series("lost_seconds_total", FUNCTION | {"function": "load"}): "0+0.3x240",
        series("program_own_cpu_seconds_total", {"program": "shop"}): "0+15x240",
        series("program_own_cpu_seconds_total", {"program": "redis"}): "0+120x240",
    }


def change(values: str, direction: str = "worse") -> dict[str, str]:
    """Return the series of a comparison of two builds."""
    return {
        series("change_alarm", FUNCTION | {"direction": direction}): values,
        series("change_ratio", FUNCTION): "2.1x60",
        series("change_info", FUNCTION | {"base": "v2.4.1", "new": "v2.5.0"}): "1x60",
    }


OF_A_PAGE = HOST | FUNCTION | LEVEL | {"severity": "page"}
OF_A_TICKET = OF_A_PAGE | {"severity": "ticket"}
OF_THE_HOST = HOST | {"severity": "ticket"}
OF_A_PROGRAM = HOST | {"program": "shop", "severity": "ticket"}

CASES = (
    # much slower, and much of the program's time
    Case(
        alert="SpecmineSlower",
        name="a violation pages at once, in the daemon's words",
        series=violation("_ _ 1x60") | info("_ _ 1x60"),
        fires={0: False, 1: True, 20: True},
        labels=OF_A_PAGE,
        texts={
            "summary": TITLE,
            "description": f"{TEXT} Host shop-03:9752. There: specmine show 'checksum' --program 'shop'. If it is "
            "wanted: specmine acknowledge 'checksum'.",
        },
    ),
    Case(
        alert="SpecmineSlower",
        name="without the words the figures are told",
        series=violation("1x60"),
        fires={1: True},
        labels=OF_A_PAGE,
        texts={"summary": "shop: checksum 2.1 times as before, slower"},
    ),
    Case(
        alert="SpecmineSlower",
        name="a scrape gap of three minutes does not end it",
        series={name: f"{values.removesuffix('x60')}x8 stale stale stale stale stale stale "
                      f"{values.removesuffix('x60')}x40" for name, values in violation("1x60").items()},
        fires={3: True, 5: True, 6: True, 7: True, 8: True, 20: True},
        labels=OF_A_PAGE,
    ),
    Case(
        alert="SpecmineSlower",
        name="a refined cause makes no second alert",
        series=violation("1x60") | info("1x9 stale", cause="unknown", title="shop: checksum 2.1x slower since 02:47, "
               "cause not known") | info("_x9 1x50"),
        fires={10: True},
        labels=OF_A_PAGE,
        texts={"summary": TITLE},
    ),
    Case(
        alert="SpecmineSlower",
        name="a restart of the daemon does not end it: the violation is in the store",
        series=violation("1x6 stale stale 1x50", factor="2.1x6 stale stale 2.1x50"),
        fires={2: True, 4: True, 5: True, 20: True},
        labels=OF_A_PAGE,
    ),
    Case(
        alert="SpecmineSlower",
        name="a factor that wanders across the limit stays a page",
        series=violation("1x60", factor="1.6 1.4 1.6 1.4 1.4 1.6 1.4x54"),
        fires={1: True, 2: True, 4: True, 12: True, 25: False},
        labels=OF_A_PAGE,
    ),
    Case(
        alert="SpecmineSlower",
        name="a recovered violation ends within five minutes",
        series=violation("1x9 0x50"),
        fires={4: True, 11: False},
        labels=OF_A_PAGE,
    ),
    Case(
        alert="SpecmineSlower",
        name="an acknowledged violation ends within five minutes, open or not",
        series=violation("1x60", acknowledged="0x9 1x50"),
        fires={4: True, 11: False},
        labels=OF_A_PAGE,
    ),
    Case(
        alert="SpecmineSlower",
        name="a function that is slower only through another one is no page",
        series=violation("1x60", explained="1x60"),
        fires={1: False, 20: False},
    ),
    Case(
        alert="SpecmineSlower",
        name="a small change, and one that costs little, is no page",
        series=violation("1x60", factor="1.4x60") | violation("1x60", cost="0.01x60", function="log_write"),
        fires={1: False, 20: False},
    ),
    Case(
        alert="SpecmineSlower",
        name="where the share of the time is not known the factor decides",
        series={name: values for name, values in violation("1x60").items() if "time_ratio" not in name},
        fires={1: True, 20: True},
        labels=OF_A_PAGE,
    ),
    Case(
        alert="SpecmineSlower",
        name="faster is no page",
        series=violation("1x60", direction="faster"),
        fires={1: False, 20: False},
    ),
    # the others
    Case(
        alert="SpecmineSlowerMinor",
        name="a small change is a ticket",
        series=violation("1x60", factor="1.4x60"),
        fires={0: True, 20: True},
        labels=OF_A_TICKET,
    ),
    Case(
        alert="SpecmineSlowerMinor",
        name="a large change that costs little is a ticket",
        series=violation("1x60", cost="0.01x60"),
        fires={1: True},
        labels=OF_A_TICKET,
    ),
    Case(
        alert="SpecmineSlowerMinor",
        name="what pages is no ticket as well",
        series=violation("1x60"),
        fires={0: False, 20: False},
    ),
    Case(
        alert="SpecmineBehaviourChanged",
        name="calls over new paths are a ticket",
        series=violation("1x60", what="path", direction="other"),
        fires={1: True},
        labels=OF_A_TICKET | {"what": "path", "direction": "other"},
    ),
    Case(
        alert="SpecmineBehaviourChanged",
        name="slower calls have alerts of their own",
        series=violation("1x60") | violation("0x60", what="path", direction="other"),
        fires={1: False, 20: False},
    ),
    Case(
        alert="SpecmineFaster",
        name="faster is good to know",
        series=violation("1x60", direction="faster", factor="0.8x60"),
        fires={1: True},
        labels=OF_A_PAGE | {"direction": "faster", "severity": "info"},
    ),
    Case(
        alert="SpecmineFaster",
        name="once acknowledged it ends",
        series=violation("1x60", direction="faster", factor="0.8x60", acknowledged="1x60"),
        fires={1: False, 20: False},
    ),
    Case(
        alert="SpecmineBuildSlower",
        name="lifetimes of a new build that take longer are a ticket",
        series=change("0 0 1x60"),
        fires={0: False, 1: True},
        labels=HOST | FUNCTION | {"direction": "worse", "severity": "ticket"},
        texts={
            "summary": "shop: checksum takes longer in a new build",
            "description": "Build v2.5.0 against v2.4.1: its lifetimes take longer (2.10 times the median) at two "
            "checks in a row. Of all such alarms on this host within a month at most 5 % are false. Host "
            "shop-03:9752. There: specmine compare v2.4.1 v2.5.0.",
        },
    ),
    Case(
        alert="SpecmineBuildSlower",
        name="a better build is none",
        series=change("1x60", direction="better"),
        fires={1: False, 20: False},
    ),
    Case(
        alert="SpecmineHostDisturbed",
        name="a host that explains violations for minutes",
        series={series("host_disturbed", {}): "1x60"},
        fires={1: False, 3: True},
        labels=OF_THE_HOST,
    ),
    Case(
        alert="SpecmineHostDisturbed",
        name="one burst is none",
        series={series("host_disturbed", {}): "0 0 1 1 0x60"},
        fires={1: False, 3: False, 20: False},
    ),
    Case(
        alert="SpecmineShortOfCpu",
        name="a CPU limit that stops a program for long",
        series={series("program_short_of_cpu", {"program": "shop"}): "1x60"},
        fires={5: False, 12: True},
        labels=OF_A_PROGRAM,
        texts={"summary": "shop is short of CPU time on shop-03:9752"},
    ),
    Case(
        alert="SpecmineShortOfCpu",
        name="a neighbour that comes and goes",
        series={series("program_short_of_cpu", {"program": "shop"}): "1x6 0 1x6 0x60"},
        fires={5: False, 12: False, 20: False},
    ),
    # blind spots
    Case(
        alert="SpecmineDown",
        name="a daemon that does not answer",
        series={series("up", {}): "1 1 0x60"},
        fires={3: False, 7: True},
        labels=OF_THE_HOST,
    ),
    Case(
        alert="SpecmineDown",
        name="a restart is none, nor is another job",
        series={series("up", {}): "1 1 0 0 1x60", 'up{instance="x",job="node"}': "0x60"},
        fires={2: False, 20: False},
    ),
    Case(
        alert="SpecmineAbsent",
        name="no target at all",
        series={'up{instance="x",job="node"}': "1x60"},
        fires={5: False, 11: True},
        labels={"job": "specmine", "severity": "ticket"},
    ),
    Case(
        alert="SpecmineAbsent",
        name="one target is enough, up or not",
        series={series("up", {}): "0x60"},
        fires={11: False, 25: False},
    ),
    Case(
        alert="SpecmineStale",
        name="a loop that stands still",
        series={series("snapshot_timestamp_seconds", {}): "0 30 60 60x60"},
        fires={1: False, 4: True},
        labels=OF_THE_HOST,
        texts={"description": "Its verdicts are 3m 0s old: the daemon's loop stands still."},
    ),
    Case(
        alert="SpecmineStale",
        name="a loop that turns",
        series={series("snapshot_timestamp_seconds", {}): "0+30x60"},
        fires={4: False, 20: False},
    ),
    Case(
        alert="SpecmineNotSeen",
        name="processes whose calls stop",
        series=program(calls="0+300x20 6000x60"),
        fires={10: False, 16: False, 22: True},
        labels=OF_A_PROGRAM,
        texts={"summary": "shop is not seen on shop-03:9752: 4 processes, no call for 5 min"},
    ),
    Case(
        alert="SpecmineNotSeen",
        name="calls that go on, or probes that a person switched off",
        series=program() | {
            series("program_processes", {"instance": "b"}): "2x80",
            series("program_calls_total", {"instance": "b"}): "7x80",
            series("probes_off", {"instance": "b"}): "1x80",
        },
        fires={6: False, 30: False},
    ),
    Case(
        alert="SpecmineNotRunning",
        name="a chosen program that has ended",
        series=program(processes="4x10 0x70"),
        fires={5: False, 12: False, 17: True},
        labels=OF_A_PROGRAM | {"severity": "info"},
    ),
    Case(
        alert="SpecmineNotRunning",
        name="a restart is none",
        series=program(processes="4x10 0 0 0 4x60"),
        fires={6: False, 17: False},
    ),
    Case(
        alert="SpecmineNotChecked",
        name="a function that is called and not checked for half an hour",
        series=checked("0+100x120"),
        fires={30: False, 45: True},
        labels={"instance": HOST["instance"], "program": "shop", "severity": "ticket"},
        texts={"summary": "1 assertions about shop are not checked on shop-03:9752"},
    ),
    Case(
        alert="SpecmineNotChecked",
        name="a function that is not called cannot be checked",
        series=checked("100x120"),
        fires={30: False, 45: False},
    ),
    Case(
        alert="SpecmineCreep",
        name="an eighth of the CPU time lost, and no violation",
        series=creep("0+1.875x240"),
        fires={5: False, 80: True},
        labels={"instance": HOST["instance"], "program": "shop", "severity": "ticket"},
        texts={
            "summary": "shop takes ever longer on shop-03:9752",
            "description": "Calls of checksum have taken 62.5ms a second more than asserted for an hour, and no "
            "violation is open. That is more than a tenth of the program's CPU time. On the host: "
            "specmine functions --program 'shop'.",
        },
    ),
    Case(
        alert="SpecmineCreep",
        name="a hundredth of it",
        series=creep("0+0.15x240"),
        fires={80: False, 110: False},
    ),
    Case(
        alert="SpecmineCreep",
        name="long ago",
        series=creep("0+4x60 240x180"),
        labels={"instance": HOST["instance"], "program": "shop", "severity": "ticket"},
        fires={10: False, 80: False, 110: False},
    ),
    Case(
        alert="SpecmineCreep",
        name="a violation of the program is open: people know",
        series=creep("0+1.875x240") | violation("1x240"),
        fires={80: False, 110: False},
    ),
    Case(
        alert="SpecmineProbesOff",
        name="forgotten for an hour",
        series={series("probes_off", {}): "0 0 1x200"},
        fires={30: False, 70: True},
        labels=OF_THE_HOST | {"severity": "info"},
    ),
    Case(
        alert="SpecmineProbesOff",
        name="off for a moment",
        series={series("probes_off", {}): "0 0 1x60 0x100"},
        fires={30: False, 70: False},
    ),
    Case(
        alert="SpecmineOverBudget",
        name="two per cent where one is promised",
        series=cost("0+0.6x80", "0+30x80"),
        fires={5: False, 30: True},
        labels=OF_THE_HOST,
        texts={"description": "Probes add 2% of one CPU. There: specmine status, or specmine off."},
    ),
    Case(
        alert="SpecmineOverBudget",
        name="as promised, and below the floor of an idle program",
        series=cost("0+0.3x80", "0+30x80"),
        fires={30: False},
    ),
    Case(
        alert="SpecmineOverBudget",
        name="below the floor of an idle program",
        series=cost("0+0.03x80", "0+0.1x80"),
        fires={30: False},
    ),
    Case(
        alert="SpecmineAgentOverBudget",
        name="two per cent of a CPU where one is promised",
        series={series("agent_seconds_total", {}): "0+0.6x100", series("agent_promised_ratio", {}): "0.01x100"},
        fires={5: False, 40: True},
        labels=OF_THE_HOST,
    ),
    Case(
        alert="SpecmineAgentOverBudget",
        name="the seconds of a start",
        series={series("agent_seconds_total", {}): "0 3+0.3x100", series("agent_promised_ratio", {}): "0.01x100"},
        fires={5: False, 40: False},
    ),
    Case(
        alert="SpecmineStoreFailing",
        name="writes that fail",
        series={series("store_failures_total", {}): "0+1x80"},
        fires={5: False, 15: True},
        labels=OF_THE_HOST,
    ),
    Case(
        alert="SpecmineStoreFailing",
        name="records that are dropped",
        series={series("store_dropped_total", {}): "0+5x80"},
        fires={5: False, 15: True},
        labels=OF_THE_HOST,
    ),
    Case(
        alert="SpecmineStoreFailing",
        name="failures of long ago",
        series={series("store_failures_total", {}): "0x10 3x80", series("store_dropped_total", {}): "7x80"},
        fires={40: False},
    ),
)  # fmt: skip
