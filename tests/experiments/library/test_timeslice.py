"""The timeslice: derived from a model of a host whose slice is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specmine.experiments.library import EXPERIMENTS
from specmine.experiments.library.timeslice import effective_slice_ns
from specmine.experiments.types import MS, SECOND, Finding, LoadRun
from tests.support.simulated_host import HOST, Model, answered, context_for, perform

TIMESLICE = EXPERIMENTS["timeslice"]


@settings(max_examples=25, deadline=None)
@given(st.integers(1_500_000, 25 * MS))
def test_any_slice_is_found(slice_ns: int) -> None:
    """From 1.5 to 25 ms the derived slice is the model's within 1 %, whatever it is."""
    finding, _ = perform(TIMESLICE, Model(slice_ns=slice_ns), context_for(TIMESLICE))
    assert finding.value == pytest.approx(slice_ns / 1e9, rel=0.01)
    assert finding.interval is not None
    low, high = finding.interval
    assert isinstance(finding.value, float)
    assert low <= finding.value <= high


def test_all_checks_hold_on_an_undisturbed_host() -> None:
    """Nothing speaks against the value, and the thesis' two clusters agree with the gaps."""
    finding, _ = perform(TIMESLICE, Model(), context_for(TIMESLICE))
    assert all(check.ok for check in finding.checks)
    assert finding.ground_truth == pytest.approx(0.004)
    assert finding.evidence["two_cluster_slice_seconds"] == pytest.approx(0.004, rel=0.02)
    assert finding.evidence["interrupted_share"] == pytest.approx(0.25, abs=0.05)
    assert finding.evidence["fixed_request"] is True


def test_a_competitor_of_others_fails_the_checks() -> None:
    """One more task on the CPU turns 50 % lost into 67 %: the value is not believed."""
    finding, _ = perform(TIMESLICE, Model(foreign=1), context_for(TIMESLICE))
    failed = {check.name for check in finding.checks if not check.ok}
    assert {"lost_beside_one", "lost_beside_two"} <= failed


def test_short_visits_of_others_fail_a_check() -> None:
    """Others that come often and briefly end turns early without a gap of their own: the value is not believed."""
    context = context_for(TIMESLICE)
    _, runs = perform(TIMESLICE, Model(), context)
    visited = tuple(
        replace(run, tasks=tuple(replace(task, involuntary=3 * len(task.samples)) for task in run.tasks))
        for run in runs
    )
    failed = {check.name for check in TIMESLICE.derive(context, visited).checks if not check.ok}
    assert failed == {"preemptions_a_gap"}


def _cut(run: LoadRun, random: np.random.Generator, visits: float) -> LoadRun:
    """Return the run as it is where others come so often a second and end turns early, own and others' alike."""
    watch = run.task("watch")
    competitors = len(run.load.tasks) - 1
    lengths: list[float] = []
    while sum(lengths) < watch.end_ns:
        # the scheduler is fair: over some rounds all have had as much
        drawn = np.minimum(random.exponential(SECOND / visits, 8), watch.task.slice_ns)
        turns = np.array([random.permutation(drawn) for _ in range(competitors + 1)])
        lengths += np.column_stack([turns[:competitors].sum(axis=0), turns[competitors]]).ravel().tolist()
    pairs = np.cumsum(lengths).astype(np.int64).reshape(-1, 2)
    edges = np.column_stack([np.concatenate([[0], pairs[:-1, 1]]), pairs[:, 0]])
    samples = np.column_stack([edges, np.zeros(len(edges), np.int64)])
    tasks = tuple(replace(each, samples=samples) if each is watch else each for each in run.tasks)
    return replace(run, tasks=tasks)


def _visited(visits: float, seed: int) -> Finding:
    context = context_for(TIMESLICE, slice=104 * MS)
    random = np.random.default_rng(seed)
    runs: tuple[LoadRun, ...] = ()
    while (load := TIMESLICE.plan(context, runs)) is not None:
        run = answered(load, Model())
        runs = (*runs, _cut(run, random, visits) if load.label.startswith("gaps") else run)
    return TIMESLICE.derive(context, runs)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("visits", [2, 8, 14, 25, 60])
def test_long_turns_that_visits_cut_give_their_length_or_nothing(visits: float, seed: int) -> None:
    """Turns of 104 ms, cut at random: at 2 visits a second all are found, at 60 none; what is found is 104 ms."""
    finding = _visited(visits, seed)
    failed = {check.name for check in finding.checks if not check.ok}
    found = finding.value is not None and not failed
    if found:
        assert finding.value == pytest.approx(0.104, rel=0.01)
    assert found or visits > 2
    assert not found or visits < 60


def test_one_turn_in_four_left_whole_is_enough() -> None:
    """At the 14 visits a second that a kernel pays to an idle CPU by itself, most runs find turns of 104 ms."""
    found = [_visited(14, seed) for seed in range(20)]
    known = [each for each in found if each.value is not None and all(check.ok for check in each.checks)]
    assert len(known) > 10


