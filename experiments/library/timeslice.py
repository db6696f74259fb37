"""The timeslice: how long a task that wants the CPU waits while another task runs.

Gap detection: a task that only reads the clock shares a CPU with k others; its pauses are k slices long. No demand
has to be calibrated, and any slice from 0.3 ms up is seen. The thesis' method (OSSCHEDULER.01, section 5.5) times a
demand and takes the difference between interrupted and uninterrupted runs of it; with medians instead of its means,
and a demand well below the slice, it gives the same and is kept as a check. With the thesis' own demand of 20 ms it
fails on schedulers whose slices are shorter: then the demand is always interrupted, and there is one cluster.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from specmine.experiments.types import (
    MS,
    REAL_TIME,
    SECOND,
    Check,
    Context,
    Experiment,
    Finding,
    Kind,
    Load,
    LoadRun,
    Task,
)
from specmine.model.function import Reason

from .load_patterns import competing_load
from .statistics import clusters, median_interval, median_is_known, quantiles, significant

_ROUND_S, _MOST_ROUNDS = 0.5, 4
_ENOUGH, _HALF_WIDTH = 60, 0.02
_FEW = 12
"""Enough gaps where each is long."""
_SMALLEST_CLUSTER, _CLUSTER_OF_SPREAD = 0.1, 0.05
_SMALLEST_SHARE = 0.4
"""Fewest gaps, as a share of all, that must be of one length."""
_SMALLEST_TOP, _FEWEST_TOP, _MOST_LONGER = 0.15, 6, 0.05
"""Or fewer, if hardly any gap is longer: what cuts turns makes none longer."""
_MOST_TIME_LONGER = 0.25
"""Of the time lost, in gaps that are clearly longer: many short visits of one length are not the slice."""
_AROUND = 4
"""What a call needed follows from so many calls before and after it."""
_UNBROKEN = 1.5
"""Calls that took no more than so many times what they used of the CPU were not interrupted."""
_LONG_NS = 40 * MS


def plan(context: Context, runs: tuple[LoadRun, ...]) -> Load | None:
    """Watch the gaps next to one competitor until they are stable, then next to two, then time a demand."""
    asked = context.parameters
    if asked["method"] == "clusters":
        return None if len(runs) == 2 or not context.units else _demands(context, len(runs) + 1, asked["iterations"])
    for competitors in (1, 2):
        done = [run for run in runs if run.load.label == f"gaps{competitors}"]
        gaps = _gaps(done)
        enough = _FEW if _long(context) or (len(gaps) and np.median(gaps) > _LONG_NS) else _ENOUGH
        known = median_is_known(_pauses(done, competitors, context)[0], at_least=enough, half_width=_HALF_WIDTH)
        most = 1 if asked["policy"] in REAL_TIME else _MOST_ROUNDS - _long(context)
        if not known and len(done) < most and (len(gaps) or len(done) < 3):
            return _watch(context, competitors)
    timed = any(run.load.label == "demands1" for run in runs)
    return None if timed or ("integer", asked["demand"]) not in context.units else _demands(context, 1, 150)


def derive(context: Context, runs: tuple[LoadRun, ...]) -> Finding:
    """Return the effective slice, seconds."""
    if context.parameters["method"] == "clusters":
        return _by_clusters(context, runs)
    one, two = ([run for run in runs if run.load.label == f"gaps{competitors}"] for competitors in (1, 2))
    first, second = _gaps(one), _gaps(two)
    if len(first) < _FEW // 2 or len(second) < _FEW // 2:
        reason = Reason(code="no-gaps", text="a task next to others on one CPU never waited long enough to be measured")
        return Finding(samples=len(first), reason=reason)
    (alike, least), (alike_two, _) = _pauses(one, 1, context), _pauses(two, 2, context)
    slice_ns, (low, high) = median_interval(alike)
    ratio = float(np.median(alike_two)) / slice_ns
    lost = [_lost(one), _lost(two)]
    turns = _runs(one)
    tick = context.host.tick_ns
    cfs = abs(ratio - 4 / 3) < abs(ratio - 2)
    checks = [
        Check(name="lost_beside_one", value=lost[0], low=1 / 2 - 0.03, high=1 / 2 + 0.03),
        Check(name="lost_beside_two", value=lost[1], low=2 / 3 - 0.03, high=2 / 3 + 0.03),
        Check(name="gap_beside_two_to_one", value=ratio, low=1.23 if cfs else 1.9, high=1.43 if cfs else 2.1),
        Check(name="time_in_longer_gaps", value=_longer(first, slice_ns), low=0.0, high=_MOST_TIME_LONGER),
        Check(name="gaps_alike", value=len(alike) / len(first), low=least, high=1.0),
        # short visits of others are no gaps, but each lets the scheduler choose anew: turns end early
        Check(name="preemptions_a_gap", value=_preemptions(one), low=0, high=1.6),
        Check(name="turn_to_gap", value=float(np.mean(turns)) / float(first.mean()), low=0.9, high=1.1),
    ]
    evidence = {
        "gap_beside_two_seconds": significant(float(np.median(alike_two)) / 1e9),
        "gap_quantiles_seconds": quantiles(first / 1e9),
        "turn_seconds": significant(float(np.median(turns)) / 1e9),
        "asked_slice_seconds": _asked_ns(context) / 1e9 or None,
        "tick_seconds": tick / 1e9,
        "fixed_request": not cfs,
    }
    timed = [run for run in runs if run.load.label == "demands1"]
    if timed:
        difference, share, expected = _two_clusters(context, timed[0], slice_ns)
        evidence["two_cluster_slice_seconds"] = difference and significant(difference / 1e9)
        evidence["interrupted_share"] = significant(share)
        evidence["interrupted_share_expected"] = significant(expected)
    return Finding(
        value=significant(slice_ns / 1e9),
        interval=(significant(low / 1e9), significant(high / 1e9)),
        ground_truth=_predicted(context),
        samples=len(first) + len(second),
        checks=tuple(checks),
        evidence=evidence,
    )


def effective_slice_ns(asked_ns: int, tick_ns: int, uncharged_ns: float) -> int:
    """Return the slice that a tick-driven scheduler gives: its end is noticed at a tick only.

    ``uncharged_ns`` is the time of each tick that is not charged to the task, some 20 us in a guest: a slice of exactly
    some ticks is missed by that little, and lasts one tick more.
    """
    return tick_ns * max(1, math.ceil(asked_ns / (tick_ns - uncharged_ns)))


def _predicted(context: Context) -> float | None:
    if context.parameters["policy"] == "rr":
        return context.host.rr_slice_ns / 1e9 or None
    asked = _asked_ns(context)
    if not asked:
        return None
    return effective_slice_ns(asked, context.host.tick_ns, 0.005 * context.host.tick_ns) / 1e9


def _asked_ns(context: Context) -> int:
    asked: int = context.parameters["slice"] or context.host.slice_ns
    return asked


def _watch(context: Context, competitors: int) -> Load:
    asked = context.parameters
    how = {"cpu": context.cpus[0], "policy": asked["policy"], "slice_ns": asked["slice"]}
    seconds = _ROUND_S * (4 if _long(context) else 1) * (1 + competitors) / 2
    return competing_load(
        Task(name="watch", sensor="gaps", seconds=seconds, **how), competitors, label=f"gaps{competitors}"
    )


def _long(context: Context) -> bool:
    asked = context.parameters
    return bool(asked["slice"] >= 20 * MS or asked["policy"] in REAL_TIME)


def _demands(context: Context, competitors: int, iterations: int) -> Load:
    asked = context.parameters
    how = {"cpu": context.cpus[0], "policy": asked["policy"], "slice_ns": asked["slice"]}
    demand = asked["demand"]
    seconds = 1.5 * iterations * demand * (1 + competitors) / SECOND + 0.5
    step = context.demand("integer", demand)
    timed = Task(name="timed", steps=(step,), sensor="times", seconds=seconds, iterations=iterations, **how)
    return competing_load(timed, competitors, label=f"demands{competitors}")


def _by_clusters(context: Context, runs: tuple[LoadRun, ...]) -> Finding:
    """Derive the slice as the thesis does (section 5.5.3), refusing what is not two clusters."""
    demand = context.parameters["demand"]
    if not runs:
        return Finding(
            reason=Reason(
                code="uncalibratable", text="the demand took a different time at each try", remedy="try later"
            )
        )
    found = [_two_clusters(context, run, None) for run in runs]
    times = runs[0].task("timed").durations
    difference, share, _ = found[0]
    evidence = {
        "demand_seconds": demand / 1e9,
        "needed_seconds": significant(runs[0].task("timed").cpu_ns / max(1, len(times)) / 1e9),
        "time_quantiles_seconds": quantiles(times / 1e9),
        "interrupted_share": significant(share),
    }
    if difference is None:
        middle = float(np.median(times))
        reason = Reason(
            code="single-cluster",
            text=f"demands of {demand / 1e6:g} ms form a single cluster at {middle / demand:.1f} times the demand:"
            " each of them was interrupted, or none",
            remedy="take a demand well below the slice",
        )
        return Finding(samples=len(times), evidence=evidence, reason=reason)
    second = found[1][0]
    return Finding(
        value=significant(difference / 1e9),
        ground_truth=_predicted(context),
        samples=len(times),
        checks=(Check(name="beside_two_to_one", value=(second or 0.0) / difference, low=1.85, high=2.15),),
        evidence=evidence,
    )


def _two_clusters(context: Context, run: LoadRun, slice_ns: float | None) -> tuple[float | None, float, float]:
    """Return the difference of the clusters' medians (None if there are no two), share interrupted, and expected."""
    timed = run.task("timed")
    demand = timed.cpu_ns / max(1, len(timed.samples))
    times = _at_one_speed(timed.durations.astype(np.float64), demand)
    alone = min(float(np.quantile(times, 0.1)), 1.2 * demand)
    # long slices end a tick early or late
    wide = _CLUSTER_OF_SPREAD * float(np.subtract(*np.quantile(times, (0.95, 0.05))))
    found = clusters(times, diameter=max(0.1 * demand, context.host.tick_ns / 2, wide), smallest=1)
    big = [each for each in found if len(each) >= _SMALLEST_CLUSTER * len(times)]
    share = float(np.mean(times > 1.5 * alone))
    expected = demand / slice_ns if slice_ns else math.nan
    if len(big) < 2:
        return None, share, expected
    low, high = sorted(float(np.median(each)) for each in big[:2])
    return (high - low) if low < _UNBROKEN * demand else None, share, expected


