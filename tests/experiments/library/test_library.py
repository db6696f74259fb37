"""Weights, quota, cores, pairs, noise, steal, timers: derived from a model of a host, or from made-up samples."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specmine.experiments.library import EXPERIMENTS, REPEATED
from specmine.experiments.library.balancing import EXPERIMENT as BALANCING
from specmine.experiments.library.placement import ordered_bursts, rule_of, transitions
from specmine.experiments.types import MS, SECOND, Counters, LoadRun, TaskRun
from specmine.model.host.environment import Environment
from tests.support.simulated_host import HOST, Model, answered, context_for, perform

CONTRACT = [
    "cores",
    "smt",
    "timeslice",
    "weights",
    "placement",
    "balancing",
    "virtualization-constant",
    "virtualization-load",
    "additional-load",
    "quota",
    "noise",
    "timers",
    "steal",
]


def test_the_names_are_those_of_the_contract() -> None:
    """Thirteen experiments, each once."""
    assert list(EXPERIMENTS) == CONTRACT


def test_a_daemon_repeats_the_most_important_first() -> None:
    """What loads all CPUs for long is not among them; ranks are unique, so the order is not that of the list."""
    assert REPEATED[:3] == ("timers", "timeslice", "noise")
    assert set(CONTRACT) - set(REPEATED) == {"placement", "balancing", "virtualization-load"}
    assert len({EXPERIMENTS[name].rank for name in REPEATED}) == len(REPEATED)


def test_each_property_of_the_environment_has_one_experiment() -> None:
    """What an experiment is said to measure is a field of the vector, and no two measure the same."""
    measured = [name for experiment in EXPERIMENTS.values() for name in experiment.environment]
    assert len(set(measured)) == len(measured)
    assert set(measured) <= {field.name for field in fields(Environment)}


def test_weights_follow_the_table_inside_a_group_only() -> None:
    """Nice 0 beside 5 gets 75 % in its own group and half beside another group."""
    experiment = EXPERIMENTS["weights"]
    finding, _ = perform(experiment, Model(), context_for(experiment))
    assert finding.value == pytest.approx(1024 / (1024 + 335), abs=0.01)
    assert finding.evidence["group_share"] == pytest.approx(0.5, abs=0.02)
    assert all(check.ok for check in finding.checks)


def test_a_host_that_ignores_nice_is_not_believed() -> None:
    """If a competitor of nice 5 takes half, the checks say so."""
    experiment = EXPERIMENTS["weights"]
    flat = Model(weights={0: 1024, 5: 1024, 10: 1024, 19: 1024})
    finding, _ = perform(experiment, flat, context_for(experiment))
    assert not all(check.ok for check in finding.checks)


@settings(max_examples=25, deadline=None)
@given(st.integers(5, 90), st.sampled_from([20, 50, 100]))
def test_any_limit_is_found(percent: int, period_ms: int) -> None:
    """Quota and period come out within 3 %, from pauses alone."""
    experiment = EXPERIMENTS["quota"]
    quota = period_ms * MS * percent // 100
    finding, _ = perform(experiment, Model(), context_for(experiment, quota=quota, period=period_ms * MS))
    assert finding.value == pytest.approx(percent / 100, rel=0.03)
    assert finding.evidence["period_seconds"] == pytest.approx(period_ms / 1e3, rel=0.03)
    assert finding.ground_truth == pytest.approx(percent / 100, rel=1e-6)


def test_visits_of_others_are_no_pauses_of_the_limit() -> None:
    """A visit of 3 ms in every turn changes neither the limit found nor the number of its pauses."""
    experiment = EXPERIMENTS["quota"]
    context = context_for(experiment, quota=30 * MS, period=50 * MS)
    plain, (run,) = perform(experiment, Model(), context)
    (task,) = run.tasks
    start = task.samples[:, 1] + 5 * MS
    visits = np.column_stack([start, start + 3 * MS, np.zeros(len(start), np.int64)])
    samples = np.vstack([task.samples, visits])
    samples = samples[np.argsort(samples[:, 0])]
    visited = replace(task, samples=samples)
    finding = experiment.derive(context, (replace(run, tasks=(visited,)),))
    assert all(check.ok for check in finding.checks)
    assert (finding.evidence["gaps"], finding.evidence["visits"]) == (plain.evidence["gaps"], len(visits))
    assert finding.evidence["period_seconds"] == pytest.approx(0.05, rel=0.001)
    # what others took of a turn is not what the limit gave
    assert finding.value == pytest.approx((30 - 3) / 50, rel=0.001)


def test_no_limit_is_an_answer() -> None:
    """Without a limit there is no value, and that is settled, not a failure."""
    experiment = EXPERIMENTS["quota"]
    finding, _ = perform(experiment, Model(), context_for(experiment))
    assert finding.conclusive
    assert finding.reason is not None
    assert finding.reason.code == "no-quota"


def _shared(load_run: LoadRun, cores: float) -> LoadRun:
    """Stretch the iterations of tasks that are not pinned as if they shared so many cores fairly."""
    loose = [run for run in load_run.tasks if run.task.cpu is None]
    if not loose:
        return load_run
    factor = max(1.0, len(loose) / cores)
    tasks = []
    for run in load_run.tasks:
        samples = run.samples.copy()
        samples[:, :2] = samples[:, :2] * factor
        samples = samples[samples[:, 1] <= run.end_ns]
        tasks.append(replace(run, samples=samples))
    return replace(load_run, tasks=tuple(tasks))


@pytest.mark.parametrize("truth", [1.0, 1.5, 2.0])
def test_effective_cores_may_be_a_fraction(truth: float) -> None:
    """What four tasks get done together over what one does alone is the number of cores."""
    experiment = EXPERIMENTS["cores"]
    context = context_for(experiment, replace(HOST, quota=None))
    runs: tuple[LoadRun, ...] = ()
    while (load := experiment.plan(context, runs)) is not None:
        runs = (*runs, _shared(answered(load, Model()), truth))
    finding = experiment.derive(context, runs)
    assert finding.value == pytest.approx(truth, rel=0.02)
    assert all(check.ok for check in finding.checks)


def test_pairs_that_do_not_slow_each_other_are_separate_cores() -> None:
    """Capacity 2 and no sibling in the topology agree."""
    experiment = EXPERIMENTS["smt"]
    finding, _ = perform(experiment, Model(), context_for(experiment))
    assert finding.value == pytest.approx(2.0, abs=0.01)
    assert finding.evidence["smt"] is False
    assert all(check.ok for check in finding.checks)


@pytest.mark.parametrize(("told", "believed"), [(((0, 1),), True), (((0,), (1,)), False)])
def test_siblings_slow_each_other_and_the_topology_must_agree(
    told: tuple[tuple[int, ...], ...], believed: bool
) -> None:
    """A pair at 1.3 cores is SMT; a topology that says otherwise makes it unsure."""
    experiment = EXPERIMENTS["smt"]
    context = context_for(experiment, replace(HOST, siblings=told))
    runs: tuple[LoadRun, ...] = ()
    while (load := experiment.plan(context, runs)) is not None:
        run = answered(load, Model())
        if len(load.tasks) == 2:
            timed = run.task("timed")
            samples = timed.samples.copy()
            samples[:, :2] = samples[:, :2] * 2 // 1.3
            run = replace(run, tasks=(replace(timed, samples=samples), run.tasks[1]))
        runs = (*runs, run)
    finding = experiment.derive(context, runs)
    assert finding.value == pytest.approx(1.3, rel=0.02)
    assert finding.evidence["smt"] is True
    assert all(check.ok for check in finding.checks) is believed


def _watch(name: str, gaps_ns: list[int], *, seconds: float, waited_ns: int = 0, steal_s: float = 0.0) -> LoadRun:
    experiment = EXPERIMENTS[name]
    load = experiment.plan(context_for(experiment), ())
    assert load is not None
    end = round(seconds * SECOND)
    starts = np.linspace(0, end * 0.99, len(gaps_ns)).astype(np.int64)
    samples = np.column_stack([starts, starts + np.array(gaps_ns, np.int64), np.ones(len(gaps_ns), np.int64)])
    task = TaskRun(
        task=load.tasks[0], start_ns=0, end_ns=end, cpu_ns=end, samples=samples.reshape(-1, 3), waited_ns=waited_ns
    )
    counters = (
        Counters(at_ns=0, busy={1: 0.0}, steal={1: 0.0}, interrupts={1: 0}),
        Counters(at_ns=end, busy={1: seconds}, steal={1: steal_s}, interrupts={1: round(250 * seconds)}),
    )
    return LoadRun(load=load, tasks=(task,), counters=counters)


def test_noise_is_the_time_lost_to_ticks() -> None:
    """250 interruptions of 20 us a second are 0.5 % of a CPU."""
    experiment = EXPERIMENTS["noise"]
    finding = experiment.derive(context_for(experiment), (_watch("noise", [20_000] * 375, seconds=1.5),))
    assert finding.value == pytest.approx(0.005, rel=0.02)
    assert finding.evidence["lost_a_tick_seconds"] == pytest.approx(20e-6, rel=0.02)
    assert all(check.ok for check in finding.checks)


def test_noise_beside_another_task_is_not_believed() -> None:
    """Time waited for others is not noise of the machine."""
    experiment = EXPERIMENTS["noise"]
    run = _watch("noise", [20_000] * 375, seconds=1.5, waited_ns=100 * MS)
    assert not all(check.ok for check in experiment.derive(context_for(experiment), (run,)).checks)


def test_steal_is_what_nothing_here_explains() -> None:
    """20 gaps of 5 ms in 2 s that the run queue does not explain are 5 %, and the kernel's steal time agrees."""
    experiment = EXPERIMENTS["steal"]
    run = _watch("steal", [5 * MS] * 20, seconds=2.0, steal_s=0.10)
    finding = experiment.derive(context_for(experiment), (run,))
    assert finding.value == pytest.approx(0.05)
    assert finding.ground_truth == pytest.approx(0.05)
    assert finding.evidence["hypervisor_slice_seconds"] == pytest.approx(0.005)
    assert all(check.ok for check in finding.checks)
    waited = experiment.derive(
        context_for(experiment), (_watch("steal", [5 * MS] * 20, seconds=2.0, waited_ns=100 * MS),)
    )
    assert waited.value == pytest.approx(0.0)