def test_visits_of_one_length_are_not_the_slice() -> None:
    """Three visits of 2.7 ms to each turn of 104 ms make most gaps, but not most of the time lost."""
    context = context_for(TIMESLICE, slice=104 * MS)
    runs: tuple[LoadRun, ...] = ()
    while (load := TIMESLICE.plan(context, runs)) is not None:
        run = answered(load, Model())
        if load.label.startswith("gaps"):
            watch = run.task("watch")
            starts = (watch.samples[:, 1:2] + np.array([[20 * MS, 45 * MS, 70 * MS]])).ravel()
            visits = np.column_stack([starts, starts + 2.7 * MS, np.zeros(len(starts))]).astype(np.int64)
            samples = np.vstack([watch.samples, visits])
            visited = replace(watch, samples=samples[np.argsort(samples[:, 0])])
            run = replace(run, tasks=(visited, *run.tasks[1:]))
        runs = (*runs, run)
    finding = TIMESLICE.derive(context, runs)
    assert finding.value == pytest.approx(0.0027)
    assert "time_in_longer_gaps" in {check.name for check in finding.checks if not check.ok}


def test_cfs_is_told_by_its_ratio() -> None:
    """Where all turns together take one period, two competitors make a gap of 4/3, and that is accepted."""
    finding, _ = perform(TIMESLICE, Model(slice_ns=12 * MS, cfs=True), context_for(TIMESLICE))
    ratio = next(check for check in finding.checks if check.name == "gap_beside_two_to_one")
    assert ratio.value == pytest.approx(4 / 3, abs=0.02)
    assert ratio.ok
    assert finding.evidence["fixed_request"] is False


def test_the_thesis_set_up_is_refused_where_its_demand_exceeds_the_slice() -> None:
    """20 ms beside a slice of 4 ms is one cluster at twice the demand, not a slice."""
    context = context_for(TIMESLICE, method="clusters", demand=20 * MS)
    finding, runs = perform(TIMESLICE, Model(), context)
    assert finding.value is None
    assert finding.reason is not None
    assert finding.reason.code == "single-cluster"
    assert "2.0 times" in finding.reason.text
    assert len(runs) == 2


@pytest.mark.parametrize("slice_ms", [52, 104])
def test_the_thesis_set_up_works_where_the_slice_is_longer(slice_ms: int) -> None:
    """With slices of 52 and 104 ms the difference of the clusters is the slice, and the second run gives twice that."""
    context = context_for(TIMESLICE, method="clusters", demand=20 * MS)
    finding, _ = perform(TIMESLICE, Model(slice_ns=slice_ms * MS), context)
    assert finding.value == pytest.approx(slice_ms / 1e3, rel=0.05)
    assert all(check.ok for check in finding.checks)
    assert finding.evidence["interrupted_share"] == pytest.approx(20 / slice_ms, abs=0.08)


def test_the_thesis_set_up_works_on_a_cpu_of_two_speeds() -> None:
    """Demands that take 20 ms and 32 ms in turn make four lengths of time, and still one slice."""
    context = context_for(TIMESLICE, method="clusters", demand=20 * MS)
    runs: tuple[LoadRun, ...] = ()
    while (load := TIMESLICE.plan(context, runs)) is not None:
        run, pause = answered(load, Model()), 52 * MS * (len(load.tasks) - 1)
        used, now, rows, cpu = 7.0 * MS, 0.0, [], 0.0
        for number in range(300):
            demand = 20.17 * MS if number % 50 < 25 else 32.29 * MS
            pauses, used = divmod(used + demand, 52 * MS)
            rows.append((now, now + demand + pauses * pause, 0))
            now, cpu = rows[-1][1], cpu + demand
        timed = replace(run.task("timed"), samples=np.array(rows, np.int64), cpu_ns=round(cpu))
        runs = (*runs, replace(run, tasks=(timed, *run.tasks[1:])))
    finding = TIMESLICE.derive(context, runs)
    assert finding.value == pytest.approx(0.052, rel=0.02)
    assert all(check.ok for check in finding.checks)
    assert finding.evidence["interrupted_share"] == pytest.approx(finding.evidence["needed_seconds"] / 0.052, abs=0.05)


@pytest.mark.parametrize(
    ("asked_ms", "expected_ms"), [(1.4, 4), (0.1, 4), (3, 4), (5, 8), (8, 12), (10, 12), (20, 24), (50, 52), (100, 104)]
)
def test_a_tick_driven_slice_is_whole_ticks(asked_ms: float, expected_ms: int) -> None:
    """The rule gives the slices measured at HZ=250 with sched_setattr: what is missed by a little costs a tick."""
    assert effective_slice_ns(round(asked_ms * MS), 4 * MS, 0.005 * 4 * MS) == expected_ms * MS


def test_no_gaps_is_not_a_slice() -> None:
    """A host that never makes the watcher wait gives no value, and says why."""
    finding, _ = perform(TIMESLICE, Model(slice_ns=60_000 * MS), context_for(TIMESLICE))
    assert finding.value is None
    assert finding.reason is not None
    assert finding.reason.code == "no-gaps"


def test_the_told_slice_may_be_missing() -> None:
    """On kernels that do not tell a task's slice there is no ground truth, and still a value."""
    finding, _ = perform(TIMESLICE, Model(), context_for(TIMESLICE, replace(HOST, slice_ns=0)))
    assert finding.ground_truth is None
    assert finding.value is not None
