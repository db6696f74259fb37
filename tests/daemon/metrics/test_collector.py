"""A scrape shows what is known, bounded, escaped, with counters that only grow."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client.core import Metric

from specmine.daemon.controller.allocation.agent_cost import AgentCost
from specmine.daemon.controller.history import Totals
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.documents.status import DaemonFacts, status_of
from specmine.daemon.metrics.collector import SnapshotCollector
from specmine.daemon.metrics.families import FAMILIES
from specmine.daemon.metrics.snapshot import FunctionSnapshot, StatedBehaviour, behaviour_id
from specmine.model.batch import Batch, Lifetime, Prices, Spent, Started
from specmine.model.buckets import bucket_of
from specmine.model.histogram import Histogram
from tests.support.paths import ROOT

BORDER = int(bucket_of(2048))


def status(**facts: Any) -> dict[str, Any]:
    """Return the status of a daemon that watches one program."""
    prices = Prices(count_ns=700, time_ns=1280, path_ns=2200, stepped_ns=9000, sample_ns=2000, bias_ns=300)
    lifetime = Lifetime(
        id="b:1:2", pid=1, executable="/bin/app", build_id="ab", start_ns=0, processes=3, chosen="/sbin/app"
    )
    host = {"hostname": "h", "link": "session", "kernel": "6.18", "utc_offset_ns": str(1_700_000_000 * 10**9)}
    state = ControllerState(
        started=Started(now_ns=10**9, host=host, prices=prices, lifetimes=(lifetime,)),
        now_ns=5 * 10**9,
        lifetimes={lifetime.id: lifetime},
        batch=Batch(now_ns=5 * 10**9, lost={"paths": 4}, unwinding={"complete": 90, "limit": 10}, row_bytes=4096),
        bystander_hits=2,
    )
    spent = Spent(overhead_ns=3e6, program_cpu_ns=4 * 10**9, purposes={"durations": 2e6, "passing": 1e6})
    state = replace(
        state,
        agent_cost=AgentCost(spent_ns=10**7),
        account=replace(state.account, spent=spent, cpu_rate=1e9, now_ns=5 * 10**9),
    )
    return status_of(state, DaemonFacts(version="1.2", pid=7, store={"written": 5, "failures": 0}, **facts))


def reading(name: str = "z", *, calls: int = 1000, fast: int = 700, slow: int = 300, **more: Any) -> FunctionSnapshot:
    """Return an explained function: one behaviour is always fast, one half and half."""
    durations = [1000] * fast + [4000] * slow
    build = more.pop("build_id", "ab")
    stated = (("b->c", (400, 0)), ("not b->c", (300, 300)))
    return FunctionSnapshot(
        key=more.pop("key", f"{build}+{name}"),
        name=name,
        module=more.pop("module", "app"),
        build_id=build,
        programs=more.pop("programs", ("app",)),
        state=more.pop("state", "explained"),
        utility=0.25,
        calls=calls,
        watched_ns=calls * 10**6,
        totals=Totals(timed=len(durations)),
        cost_ns=calls * 1000.0,
        lost_ns=calls * 10.0,
        histogram=Histogram.from_durations(durations),
        bias_ns=0.0,
        borders=(BORDER,),
        behaviours=tuple(
            StatedBehaviour(id=behaviour_id(name, build, text), expression=text, class_calls=each, verdict="holds")
            for text, each in stated
        ),
        checked_utc_ns=1_700_000_000 * 10**9,
        **more,
    )


def scrape(collector: SnapshotCollector) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Return the samples by name and labels; a series that comes twice fails."""
    found: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
    for metric in collector.collect():
        assert isinstance(metric, Metric)
        for sample in metric.samples:
            series = sample.name, frozenset(sample.labels.items())
            assert series not in found
            found[series] = sample.value
    return found


def total(found: Mapping[tuple[str, frozenset[tuple[str, str]]], float], name: str, **labels: str) -> float:
    """Return the sum over the series of a metric that carry some labels."""
    wanted = set(labels.items())
    values = [value for (each, has), value in found.items() if each == name and wanted <= has]
    assert values, f"no {name} with {labels}"
    return sum(values)


def collector(found: Sequence[FunctionSnapshot], series: int = 2000) -> SnapshotCollector:
    """Return a collector over fixed readings."""
    return SnapshotCollector(lambda: (found, status()), series=series)