def test_timers_tell_slack_and_overshoot() -> None:
    """The default slack is the difference to a sleeper with the least one."""
    experiment = EXPERIMENTS["timers"]
    context = context_for(experiment)
    late = {"default": 70_000, "least": 20_000, "long": 5_020_000}
    runs: tuple[LoadRun, ...] = ()
    while (load := experiment.plan(context, runs)) is not None:
        run = answered(load, Model())
        task = run.tasks[0]
        samples = task.samples.copy()
        samples[:, 1] += late.get(load.label, 0)
        if load.label in ("clock", "syscall"):
            samples[:, 1] = samples[:, 0] + 1000 * 25
        runs = (*runs, replace(run, tasks=(replace(task, samples=samples),)))
    finding = experiment.derive(context, runs)
    assert finding.value == pytest.approx(70e-6)
    assert finding.evidence["slack_seconds"] == pytest.approx(50e-6)
    assert finding.evidence["clock_seconds"] == pytest.approx(25e-9)
    assert all(check.ok for check in finding.checks)


def _balanced(patterns: list[list[float]]) -> LoadRun:
    """Return tasks whose iterations take these times, ms, in each phase of 3 s; they end one after the other."""
    context = context_for(BALANCING)
    load = BALANCING.plan(context, ())
    assert load is not None
    runs = []
    for number, (task, times) in enumerate(zip(load.tasks, patterns, strict=True)):
        now, rows = 0.0, []
        end = (number + 1) * 3e9
        while now < end:
            length = times[min(int(now / 3e9), len(times) - 1)] * MS
            rows.append((now, now + length, 0))
            now += length
        runs.append(
            TaskRun(task=task, start_ns=0, end_ns=int(end), cpu_ns=0, samples=np.array(rows, np.int64).reshape(-1, 3))
        )
    return LoadRun(load=load, tasks=tuple(runs))


