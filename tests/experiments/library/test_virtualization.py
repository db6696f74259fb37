"""Overheads against a reference machine and under load, additional load: from a modelled host and made-up counters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from specmine.experiments.library import EXPERIMENTS
from specmine.experiments.library.virtualization import WORK, cells
from specmine.experiments.results.document import document
from specmine.experiments.results.journal import Journal
from specmine.experiments.types import SECOND, Counters, Finding, LoadRun
from tests.support.simulated_host import HOST, Model, answered, context_for

CONSTANT, LOADED = EXPERIMENTS["virtualization-constant"], EXPERIMENTS["virtualization-load"]


def _short(run: LoadRun) -> LoadRun:
    """Let the model's iterations, seconds long, be as many and short as real ones are."""
    tasks = []
    for task in run.tasks:
        samples = task.samples.repeat(50, axis=0)
        samples[:, :2] //= 1000
        tasks.append(replace(task, samples=samples))
    return replace(run, tasks=tuple(tasks))


def _constant(**parameters: Any) -> Finding:
    context = context_for(CONSTANT, **parameters)
    runs: tuple[LoadRun, ...] = ()
    while (load := CONSTANT.plan(context, runs)) is not None:
        runs = (*runs, _short(answered(load, Model())))
    return CONSTANT.derive(context, runs)


def test_without_a_reference_there_is_no_overhead_but_a_drift() -> None:
    """The constant overhead needs the same work on another machine; against the best times here it is a drift."""
    finding = _constant()
    assert finding.value is None
    assert finding.reason is not None
    assert finding.reason.code == "no-reference"
    seconds = finding.evidence["seconds"]
    assert set(seconds) == {"integer", "float", "sort", "memory"}
    slower = _constant(best={name: each / 1.5 for name, each in seconds.items()})
    assert slower.evidence["drift"]["integer"] == pytest.approx(1.5)
    assert _constant(best=seconds).evidence["drift"]["integer"] == pytest.approx(1.0)


def test_the_overhead_is_time_here_over_time_there() -> None:
    """A reference twice as fast gives a factor of two for each resource; other work is refused."""
    seconds = {name: each / 2 for name, each in _constant().evidence["seconds"].items()}
    finding = _constant(reference={"seconds": seconds, "work": WORK})
    assert finding.value == pytest.approx(2.0)
    assert finding.evidence["factors"] == {name: pytest.approx(2.0) for name in seconds}
    assert all(check.ok for check in finding.checks)
    other = _constant(reference={"seconds": seconds, "work": "python-1"})
    assert other.reason is not None
    assert other.reason.code == "other-work"


def test_the_best_times_are_kept_over_runs() -> None:
    """A slow run does not become the best, and another CPU's times do not count."""
    journal = Journal()
    for factor in (1.0, 1.3):
        evidence = {"seconds": {"integer": 0.001 * factor}, "drift": {"integer": factor}, "work": WORK}
        journal.add(document(CONSTANT, Finding(evidence=evidence), HOST, utc_ns=0, window_ns=(0, SECOND), cpu_ns=1))
    last = journal.entries[CONSTANT.name]["last"]
    assert CONSTANT.recall(last, HOST) == {"best": {"integer": pytest.approx(0.001)}}
    assert CONSTANT.recall(last, replace(HOST, cpu_model="another CPU")) == {}
    assert CONSTANT.recall({**last, "evidence": {**last["evidence"], "work": "native-1"}}, HOST) == {}


def test_streams_that_only_share_have_no_overhead() -> None:
    """On a host where r streams on a CPU take r times as long each, every factor is 1."""
    context = context_for(LOADED)
    runs: tuple[LoadRun, ...] = ()
    while (load := LOADED.plan(context, runs)) is not None:
        runs = (*runs, answered(load, Model(slice_ns=SECOND // 50)))
    finding = LOADED.derive(context, runs)
    assert finding.value == pytest.approx(1.0, abs=0.1)
    assert len(runs) == len(cells(context))
    assert finding.evidence["trees"]["memory"] == [f"always: {finding.evidence['factors']['memory']['0,1']:.4g}"]


def test_the_factorial_covers_every_level_with_a_disk(tmp_path: object) -> None:
    """With a disk each resource is timed alone and at each level of itself and the other two."""
    found = cells(context_for(LOADED, disk=str(tmp_path)))
    assert len(found) == 3 * (1 + 2 * 3 * 3)
    assert len(set(found)) == len(found)


def test_a_speed_up_is_not_an_overhead() -> None:
    """Streams that share better than fairly get a factor below 1: it is signed."""
    context = context_for(LOADED)
    runs: tuple[LoadRun, ...] = ()
    while (load := LOADED.plan(context, runs)) is not None:
        run = answered(load, Model())
        leader = run.leaders[0]
        times = 100 if load.label.startswith("cpu alone") else 160 if load.label == "cpu:2,0" else 100
        samples = leader.samples[:1].repeat(40, axis=0)
        samples[:, 1] = samples[:, 0] + times
        runs = (*runs, replace(run, tasks=(replace(leader, samples=samples), *run.tasks[1:])))
    factors = LOADED.derive(context, runs).evidence["factors"]["cpu"]
    assert factors["2,0"] == pytest.approx(0.8)
    assert factors["1,0"] == pytest.approx(1.0)


def test_additional_load_is_a_distribution() -> None:
    """Half of the time 10 % busy, half of it 50 %: mean 30 %, quartiles 10 and 50 %; rates by the second."""
    experiment = EXPERIMENTS["additional-load"]
    counters = [Counters(at_ns=0, busy={0: 0.0, 1: 0.0}, steal={0: 0.0, 1: 0.0}, pressure={"io": 0.0})]
    for number in range(1, 41):
        before = counters[-1]
        step = 0.05 if number <= 20 else 0.25  # of half a second, on each CPU
        counters.append(
            Counters(
                at_ns=number * SECOND // 2,
                busy={cpu: each + step for cpu, each in before.busy.items()},
                steal={0: 0.0, 1: 0.0},
                disk_bytes=before.disk_bytes + 500,
                network_bytes=before.network_bytes + (1000 if number % 2 else 0),
                pressure={"io": 0.01 * number},
            )
        )
    load = experiment.plan(context_for(experiment), ())
    assert load is not None
    finding = experiment.derive(context_for(experiment), (LoadRun(load=load, counters=tuple(counters)),))
    assert finding.value == pytest.approx(0.3)
    assert finding.evidence["cpu_busy"][1] == pytest.approx(0.1)
    assert finding.evidence["cpu_busy"][3] == pytest.approx(0.5)
    assert finding.evidence["disk_bytes_per_second"][2] == pytest.approx(1000)
    assert finding.evidence["stalled"]["io"] == pytest.approx(0.02)


def test_a_plan_without_tasks_only_looks() -> None:
    """The additional load is looked at for as long as was asked."""
    experiment = EXPERIMENTS["additional-load"]
    load = experiment.plan(context_for(experiment, seconds=3 * SECOND), ())
    assert load is not None
    assert (load.tasks, load.seconds) == ((), 3.0)