def _at_one_speed(times: NDArray[np.float64], demand: float) -> NDArray[np.float64]:
    """Return the times as if each call had needed what they needed on average.

    Virtual CPUs change their speed by the second. What a call needs is then the least of the times around it: some of
    so many were not interrupted, if any are.
    """
    around = np.lib.stride_tricks.sliding_window_view(np.pad(times, _AROUND, mode="reflect"), 2 * _AROUND + 1)
    needed: NDArray[np.float64] = np.min(around, axis=1)
    return times - needed + demand if np.median(needed) < _UNBROKEN * demand else times


def _gaps(runs: list[LoadRun]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(0, np.int64), *(run.task("watch").durations for run in runs)])


def _pauses(runs: list[LoadRun], competitors: int, context: Context) -> tuple[NDArray[np.float64], float]:
    """Return the whole pauses next to so many competitors, and the fewest that are believed, as a share of all.

    Where a pause of two turns is hardly ever whole, one turn may be: then it is twice as long as the watcher's own.
    """
    whole, least = _alike(_gaps(runs), context)
    if competitors > 1 and len(whole) < least * len(_gaps(runs)):
        turns = _runs(runs)
        own, share = _alike(turns, context)
        if len(own) >= share * len(turns):
            return competitors * own, share
    return whole, least