@pytest.mark.parametrize(
    ("rule", "patterns"),
    [
        # all share all CPUs: everybody gains at once
        ("immediate", [[120], [120, 100], [120, 100, 80], [120, 100, 80, 60], [120, 100, 80, 60], [120, 100, 80, 60]]),
        # the same on CPUs that got slower by a quarter just then
        ("immediate", [[120], [120, 125], [120, 125, 80], [120, 125, 80, 60], [120, 125, 80, 60], [120, 125, 80, 60]]),
        # mates of the first gain; after the second of them has gone its last mate runs alone and nobody is moved
        ("lazy", [[120], [120, 80], [120, 80, 40], [120], [120], [120]]),
        # the same, but then a task of the other CPU comes over
        ("active", [[120], [120, 80], [120, 80, 80], [120, 120, 80], [120, 120, 80], [120, 120, 80]]),
    ],
)
def test_balancing_is_told_by_who_gains(rule: str, patterns: list[list[float]]) -> None:
    """The three strategies of the thesis on two CPUs with three tasks each."""
    finding = BALANCING.derive(context_for(BALANCING), (_balanced(patterns),))
    assert finding.value == rule


def test_bursts_and_rules_of_placement() -> None:
    """Runs of slow iterations are bursts; who follows whom tells the rule."""
    times = np.array([10, 20, 20, 20, 10, 20, 10, 20, 20], np.int64) * MS
    starts = np.concatenate([[0], np.cumsum(times)[:-1]]).astype(np.int64)
    assert [(task, length) for _, task, length in ordered_bursts([(starts, times)], 10 * MS)] == [(0, 3), (0, 2)]
    assert rule_of(transitions([0, 1, 2, 3] * 5, 4), 4) == "cyclic"
    assert rule_of(transitions([0, 3, 3, 3, 3, 3, 3, 3], 4), 4) == "same-as-parent"
    assert rule_of(transitions([0, 1, 1, 0, 0, 1, 0, 0, 1, 1, 0, 1], 2), 2) == "random"
    assert rule_of(transitions([0, 0, 0, 0, 1, 0, 0, 0], 2), 2) == "none"


