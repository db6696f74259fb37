"""The share of a CPU that a task gets next to one of another nice value, and where nice has no effect.

Not in the thesis, which gives all tasks one priority (section 5.9).
"""

from __future__ import annotations

from specmine.experiments.types import Check, Context, Experiment, Finding, Load, LoadRun, Task

from .statistics import significant

WEIGHTS = {0: 1024, 5: 335, 10: 110, 19: 15}
"""From ``sched_prio_to_weight`` of the kernel, the same since 2.6.23."""
_PAIRS = ((0, 5, "run", 1.2), (0, 10, "run", 1.2), (19, 19, "run", 0.6), (0, 5, "other", 0.8))
"""Nice of the watcher and of its competitor, the competitor's group, seconds."""
_TOLERANCE = 0.03


def plan(context: Context, runs: tuple[LoadRun, ...]) -> Load | None:
    """Watch next to one competitor, pair by pair; the last competitor is in another group."""
    if len(runs) == len(_PAIRS):
        return None
    nice, competitor, group, seconds = _PAIRS[len(runs)]
    cpu = context.cpus[0]
    watch = Task(name="watch", sensor="gaps", leads=True, cpu=cpu, nice=nice, seconds=seconds)
    other = Task(name="competitor", cpu=cpu, nice=competitor, group=group, seconds=seconds + 1)
    return Load(tasks=(watch, other), label=f"{nice}:{competitor}:{group}")


def derive(context: Context, runs: tuple[LoadRun, ...]) -> Finding:
    """Return the share that a task of nice 0 gets beside one of nice 5 in its own group."""
    shares = {run.load.label: _share(run) for run in runs}
    expected = {label: _expected(label) for label in shares}
    seconds = runs[0].task("watch").elapsed_ns / 1e9
    error = 2 * context.host.tick_ns / 1e9 / seconds
    value = shares["0:5:run"]
    gaps = runs[2].task("watch").durations
    return Finding(
        value=significant(value),
        interval=(significant(value - error), significant(value + error)),
        ground_truth=significant(expected["0:5:run"]),
        samples=sum(len(run.task("watch").samples) for run in runs),
        checks=tuple(
            Check(
                name=f"share_{label}", value=share, low=expected[label] - _TOLERANCE, high=expected[label] + _TOLERANCE
            )
            for label, share in shares.items()
        ),
        evidence={
            "shares": {label: significant(share) for label, share in shares.items()},
            "shares_expected": {label: significant(share) for label, share in expected.items()},
            "group_share": significant(shares["0:5:other"]),
            "gap_at_nice_19_seconds": significant(float(gaps.mean()) / 1e9) if len(gaps) else None,
            "note": "nice counts inside one group only: a competitor in another group takes half, whatever its nice",
        },
    )


def _share(run: LoadRun) -> float:
    watch = run.task("watch")
    return 1 - float(watch.durations.sum()) / watch.elapsed_ns


def _expected(label: str) -> float:
    nice, competitor, group = label.split(":")
    if group != "run":
        return 0.5
    return WEIGHTS[int(nice)] / (WEIGHTS[int(nice)] + WEIGHTS[int(competitor)])


EXPERIMENT = Experiment(
    name="weights",
    summary="share of a CPU at nice 0 beside nice 5, and what another group makes of it",
    unit="",
    plan=plan,
    derive=derive,
    needs_groups=True,
    cost=4.0,
    hours=0,
    rank=6,
)
