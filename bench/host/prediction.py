"""How well are durations under contention predicted, with and without the derived slice, and what is wrong if not?

    .venv/bin/python -m bench.host.prediction [--seconds 6] [--slice 0.004] [--demand 1ms]... [--case N]...

Calls of 0.2, 1 and 10 ms are timed next to one and two pinned competing threads, and those of three equal tasks on two
CPUs. They run in short turns, each after a turn alone on the same CPUs, because virtual CPUs change their speed by the
second. Mean and 95th percentile are predicted from the turns alone, with the derived slice and without it (processor
sharing): the error of the forecast. They are predicted again from the CPU time that the calls used under competition,
as the kernel counts it over the whole turn: the error of the model. The difference of both is due to the demand. Turns
in which others used the CPUs are discarded and repeated. Needs root, gcc and two CPUs.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from specmine.experiments.load.cgroup_confinement import Confinement
from specmine.experiments.load.tasks import Machine
from specmine.experiments.load.worker_binary import worker_binary
from specmine.experiments.results.prediction import Contention, Distribution, distribution, predicted, relative_errors
from specmine.experiments.runner.load_gate import foreign_share
from specmine.experiments.types import MS, Load, LoadRun, Step, Task
from specmine.model.units import parse_duration

MOST_FOREIGN = 0.02
TURN_S, ALONE_S = 0.5, 0.25
PATIENCE = 2.0
"""So many times the turns needed are made at most."""
DEMANDS = ("0.2ms", "1ms", "10ms")
CASES = (("1 pinned thread", 1, True), ("2 pinned threads", 2, True), ("3 tasks on 2 CPUs", 2, False))


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """What calls took in all turns of one case, s."""

    alone: NDArray[np.float64]
    contention: NDArray[np.float64]
    alone_cpu: float
    contention_cpu: float
    """Mean CPU time of a call."""
    foreign: float
    """What others used of the CPUs in the turns kept."""
    dropped: int


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="How well are durations under contention predicted?")
    parser.add_argument("--seconds", type=float, default=6.0, help="length of all turns under competition, a case")
    parser.add_argument("--slice", type=float, help="slice in s; by default it is derived from gaps first")
    parser.add_argument("--demand", action="append", help="a call's CPU time; may be repeated")
    parser.add_argument("--case", action="append", type=int, choices=range(len(CASES)), help="only these cases")
    options = parser.parse_args()
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        print("bench.host.prediction: needs two CPUs", file=sys.stderr)
        return 4
    os.sched_setaffinity(0, set(cpus[:2]))
    # ordinary weight, all in one session: competing threads are equals here
    machine = Machine(worker_binary(), Confinement())
    slice_s = options.slice or _slice(machine, cpus[1])
    print(f"slice {slice_s * 1e3:.3f} ms")
    heads = ("call", "competition", "measured mean, p95 ms", "forecast", "its error", "of the model", "without slice")
    print(f"| {' | '.join((*heads, 'demand', 'others'))} |\n|{' --- |' * (len(heads) + 2)}")
    for text in options.demand or DEMANDS:
        for number in options.case or range(len(CASES)):
            name, competitors, pinned = CASES[number]
            own = cpus[1:2] if pinned else cpus[:2]
            seen = _turns(machine, parse_duration(text), competitors, own, seconds=options.seconds)
            print(f"| {text} | {name} | {' | '.join(_row(seen, competitors, pinned, slice_s))} |", flush=True)
    return 0


def _row(seen: Turns, competitors: int, pinned: bool, slice_s: float) -> list[str]:
    contention = Contention(competitors=competitors, cores=1.0 if pinned else 2.0, slice_s=slice_s)
    plain = Contention(competitors=competitors, cores=contention.cores)
    moved = seen.contention_cpu / seen.alone_cpu
    alone, measured = distribution(seen.alone), distribution(seen.contention)
    forecast, modelled = predicted(alone, contention), predicted(distribution(seen.alone * moved), contention)
    others = f"{seen.foreign:.1%}" + (f", {seen.dropped} turns dropped" if seen.dropped else "")
    return [
        *(_shown(each) for each in (measured, forecast)),
        *(_errors(each, measured) for each in (forecast, modelled, predicted(alone, plain))),
        f"{seen.contention_cpu * 1e3:.3f} ms, {moved - 1:+.1%}",
        others,
    ]


def _turns(machine: Machine, demand_ns: int, competitors: int, cpus: Sequence[int], *, seconds: float) -> Turns:
    """Time calls alone and under competition in turn, until both have been undisturbed for long enough."""
    units = _units(machine, demand_ns, cpus[-1])
    needed = round(seconds / TURN_S)
    kept: list[tuple[LoadRun, LoadRun, float]] = []
    made = 0
    while len(kept) < needed and made < PATIENCE * needed:
        made += 1
        alone = machine.run(Load(tasks=tuple(_timed(units, cpu, ALONE_S) for cpu in cpus)))
        contention = machine.run(_competing(units, competitors, cpus, TURN_S))
        foreign = max(foreign_share(each, tuple(os.sched_getaffinity(0))) for each in (alone, contention))
        if foreign <= MOST_FOREIGN or needed - len(kept) >= PATIENCE * needed - made:
            kept.append((alone, contention, foreign))
        # the next turns take as long as they should at the speed of this one
        units = round(units * demand_ns / 1e9 / _calls([alone])[1])
    alone_s, alone_cpu = _calls([alone for alone, _, _ in kept])
    contention_s, contention_cpu = _calls([contention for _, contention, _ in kept])
    return Turns(
        alone=alone_s,
        contention=contention_s,
        alone_cpu=alone_cpu,
        contention_cpu=contention_cpu,
        foreign=float(np.mean([foreign for _, _, foreign in kept])),
        dropped=made - len(kept),
    )


def _calls(runs: list[LoadRun]) -> tuple[NDArray[np.float64], float]:
    """Return the durations of all calls, and their mean CPU time, s."""
    timed = [each for run in runs for each in run.leaders]
    times = np.concatenate([each.durations for each in timed]) / 1e9
    return times, sum(each.cpu_ns for each in timed) / 1e9 / len(times)


def _competing(units: int, competitors: int, cpus: Sequence[int], seconds: float) -> Load:
    if len(cpus) > 1:
        # which of them gets the longer queue is chance: the calls of all together have what the CPUs give
        return Load(
            tasks=tuple(replace(_timed(units, None, seconds), name=f"timed{at}") for at in range(competitors + 1))
        )
    others = (Task(name=f"competitor{each}", cpu=cpus[0], seconds=seconds + 1) for each in range(competitors))
    return Load(tasks=(_timed(units, cpus[0], seconds), *others))


def _timed(units: int, cpu: int | None, seconds: float) -> Task:
    step = Step(kind="integer", amount=units)
    return Task(
        name=f"timed on {cpu}",
        steps=(step,),
        sensor="times",
        leads=True,
        cpu=cpu,
        seconds=seconds,
        capacity=65536,
    )


def _slice(machine: Machine, cpu: int) -> float:
    watch = Task(name="watch", sensor="gaps", leads=True, cpu=cpu, seconds=1.5)
    run = machine.run(Load(tasks=(watch, Task(name="competitor", cpu=cpu, seconds=3))))
    return float(np.median(run.task("watch").durations)) / 1e9


def _units(machine: Machine, demand_ns: int, cpu: int) -> int:
    step = Step(kind="integer", amount=MS)
    task = Task(name="calibrate", steps=(step,), sensor="calibrate", leads=True, cpu=cpu, seconds=3)
    units, taken = machine.run(Load(tasks=(task,))).tasks[0].samples[-1, :2].tolist()
    return round(float(units) / float(taken) * demand_ns)


def _shown(each: Distribution) -> str:
    return f"{each.mean * 1e3:.3f}, {each.quantile(0.95) * 1e3:.3f}"


def _errors(forecast: Distribution, measured: Distribution) -> str:
    return ", ".join(f"{name} {100 * error:.1f} %" for name, error in relative_errors(forecast, measured).items())


if __name__ == "__main__":
    sys.exit(main())