@pytest.mark.parametrize("name", ["cores", "smt", "virtualization-constant"])
def test_a_cpu_that_changes_its_speed_gives_no_value(name: str) -> None:
    """What was timed before and after differs by 30 %: withheld by that check; by 3 %: it is not."""
    experiment = EXPERIMENTS[name]
    context = context_for(experiment)
    _, runs = perform(experiment, Model(), context)
    for factor, ok in ((1.3, False), (1 / 1.3, False), (1.03, True)):
        last = runs[-1]
        times = last.tasks[0].samples.copy()
        times[:, 1] = times[:, 0] + (factor * (times[:, 1] - times[:, 0])).astype(np.int64)
        slower = replace(last, tasks=(replace(last.tasks[0], samples=times), *last.tasks[1:]))
        finding = experiment.derive(context, (*runs[:-1], slower))
        assert [check.ok for check in finding.checks if check.name == "speed_kept"] == [ok]


def test_time_of_others_is_no_noise_of_the_host() -> None:
    """What the watcher waited for other tasks is taken from the share lost, and of three looks the quietest counts."""
    experiment = EXPERIMENTS["noise"]
    context = context_for(experiment)
    load = experiment.plan(context, ())
    assert load is not None
    run = answered(load, Model())
    (watch,) = run.tasks
    ticks = np.arange(0, watch.end_ns, 4 * MS)
    visits = ticks[::25] + MS  # ten a second, 1 ms each: 1 % of the time

    def looked(visited: bool) -> LoadRun:
        gaps = [(at, at + 40_000, 0) for at in ticks] + [(at, at + MS, 0) for at in visits if visited]
        waited = len(visits) * MS if visited else 0
        return replace(run, tasks=(replace(watch, samples=np.array(sorted(gaps), np.int64), waited_ns=waited),))

    disturbed, quiet = looked(True), looked(False)
    assert experiment.plan(context, (disturbed,)) is not None
    assert experiment.plan(context, (disturbed, quiet)) is None
    assert experiment.plan(context, (disturbed,) * 3) is None
    alone = experiment.derive(context, (quiet,))
    assert alone.value == pytest.approx(0.01, rel=0.02)
    assert experiment.derive(context, (disturbed,) * 3).value == pytest.approx(alone.value, rel=0.05)
    assert experiment.derive(context, (disturbed, quiet)).value == alone.value
