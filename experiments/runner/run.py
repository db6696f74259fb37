"""One experiment from the gate to its result: looked, confined, calibrated, planned, run, checked, derived."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from specmine.experiments.host.counters import busy_ratio, read_counters
from specmine.experiments.host.facts import forbidden_cpus, read_host
from specmine.experiments.library.virtualization import work_of
from specmine.experiments.load.calibration import calibrate
from specmine.experiments.load.cgroup_confinement import Confinement
from specmine.experiments.load.tasks import Machine, Starved, rest
from specmine.experiments.load.worker_binary import Helper
from specmine.experiments.results import document
from specmine.experiments.results.document import Document
from specmine.experiments.results.journal import Journal
from specmine.experiments.types import REAL_TIME, SECOND, Context, Counters, Experiment, Finding, LoadRun, Why
from specmine.model.errors import HostError

from . import load_gate, self_priority


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """How an experiment is to be run."""

    parameters: Mapping[str, Any] = field(default_factory=dict)
    force: bool = False
    """Pass the load gate, and nothing else."""
    dangerous: bool = False
    """Allow real-time policies."""
    pid: int | None = None
    """As this process would see the host: its CPUs and its limit."""


@dataclass(slots=True)
class Bench:
    """What experiments run with; made once for several."""

    helper: Helper
    journal: Journal
    place: Confinement | None = None
    """None: nothing on this host can hold load down."""
    why_not: str = ""
    alive: int = -1


def perform(experiment: Experiment, wish: Wish, bench: Bench) -> Document:
    """Run an experiment and return its result, valid or not; it goes into the journal.

    Raises
    ------
    Interrupted
        If the run is not wanted any more.
    """
    host = read_host(pid=wish.pid or "self", native=bench.helper.native)
    bench.journal.begin_boot(host.boot_id)
    parameters = {**experiment.parameters, **wish.parameters}
    if experiment.name == "virtualization-constant":
        parameters["best"] = best_times(bench.journal, host.boot_id, host.cpu_model, work_of(host))
    why = _impossible(experiment, parameters, wish, bench)
    utc_ns, began_ns = time.time_ns(), time.monotonic_ns()
    if why is not None:
        return _kept(document.skipped(experiment, why, host, utc_ns=utc_ns, now_ns=began_ns), bench)
    cpus: tuple[int, ...] = host.cpus
    if experiment.cpus != "none":
        before, after = _look(bench.alive)
        cpus = load_gate.candidates(host, forbidden_cpus(), busy_ratio(before, after))
        why = load_gate.refused(experiment, cpus, before, after)
        if why is not None and not (wish.force and why.code == "busy-host"):
            return _kept(document.skipped(experiment, why, host, utc_ns=utc_ns, now_ns=time.monotonic_ns()), bench)
    began_ns = time.monotonic_ns()
    folder = str(parameters.get("disk") or "/tmp")
    # groups may have no right to real-time policies, and a lowest weight would mean nothing to them;
    # tasks in no group are weighed with this session
    ordinary = experiment.weight == "ordinary" or parameters.get("policy") in REAL_TIME
    self_priority.weigh(self_priority.ORDINARY if ordinary else self_priority.LOWEST)
    place = bench.place if bench.place and not ordinary else Confinement(how="none, ordinary weight")
    machine = Machine(bench.helper, place, folder=folder, alive=bench.alive)
    context = Context(host=host, cpus=cpus, parameters=parameters, earlier=_earlier(experiment, bench.journal, host))
    try:
        with _as_seen(host.cpus):
            finding = _found(experiment, context, machine, bench)
            if _unsure(finding) and machine.load_s <= experiment.limit / 2:
                finding = _found(experiment, context, machine, bench)
    except Starved as error:
        finding = Finding(why=Why("foreign-load", f"{error}: others want the CPU", "try again when the host is quiet"))
    except HostError as error:
        finding = Finding(why=Why("failed", error.message, error.remedy))
    told = {name: value for name, value in parameters.items() if name not in ("best", "reference")}
    result = document.document(
        experiment,
        finding,
        host,
        utc_ns=utc_ns,
        window_ns=(began_ns, time.monotonic_ns()),
        cpu_ns=machine.cpu_ns,
        cpus=_loaded(experiment, context),
        confinement=place.how,
        forced=wish.force,
        parameters=told,
    )
    if any(parameters[name] != experiment.parameters[name] for name in experiment.forces):
        bench.journal.mark(result)
        return result
    return _kept(result, bench)


def best_times(journal: Journal, boot_id: str, cpu_model: str, work: str) -> dict[str, float]:
    """Return the best times known of the fixed work on this CPU, of any boot; none of other work."""
    entry = journal.entries.get("virtualization-constant")
    last = entry and entry["last"]
    if not last or last["host"].get("cpu_model") != cpu_model or last["evidence"].get("work") != work:
        return {}
    seconds: dict[str, float] = last["evidence"].get("seconds", {})
    drift: dict[str, float] = last["evidence"].get("drift", {})
    return {name: each / max(1.0, drift.get(name, 1.0)) for name, each in seconds.items()}


def _unsure(finding: Finding) -> bool:
    """Tell whether only checks speak against a value: the CPU changed its speed, or others came. Once more may do."""
    return finding.why is None and not all(check.ok for check in finding.checks)


def _found(experiment: Experiment, context: Context, machine: Machine, bench: Bench) -> Finding:
    units, why = calibrate(experiment.demands(context), context, machine, bench.helper, bench.journal.units)
    if why is not None and not experiment.without:
        return Finding(why=why)
    context = replace(context, units=units)
    runs: tuple[LoadRun, ...] = ()
    spent_ns = 0
    while (load := experiment.plan(context, runs)) is not None:
        run = machine.run(load)
        runs = (*runs, run)
        spent_ns += max((each.elapsed_ns for each in run.tasks), default=0)
        if spent_ns > experiment.limit * SECOND:
            slow = Why("budget", f"it was not finished after {experiment.limit:g} s of load")
            return Finding(why=load_gate.contaminated(experiment, runs, context.host.cpus) or slow)
    disturbed = load_gate.contaminated(experiment, runs, context.host.cpus)
    finding = experiment.derive(context, runs)
    if disturbed is not None and not finding.settled:
        return replace(finding, why=disturbed)
    throttled = sum(times for run in runs for leaf, (times, _) in run.throttled.items() if leaf not in run.load.limits)
    if throttled:
        return replace(finding, why=Why("throttled", "the load's own group was limited meanwhile"))
    return finding


@contextlib.contextmanager
def _as_seen(cpus: tuple[int, ...]) -> Iterator[None]:
    """Let tasks that are not pinned inherit the CPUs of the process for which the host is measured."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, set(cpus) or before)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _impossible(experiment: Experiment, parameters: Mapping[str, Any], wish: Wish, bench: Bench) -> Why | None:
    """Return why an experiment cannot run here at all."""
    why = load_gate.dangerous(experiment, parameters, allowed=wish.dangerous)
    if why is not None:
        return why
    if experiment.needs_native and not bench.helper.native:
        return Why("needs-native", f"Python is too slow for it ({bench.helper.why})", "install a C compiler")
    if experiment.cpus != "none" and experiment.weight == "lowest" and bench.place is None:
        return Why("confinement", bench.why_not, "run it as root")
    if experiment.name in ("quota", "weights") and not (bench.place and bench.place.leaves):
        return Why("confinement", "without control groups there are no groups to compare", "run it as root")
    return None


def _earlier(experiment: Experiment, journal: Journal, host: Any) -> dict[str, Any]:
    """Return the values that an experiment builds on, those that still hold."""
    found = {}
    for name in experiment.requires:
        entry = journal.entries.get(name)
        if entry and entry["valid"] and not document.of_this_host(entry["valid"], host):
            found[name] = entry["valid"]["value"]
    return found


def _loaded(experiment: Experiment, context: Context) -> tuple[int, ...]:
    wanted = {"none": 0, "one": 1, "two": 2, "all": len(context.cpus)}[experiment.cpus]
    return context.cpus[:wanted]


def _look(alive: int) -> tuple[Counters, Counters]:
    before = read_counters()
    rest(load_gate.LOOK_S, alive)
    return before, read_counters()


def _kept(result: Document, bench: Bench) -> Document:
    bench.journal.add(result)
    return result
