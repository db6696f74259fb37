"""Whether two CPUs share a core: what a demand on one costs while the other is busy.

Instead of adding tasks until one slows down (CPU.01 of the thesis, section 5.3) tasks are pinned in pairs: pair
capacity is 2 over the slowdown, near 2 for separate cores, 1.0 to 1.6 for siblings.
"""

from __future__ import annotations

import numpy as np

from specmine.experiments.types import MS, Check, Context, Experiment, Finding, Kind, Load, LoadRun, Task
from specmine.model.function import Reason

from .load_patterns import calibrated_demands
from .statistics import SAME_SPEED, median_interval, significant, speed_kept

_DEMAND_NS, _SECONDS = MS, 0.12
_KINDS: tuple[Kind, ...] = ("integer", "float", "memory")
_MOST_PAIRS = 3
_SIBLINGS, _SEPARATE = 1.7, 1.8


def plan(context: Context, runs: tuple[LoadRun, ...]) -> Load | None:
    """For each pair and kind: alone, together, alone again."""
    steps = [(kind, partner, at) for partner in _partners(context) for kind in _KINDS for at in range(3)]
    if len(runs) >= len(steps):
        return None
    kind, partner, at = steps[len(runs)]
    step = context.demand(kind, _DEMAND_NS)
    timed = Task(name="timed", steps=(step,), sensor="times", leads=True, cpu=context.cpus[0], seconds=_SECONDS)
    other = Task(name="other", steps=(step,), cpu=partner, seconds=_SECONDS + 1)
    return Load(tasks=(timed, other) if at == 1 else (timed,), label=f"{kind}:{partner}:{at}")


def derive(context: Context, runs: tuple[LoadRun, ...]) -> Finding:
    """Return the smallest capacity of a pair, in cores."""
    if not runs:
        return Finding(
            reason=Reason(code="one-cpu", text="there is only one CPU to run on"), conclusive=True, value=None
        )
    found: dict[str, float] = {}
    bounds: dict[str, tuple[float, float]] = {}
    speeds: list[float] = []
    for before, together, after in zip(runs[::3], runs[1::3], runs[2::3], strict=True):
        label = before.load.label.rsplit(":", 1)[0]
        speeds.append(speed_kept(before.tasks[0].durations, after.tasks[0].durations))
        alone = np.median(np.concatenate([before.tasks[0].durations, after.tasks[0].durations]))
        middle, (low, high) = median_interval(together.task("timed").durations)
        found[label] = float(2 * alone / middle)
        bounds[label] = (float(2 * alone / high), float(2 * alone / low))
    cpu_bound = {label: each for label, each in found.items() if not label.startswith("memory")}
    worst = min(cpu_bound, key=lambda label: cpu_bound[label])
    value = cpu_bound[worst]
    told = any(context.cpus[0] in group and len(group) > 1 for group in context.host.siblings)
    smt = value < _SIBLINGS
    return Finding(
        value=significant(value),
        interval=(significant(bounds[worst][0]), significant(bounds[worst][1])),
        ground_truth=None if told else 2.0,
        samples=sum(len(run.task("timed").samples) for run in runs),
        checks=(
            Check(name="clearly_one_or_the_other", value=float(_SIBLINGS < value < _SEPARATE), low=0, high=0),
            Check(name="speed_kept", value=max(speeds), low=1.0, high=SAME_SPEED),
            Check(name="as_the_topology_says", value=float(smt == told), low=1, high=1),
        ),
        evidence={
            "smt": smt,
            "smt_told": told,
            "capacities": {label: significant(each) for label, each in found.items()},
            "cpu": context.cpus[0],
            "partners": list(_partners(context)),
        },
    )


def _partners(context: Context) -> tuple[int, ...]:
    """Return the CPUs to pair with the first: those that share its core as the topology says, then others."""
    first = context.cpus[0]
    told = {cpu for group in context.host.siblings if first in group for cpu in group}
    rest = [cpu for cpu in context.cpus if cpu != first]
    return tuple(sorted(rest, key=lambda cpu: cpu not in told)[:_MOST_PAIRS])


EXPERIMENT = Experiment(
    name="smt",
    summary="whether CPUs share a core: what two of them get done together",
    unit="cores",
    plan=plan,
    derive=derive,
    demands=calibrated_demands(_DEMAND_NS, kinds=_KINDS, cpus=2),
    cpus="two",
    cost=2.5,
    hours=0,
    rank=7,
    environment={"pair_capacity": "value"},
)