def test_calls_are_split_by_behaviour_and_class() -> None:
    """Counted calls go to classes as the durations say, and within a class as the assertion says."""
    found = scrape(collector([reading(calls=10_000)]))
    ids = {text: behaviour_id("z", "ab", text) for text in ("b->c", "not b->c")}
    assert total(found, "specmine_calls_total", behaviour=ids["b->c"], upper="2.048e-06") == pytest.approx(4000)
    assert total(found, "specmine_calls_total", behaviour=ids["not b->c"], upper="2.048e-06") == pytest.approx(3000)
    assert total(found, "specmine_calls_total", behaviour=ids["not b->c"], upper="+Inf") == pytest.approx(3000)
    assert total(found, "specmine_calls_total", behaviour=ids["b->c"], upper="+Inf") == 0
    assert total(found, "specmine_calls_total") == pytest.approx(10_000)
    assert total(found, "specmine_call_seconds_total", upper="+Inf") == pytest.approx(3000 * 4e-6, rel=0.02)
    assert total(found, "specmine_call_seconds_total", upper="2.048e-06") == pytest.approx(7000 * 1e-6, rel=0.02)
    assert total(found, "specmine_watched_seconds_total") == 10


def test_an_assertion_has_one_verdict() -> None:
    """Exactly one state of an assertion is 1."""
    found = scrape(collector([reading()]))
    behaviour = behaviour_id("z", "ab", "b->c")
    states = {
        s: total(found, "specmine_assertion_state", behaviour=behaviour, state=s)
        for s in ("holds", "violated", "unknown")
    }
    assert states == {"holds": 1, "violated": 0, "unknown": 0}
    assert total(found, "specmine_assertion_last_check_timestamp_seconds", behaviour=behaviour) == 1_700_000_000


def test_build_ids_stand_only_on_info_and_pids_nowhere() -> None:
    """Series survive a new build where they can: only info metrics name it."""
    for name, labels in scrape(collector([reading()])):
        names = {label for label, _ in labels}
        assert "pid" not in names
        assert ("build_id" not in names) or name.endswith("_info")


@pytest.mark.parametrize("series", [100, 500, 2000])
def test_series_are_bounded_and_the_rest_is_folded(series: int) -> None:
    """However many functions there are, a scrape stays within the limit and loses no calls."""
    found = scrape(collector([reading(f"f{n:03}", calls=1000 + n) for n in range(300)], series))
    assert len(found) <= series
    assert total(found, "specmine_functions_folded") > 0
    assert total(found, "specmine_function_calls_total") == sum(1000 + n for n in range(300))


def test_functions_shown_once_stay_shown() -> None:
    """Which functions are folded does not change with their rank from scrape to scrape."""
    readings = [reading(f"f{n:03}", calls=1000) for n in range(300)]
    view = [readings, readings[::-1]]
    both = SnapshotCollector(lambda: (view.pop(0), status()), series=500)
    shown = [{labels for name, labels in scrape(both) if name == "specmine_function_info"} for _ in range(2)]
    assert shown[0] == shown[1]


def test_two_functions_of_one_name_have_two_series() -> None:
    """The second of one build gets a mark, and keeps it when it overtakes the first."""
    first, second = reading("f", key="k1", calls=9), reading("f", key="k2", calls=7)
    view = [[first, second], [second, first]]
    both = SnapshotCollector(lambda: (view.pop(0), status()), series=2000)
    for _ in range(2):
        found = scrape(both)
        assert total(found, "specmine_function_calls_total", function="f") == 9
        assert total(found, "specmine_function_calls_total", function="f~2") == 7


def series_of(found: Mapping[tuple[str, frozenset[tuple[str, str]]], float]) -> set[tuple[str, frozenset[str]]]:
    """Return the series of functions without what is of a build: ids of behaviours, build-ids, expressions."""
    of_a_build = {"behaviour", "build_id", "expression"}
    return {
        (name, frozenset(f"{label}={value}" for label, value in labels if label not in of_a_build))
        for name, labels in found
        if "function" in dict(labels)
    }


