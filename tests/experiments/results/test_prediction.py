"""Predictions against a scheduler that is played through turn by turn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from specmine.experiments.results.prediction import Contention, distribution, predicted, relative_errors


def _played(demand: float, competitors: int, slice_s: float, calls: int = 4000) -> np.ndarray:
    """Return the durations of calls in a row on one CPU that goes round: a slice of ours, one of each competitor."""
    now, left, times = 0.0, slice_s * 0.37, []
    for _ in range(calls):
        start, rest = now, demand
        while rest >= left:
            rest -= left
            now += left + competitors * slice_s
            left = slice_s
        left -= rest
        now += rest
        times.append(now - start)
    return np.array(times)


@settings(max_examples=40, deadline=None)
@given(st.floats(0.05e-3, 30e-3), st.integers(1, 3), st.floats(1e-3, 12e-3))
def test_pinned_calls_are_predicted(demand: float, competitors: int, slice_s: float) -> None:
    """Mean within 3 % and every quantile within one step of the turn-by-turn play."""
    # slices that a demand fills without a rest meet the same phases again and again: no distribution to predict
    slices = demand / slice_s
    assume(demand < slice_s or abs(slices - round(slices)) > 0.02)
    demand *= 1 + 0.002 * np.sin(slices * 1e3) / max(slices, 1.0)
    played = distribution(_played(demand, competitors, slice_s))
    found = predicted(distribution([demand]), Contention(competitors=competitors, slice_s=slice_s))
    assert found.mean == pytest.approx(played.mean, rel=0.03)
    assert found.seconds.min() == pytest.approx(played.seconds.min(), rel=0.02)


def test_the_share_that_waits_is_demand_over_slice() -> None:
    """A 1 ms call next to one competitor and slices of 4 ms: 25 % at 5 ms, next to two: 25 % at 9 ms."""
    for competitors, late in ((1, 5e-3), (2, 9e-3)):
        found = predicted(distribution([1e-3]), Contention(competitors=competitors, slice_s=4e-3))
        assert found.seconds.tolist() == pytest.approx([1e-3, late])
        assert found.shares.tolist() == pytest.approx([0.75, 0.25])
        assert found.above(3e-3) == pytest.approx(0.25)


def test_nobody_waits_where_there_are_cores_enough() -> None:
    """One competitor on two CPUs changes nothing."""
    alone = distribution([1e-3, 2e-3], [3, 1])
    assert predicted(alone, Contention(competitors=1, cores=2.0, slice_s=4e-3)) is alone


@given(st.integers(1, 6), st.floats(1.0, 4.0), st.floats(0.1e-3, 20e-3))
def test_the_mean_is_that_of_processor_sharing(competitors: int, cores: float, demand: float) -> None:
    """However the waits are spread, their mean is what the CPUs leave: n/c times the demand."""
    alone, contention = distribution([demand]), Contention(competitors=competitors, cores=cores, slice_s=4e-3)
    assert predicted(alone, contention).mean == pytest.approx(demand * max(1.0, (competitors + 1) / cores))


def test_without_the_slice_the_tail_is_wrong() -> None:
    """Processor sharing keeps the mean and misses the 95th percentile, which is why the slice is derived."""
    played = distribution(_played(1.013e-3, 1, 4e-3))
    with_slice = relative_errors(predicted(distribution([1.013e-3]), Contention(competitors=1, slice_s=4e-3)), played)
    without = relative_errors(predicted(distribution([1.013e-3]), Contention(competitors=1)), played)
    assert max(with_slice.values()) < 0.02
    assert without["mean"] < 0.05
    assert without["p95"] > 0.5


def _balanced(demand: float, tasks: int, cpus: int, slice_s: float, every_s: float, seconds: float) -> np.ndarray:
    """Return the durations of the calls of equal tasks on CPUs with a run queue each.

    Queues go round slice by slice, each CPU at its own time; every so often the shortest takes one that waits from the
    longest, if that has more.
    """
    steps, between = 8, round(every_s / slice_s * 8)
    queues = [list(range(cpu, tasks, cpus)) for cpu in range(cpus)]
    runs: list[list[int]] = [[] for _ in range(tasks)]
    for now in range(round(seconds / slice_s) * steps):
        for cpu, queue in enumerate(queues):
            if (now + 3 * cpu) % steps == 0:
                queue.append(queue.pop(0))
            runs[queue[0]].append(now)
        if now % between == between - 1:
            shortest, longest = min(queues, key=len), max(queues, key=len)
            if len(longest) > len(shortest):
                shortest.append(longest.pop())
    times = []
    for each in runs:
        # a task has used n steps of CPU time at the end of the n-th step in which it ran
        used = np.arange(1, len(each) + 1) * slice_s / steps
        at = (np.array(each) + 1) * slice_s / steps
        ends = np.arange(demand, used[-1], demand)
        step = np.searchsorted(used, ends)
        times.append(np.diff(at[step] - (used[step] - ends)))
    return np.concatenate(times)


@pytest.mark.parametrize(("tasks", "cpus"), [(3, 2), (4, 2), (4, 3), (5, 2)])
@pytest.mark.parametrize("demand", [0.31e-3, 1.013e-3, 10.17e-3])
def test_tasks_that_are_moved_are_predicted(tasks: int, cpus: int, demand: float) -> None:
    """Against run queues of their own and a balancer that moves a task every 108 ms, as was seen on Linux 6.18."""
    played = distribution(_balanced(demand, tasks, cpus, 4e-3, 0.108, 60.0))
    contention = Contention(competitors=tasks - 1, cores=float(cpus), slice_s=4e-3)
    errors = relative_errors(predicted(distribution([demand]), contention), played)
    assert errors["mean"] < 0.02
    assert errors["p95"] < 0.05


def test_calls_longer_than_a_slice_wait_whole_turns_or_not_at_all() -> None:
    """Three tasks on two CPUs, moved every 60 ms: a 9 ms call has a CPU for itself, or waits at each turn's end."""
    step, demand = 0.1e-3, 91
    # in steps of 0.1 ms: a third of the stays alone, else every second slice of 4 ms is ours
    place, inside = np.divmod(np.arange(600_000), 600)
    runs = (place % 3 == 0) | (inside // 40 % 2 == 0)
    ends = np.flatnonzero(runs)[demand - 1 :: demand]
    played = distribution(np.diff(ends) * step)
    contention = Contention(competitors=2, cores=2.0, slice_s=4e-3)
    errors = relative_errors(predicted(distribution([demand * step]), contention), played)
    assert errors["mean"] < 0.04
    assert errors["p95"] < 0.02
