"""How well are durations under contention predicted, with and without the derived slice?

    .venv/bin/python bench/bench_experiments_prediction.py [--seconds 3] [--slice 0.004]

Calls of 0.2, 1 and 10 ms are timed alone, then beside one and two pinned rivals, and not pinned beside two on two
CPUs. Each time mean and 95th percentile are predicted from the times alone: with the derived slice, and without it, as
processor sharing. Prints the relative errors, as the thesis reports them. Needs two CPUs.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

import numpy as np

from specmine.experiments.confinement import Confinement
from specmine.experiments.gate import foreign_ratio
from specmine.experiments.helper import helper
from specmine.experiments.prediction import Contention, Distribution, distribution, error_of, predicted
from specmine.experiments.tasks import Machine
from specmine.experiments.vocabulary import MS, Load, LoadRun, Step, Task

TRIES, MOST_FOREIGN = 4, 0.02
STEADY = 0.02
"""The calls alone, before and after, must agree by this: virtual CPUs change their speed."""
DEMANDS_NS = (MS // 5, MS, 10 * MS)
CASES = (("1 pinned rival", 1, True), ("2 pinned rivals", 2, True), ("2 rivals on 2 CPUs", 2, False))


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="How well are durations under contention predicted?")
    parser.add_argument("--seconds", type=float, default=3.0, help="length of each measurement")
    parser.add_argument("--slice", type=float, help="slice in s; by default it is derived from gaps first")
    options = parser.parse_args()
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        print("bench_experiments_prediction: needs two CPUs", file=sys.stderr)
        return 4
    os.sched_setaffinity(0, set(cpus[:2]))
    # ordinary weight, all in one session: rivals are equals here
    machine = Machine(helper(), Confinement())
    slice_s = options.slice or _slice(machine, cpus[1])
    print(f"slice {slice_s * 1e3:.3f} ms")
    print("| call | beside | measured mean, p95 ms | predicted mean, p95 ms | error with slice | without |")
    print("| --- | --- | --- | --- | --- | --- |")
    for demand in DEMANDS_NS:
        units = _units(machine, demand, cpus[1])
        for name, rivals, pinned in CASES:
            alone, measured = _both(machine, units, rivals, cpus[1], pinned=pinned, seconds=options.seconds)
            beside = Contention(rivals=rivals, cores=1.0 if pinned else 2.0, slice_s=slice_s)
            forecast = predicted(alone, beside)
            plain = predicted(alone, Contention(rivals=rivals, cores=beside.cores))
            row = [f"{demand / MS:g} ms", name, _shown(measured), _shown(forecast)]
            row += [_errors(forecast, measured), _errors(plain, measured)]
            print(f"| {' | '.join(row)} |", flush=True)
    return 0


def _slice(machine: Machine, cpu: int) -> float:
    watch = Task(name="watch", sensor="gaps", leads=True, cpu=cpu, seconds=1.5)
    run = _undisturbed(machine, Load(tasks=(watch, Task(name="rival", cpu=cpu, seconds=3))))
    return float(np.median(run.task("watch").durations)) / 1e9


def _units(machine: Machine, demand_ns: int, cpu: int) -> int:
    step = Step(kind="integer", amount=MS)
    task = Task(name="calibrate", steps=(step,), sensor="calibrate", leads=True, cpu=cpu, seconds=3)
    units, taken = machine.run(Load(tasks=(task,))).tasks[0].samples[-1, :2].tolist()
    return round(units / taken * demand_ns)


def _timed(machine: Machine, units: int, rivals: int, cpu: int | None, seconds: float) -> Distribution:
    step = Step(kind="integer", amount=units)
    timed = Task(name="timed", steps=(step,), sensor="times", leads=True, cpu=cpu, seconds=seconds, capacity=65536)
    others = (Task(name=f"rival{each}", cpu=cpu, seconds=seconds + 1) for each in range(rivals))
    run = _undisturbed(machine, Load(tasks=(timed, *others)))
    return distribution(run.task("timed").durations / 1e9)


def _both(
    machine: Machine, units: int, rivals: int, cpu: int, *, pinned: bool, seconds: float
) -> tuple[Distribution, Distribution]:
    """Time calls alone, beside, and alone again, until both times alone agree; at last say that they did not."""
    for _ in range(TRIES):
        first = _timed(machine, units, 0, cpu, 0.7)
        measured = _timed(machine, units, rivals, cpu if pinned else None, seconds)
        second = _timed(machine, units, 0, cpu, 0.7)
        moved = abs(second.quantile(0.5) / first.quantile(0.5) - 1)
        if moved <= STEADY:
            break
    else:
        print(f"no steady CPU: alone it took {moved:.0%} more or less afterwards", flush=True)
    seconds_both = np.concatenate([first.seconds, second.seconds])
    return distribution(seconds_both, np.concatenate([first.shares, second.shares])), measured


def _undisturbed(machine: Machine, load: Load) -> LoadRun:
    """Run a load again until others use little of its CPUs meanwhile; at last say that they did."""
    for _ in range(TRIES):
        run = machine.run(load)
        foreign = foreign_ratio(run, tuple(os.sched_getaffinity(0)))
        if foreign <= MOST_FOREIGN:
            return run
        time.sleep(0.5)
    print(f"no quiet second: others used {foreign:.0%}", flush=True)
    return run


def _shown(each: Distribution) -> str:
    return f"{each.mean * 1e3:.3f}, {each.quantile(0.95) * 1e3:.3f}"


def _errors(forecast: Distribution, measured: Distribution) -> str:
    return ", ".join(f"{name} {100 * error:.1f} %" for name, error in error_of(forecast, measured).items())


if __name__ == "__main__":
    sys.exit(main())