def _alike(lengths: NDArray[np.int64], context: Context) -> tuple[NDArray[np.float64], float]:
    """Return the lengths that repeat, within half a tick or a twentieth, and the fewest that are believed.

    A visit of others lets the scheduler choose anew, so it cuts a turn anywhere: whole slices are those that repeat. On
    a CPU that the kernel itself visits 14 times a second a turn of 104 ms stays whole one time in four; the others are
    shorter by chance, and none is longer.
    """
    values, half_tick = lengths.astype(np.float64), context.host.tick_ns / 2
    if not len(values):
        return values, _SMALLEST_SHARE
    most = clusters(values, diameter=max(half_tick, 0.05 * float(np.median(values))), smallest=1)[0]
    if len(most) < _SMALLEST_SHARE * len(values):
        fewest = max(_FEWEST_TOP, int(np.ceil(_SMALLEST_TOP * len(values))))
        for each in clusters(values, diameter=half_tick, smallest=fewest):
            if np.mean(values > each[-1] + half_tick) <= _MOST_LONGER:
                return each, _SMALLEST_TOP
    return most, _SMALLEST_SHARE


def _longer(gaps: NDArray[np.int64], slice_ns: float) -> float:
    """Return the share of the time lost that was in gaps clearly longer than the slice."""
    return float(gaps[gaps > _UNBROKEN * slice_ns].sum()) / max(1.0, float(gaps.sum()))


def _runs(runs: list[LoadRun]) -> NDArray[np.int64]:
    """Return the turns between the gaps."""
    samples = [run.task("watch").samples for run in runs]
    return np.concatenate([np.zeros(0, np.int64), *(each[1:, 0] - each[:-1, 1] for each in samples)])


def _preemptions(runs: list[LoadRun]) -> float:
    watched = [run.task("watch") for run in runs]
    return sum(each.involuntary for each in watched) / max(1, sum(len(each.samples) for each in watched))


def _lost(runs: list[LoadRun]) -> float:
    """Return the share of time lost, over whole rounds: from the start of each run's first gap to that of its last."""
    watched = [each for run in runs if len(each := run.task("watch").samples) > 1]
    elapsed = sum(int(each[-1, 0] - each[0, 0]) for each in watched)
    return sum(int((each[:-1, 1] - each[:-1, 0]).sum()) for each in watched) / max(1, elapsed)


def demands(context: Context) -> tuple[tuple[Kind, int], ...]:
    """Name the demand to calibrate."""
    return () if context.parameters["policy"] in REAL_TIME else (("integer", context.parameters["demand"]),)


EXPERIMENT = Experiment(
    name="timeslice",
    summary="how long a task waits while another one of equal weight has its turn",
    unit="s",
    plan=plan,
    derive=derive,
    demands=demands,
    parameters={"slice": 0, "demand": MS, "policy": "other", "method": "gaps", "iterations": 300},
    cost=3.0,
    hours=24,
    rank=2,
    environment={"slice_seconds": "value"},
    forces=("slice", "policy", "method"),
    without=True,
    limit=20.0,
)