def test_a_new_build_ends_no_series_and_begins_none() -> None:
    """Dashboards and rates go on: the labels are the same, counters add up over builds, the newest has the state."""
    old, new = reading("f", build_id="ab", calls=1000, seen_ns=5), reading("f", build_id="cd", calls=20, seen_ns=9)
    gone = replace(old, running=False)
    view = [[old], [old, new], [gone, replace(new, calls=70, state="single")], [replace(new, calls=90, state="single")]]
    seen = SnapshotCollector(lambda: (view.pop(0), status()), series=2000)
    found = [scrape(seen) for _ in range(4)]
    assert [series_of(each) for each in found] == [series_of(found[0])] * 2 + [series_of(found[2])] * 2
    assert [total(each, "specmine_function_calls_total", function="f") for each in found] == [1000, 1020, 1070, 1090]
    builds = [{dict(each).get("build_id") for name, each in one if name == "specmine_function_info"} for one in found]
    assert builds == [{"ab"}, {"ab", "cd"}, {"cd"}, {"cd"}]
    assert total(found[2], "specmine_function_state", state="single") == 1
    assert {dict(each)["state"] for name, each in found[2] if name == "specmine_function_state"} == {"single"}


def test_programs_have_series_of_their_own() -> None:
    """A function of that name in two programs is two; one of a library that both share names both."""
    readings = [
        reading("f", key="k1", programs=("shop",), calls=5),
        reading("f", key="k2", programs=("redis",), calls=7),
        reading("write", key="k3", programs=("redis", "shop"), calls=11),
    ]
    found = scrape(collector(readings))
    assert total(found, "specmine_function_calls_total", program="shop") == 5
    assert total(found, "specmine_function_calls_total", program="redis") == 7
    assert total(found, "specmine_function_calls_total", program="redis,shop") == 11


def test_the_programs_chosen_are_shown_with_what_was_seen_of_them() -> None:
    """One that runs under another name than it was chosen by is one program; one that does not run has no process."""
    chosen = ("/sbin/app", "/opt/other", "cache")
    view = lambda: ([reading(calls=400), reading("y", calls=100)], status(programs=chosen))  # noqa: E731
    found = scrape(SnapshotCollector(view, series=2000))
    processes = {dict(each)["program"]: n for (name, each), n in found.items() if name == "specmine_program_processes"}
    assert processes == {"app": 3, "other": 0, "cache": 0}
    assert all(total(found, "specmine_program_chosen", program=each) == 1 for each in processes)
    assert total(found, "specmine_program_calls_total", program="app") == 500
    assert not any(name == "specmine_program_last_call_timestamp_seconds" for name, _ in found)


def test_a_function_called_other_is_not_the_fold() -> None:
    """A program may well have a function of that name."""
    found = scrape(collector([reading("other")]))
    assert total(found, "specmine_function_calls_total", function="other~2") == 1000


def test_the_status_is_shown() -> None:
    """Budget, prices, losses and stacks arrive in base units."""
    found = scrape(collector([]))
    assert total(found, "specmine_overhead_promised_ratio") == 0.01
    assert total(found, "specmine_overhead_seconds_total") == pytest.approx(0.003)
    assert total(found, "specmine_overhead_purpose_seconds_total", purpose="durations") == pytest.approx(0.002)
    assert total(found, "specmine_overhead_purpose_seconds_total", purpose="passing") == pytest.approx(0.001)
    assert total(found, "specmine_program_cpu_seconds_total") == 4
    assert total(found, "specmine_agent_seconds_total") == pytest.approx(0.01)
    assert total(found, "specmine_price_seconds", what="time") == pytest.approx(1.28e-6)
    assert total(found, "specmine_lost_total", what="paths") == 4
    assert total(found, "specmine_stacks_total", outcome="limit") == 10
    assert total(found, "specmine_unwind_row_bytes") == 4096
    assert total(found, "specmine_bystander_hits_total") == 2
    assert total(found, "specmine_processes") == 3
    assert total(found, "specmine_start_timestamp_seconds") == 1_700_000_001
    assert total(found, "specmine_store_observations_total") == 5
    assert ("specmine_store_dropped_total", frozenset()) not in found


def test_the_documentation_lists_the_metrics() -> None:
    """docs/metrics.md has each metric with its kind and labels, and no other."""
    text = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(specmine_\w+)` \| (\w+) \| ([^|]*) \|", text, flags=re.MULTILINE)
    told = {name: (kind, tuple(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows}
    assert told == {family.shown: (family.kind, family.labels) for family in FAMILIES}
