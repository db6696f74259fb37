"""Disturbance: busy hosts, foreign tasks, calibrations under competition, production (checks 13 to 15, 18)."""

from __future__ import annotations

import os
import shutil
import time

import numpy as np

from bench.host.checks.production import NICE_ALONE, production_beside
from bench.host.checks.table import Bench, Table
from bench.lib.child_processes import spinning
from specmine.experiments.library import REPEATED
from specmine.experiments.load.cgroup_confinement import Confinement, confined
from specmine.experiments.load.tasks import Machine
from specmine.experiments.load.worker_binary import worker_binary
from specmine.experiments.runner import lock
from specmine.experiments.runner.client import ExperimentProcess
from specmine.experiments.types import MS, Load, Step, Task

_ALONE, _CONTENDED, _AGREE = 8, 3, 0.02


def disturbed(bench: Bench, table: Table) -> None:
    """A busy host is left alone, a disturbed run withheld, competitors do not disturb a calibration (13, 14, 18)."""
    cpus = sorted(os.sched_getaffinity(0))
    with spinning(*cpus):
        time.sleep(0.5)
        began = time.monotonic()
        result = bench.run("timeslice", wait_s=0)
        took = time.monotonic() - began
    table.row(
        "14 both CPUs busy",
        "busy-host within 2 s, < 0.05 CPU s",
        f"{result['reason']['code']}, {took:.1f} s, {result['cpu_seconds']} CPU s",
        result["reason"]["code"] == "busy-host" and took < 2.5 and result["cpu_seconds"] < 0.05,
    )
    until = time.monotonic() + bench.wait_s
    code = "busy-host"
    while code == "busy-host" and time.monotonic() < until:
        running_now = ExperimentProcess({"names": ["weights"], "state": str(bench.state)})
        time.sleep(2.5)
        with spinning(cpus[-1]):
            result = running_now.answer()[0]
        code = result["reason"]["code"] if result["reason"] else "a value"
    withheld = result["value"] is None and not result["valid"]
    ok = None if code == "busy-host" else withheld and code == "foreign-load"
    table.row("13 foreign task 1.5 s into the run", "withheld, foreign-load", code, ok)
    with lock.exclusive(lock.default_path()), confined() as place:
        calibrations(Machine(worker_binary(), place), cpus[-1], table)


def calibrations(machine: Machine, cpu: int, table: Table) -> None:
    """Calibrate over and over; other work before each shows whether the CPU changed its speed (check 18)."""
    speeds: list[float] = []
    rates: dict[bool, list[float]] = {False: [], True: []}
    for contended in (False, True):
        competitors = (Task(name="competitor", cpu=cpu, seconds=4.0),) if contended else ()
        for _ in range(_CONTENDED if contended else _ALONE):
            speeds.append(_float_ns(machine, cpu))
            rates[contended].append(_units(machine, cpu, competitors))
    spread, other = (max(each) / min(each) - 1 for each in (rates[False], speeds[:_ALONE]))
    moved = float(np.median(rates[True]) / np.median(rates[False]) - 1)
    # if the CPU changed its speed, this shows nothing of calibrations
    text, ok = f"{100 * spread:.2f} %, other work {100 * other:.2f} %", spread <= _AGREE
    table.row("18 eight calibrations of 10 ms", "agree within 2 %", text, ok or (None if other > _AGREE else False))
    table.row("18 next to a task on that CPU", "moves <= 2 %", f"{100 * moved:+.2f} %", abs(moved) <= _AGREE)


def production(bench: Bench, table: Table) -> None:
    """A loop of 1 ms calls on the measured CPU keeps its speed during every default experiment (check 15).

    perf records every switch. So other programs do not count: only the time that the experiment's own tasks and
    controller had the CPU within a call does.
    """
    if shutil.which("perf") is None:
        table.row("15 production", "mean <= +4 %, at most 1 % late", "perf is not installed", None)
        return
    cpu = max(os.sched_getaffinity(0))
    units = round(_units(Machine(worker_binary(), Confinement()), cpu, ()))
    for name in (*REPEATED, NICE_ALONE):
        found = production_beside(cpu, units, name, str(bench.state))
        if name == NICE_ALONE:
            table.row(f"15 next to {name}", "must fail: mean over +4 %", found.text, found.more > 0.04)
        else:
            expected = "mean <= +4 %, at most 1 % late by it"
            table.row(f"15 production during {name}", expected, found.text, found.more <= 0.04 and found.late <= 0.01)


def _units(machine: Machine, cpu: int, competitors: tuple[Task, ...]) -> float:
    """Return calibrated units a millisecond of a 10 ms demand."""
    step = Step(kind="integer", amount=10 * MS)
    task = Task(name="calibrate", steps=(step,), sensor="calibrate", leads=True, cpu=cpu, seconds=3.0)
    units, taken = machine.run(Load(tasks=(task, *competitors))).tasks[0].samples[-1, :2].tolist()
    return float(units * MS / taken)


def _float_ns(machine: Machine, cpu: int) -> float:
    """Return the CPU time of some fixed floating point work, ns."""
    step = Step(kind="float", amount=400_000)
    run = machine.run(
        Load(tasks=(Task(name="speed", steps=(step,), sensor="times", leads=True, cpu=cpu, seconds=0.05),))
    )
    return run.tasks[0].cpu_ns / max(1, len(run.tasks[0].samples))
