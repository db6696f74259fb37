"""One experiment from the load gate to its result: gate, confinement, calibration, loads, checks, derived value."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from specmine.experiments.host.counters import busy_ratio, read_counters
from specmine.experiments.host.facts import forbidden_cpus, read_host
from specmine.experiments.load.calibration import calibrate
from specmine.experiments.load.cgroup_confinement import Confinement
from specmine.experiments.load.tasks import Machine, Starved, rest
from specmine.experiments.load.worker_binary import WorkerBinary
from specmine.experiments.results import document
from specmine.experiments.results.document import Document
from specmine.experiments.results.journal import Journal
from specmine.experiments.types import REAL_TIME, SECOND, Context, Counters, Experiment, Finding, Host, LoadRun
from specmine.model.errors import HostError
from specmine.model.function import Reason

from . import load_gate, self_priority


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """How an experiment is to be run."""

    parameters: Mapping[str, Any] = field(default_factory=dict)
    force: bool = False
    """Pass the load gate, and nothing else."""
    dangerous: bool = False
    """Allow what other programs here would be affected by."""
    pid: int | None = None
    """Take the CPUs and the CPU limit of this process."""


@dataclass(slots=True)
class RunEnvironment:
    """What experiments run with; made once for several."""

    journal: Journal
    worker: WorkerBinary | None = None
    confinement: Confinement | None = None
    no_worker: Reason | None = None
    """Set if the load worker cannot be had on this host."""
    no_confinement: Reason | None = None
    """Set if nothing on this host can restrict load."""
    cancel_fd: int = -1
    """Becomes readable when nobody waits for the results any more; -1: none."""


def perform(experiment: Experiment, request: RunRequest, environment: RunEnvironment) -> Document:
    """Run an experiment and return its result, valid or not; it goes into the journal.

    Raises
    ------
    Interrupted
        If the run is not wanted any more.
    """
    host = read_host(pid=request.pid or "self")
    environment.journal.begin_boot(host.boot_id)
    parameters = {
        **experiment.parameters,
        **request.parameters,
        **_recalled(experiment, environment.journal, host),
    }
    reason = _impossible(experiment, parameters, request, environment)
    utc_ns, began_ns = time.time_ns(), time.monotonic_ns()
    if reason is not None:
        return _stored(document.skipped(experiment, reason, host, utc_ns=utc_ns, now_ns=began_ns), environment)
    cpus: tuple[int, ...] = host.cpus
    if experiment.cpus != "none":
        before, after = _counters(environment.cancel_fd)
        cpus = load_gate.candidates(host, forbidden_cpus(), busy_ratio(before, after))
        reason = load_gate.refused(experiment, cpus, before, after)
        if reason is not None and not (request.force and reason.code == "busy-host"):
            now_ns = time.monotonic_ns()
            return _stored(document.skipped(experiment, reason, host, utc_ns=utc_ns, now_ns=now_ns), environment)
    began_ns = time.monotonic_ns()
    folder = str(parameters.get("disk") or "/tmp")
    # groups may have no right to real-time policies, and a lowest weight would mean nothing to them;
    # tasks in no group are weighed with this session
    ordinary = experiment.weight == "ordinary" or parameters.get("policy") in REAL_TIME
    self_priority.set_self_priority(self_priority.ORDINARY if ordinary else self_priority.LOWEST)
    confinement = environment.confinement
    if confinement is None or ordinary:
        confinement = Confinement(how="none, ordinary weight")
    machine = Machine(environment.worker, confinement, folder=folder, cancel_fd=environment.cancel_fd)
    context = Context(
        host=host, cpus=cpus, parameters=parameters, earlier=_earlier(experiment, environment.journal, host)
    )
    try:
        with _affinity(host.cpus):
            finding = _finding(experiment, context, machine, environment)
            if _unsure(finding) and machine.load_s <= experiment.limit / 2:
                finding = _finding(experiment, context, machine, environment)
    except Starved as error:
        text = f"{error}: others want the CPU"
        finding = Finding(reason=Reason(code="foreign-load", text=text, remedy="try again when the host is quiet"))
    except HostError as error:
        finding = Finding(reason=Reason(code="failed", text=error.message, remedy=error.remedy))
    result = document.document(
        experiment,
        finding,
        host,
        utc_ns=utc_ns,
        window_ns=(began_ns, time.monotonic_ns()),
        cpu_ns=machine.cpu_ns,
        cpus=_loaded(experiment, context),
        confinement=confinement.how,
        forced=request.force,
        parameters={name: value for name, value in parameters.items() if not isinstance(value, Mapping)},
    )
    if any(parameters[name] != experiment.parameters[name] for name in experiment.forces):
        environment.journal.mark(result)
        return result
    return _stored(result, environment)


def _recalled(experiment: Experiment, journal: Journal, host: Host) -> Mapping[str, Any]:
    """Return the parameters that an experiment takes from its own last result."""
    entry = journal.entries.get(experiment.name)
    return experiment.recall(entry["last"], host) if entry and entry["last"] else {}


def _unsure(finding: Finding) -> bool:
    """Return True if only checks contradict a value. The CPU changed its speed, or others came: repeating may help."""
    return finding.reason is None and not all(check.ok for check in finding.checks)


def _finding(experiment: Experiment, context: Context, machine: Machine, environment: RunEnvironment) -> Finding:
    units, reason = calibrate(experiment.demands(context), context, machine, environment.journal.units)
    if reason is not None and not experiment.without:
        return Finding(reason=reason)
    context = replace(context, units=units)
    runs: tuple[LoadRun, ...] = ()
    spent_ns = 0
    while (load := experiment.plan(context, runs)) is not None:
        run = machine.run(load)
        runs = (*runs, run)
        spent_ns += max((each.elapsed_ns for each in run.tasks), default=0)
        if spent_ns > experiment.limit * SECOND:
            slow = Reason(code="budget", text=f"it was not finished after {experiment.limit:g} s of load")
            return Finding(reason=load_gate.contamination(experiment, runs, context.host.cpus) or slow)
    disturbed = load_gate.contamination(experiment, runs, context.host.cpus)
    finding = experiment.derive(context, runs)
    if disturbed is not None and not finding.conclusive:
        return replace(finding, reason=disturbed)
    throttled = sum(times for run in runs for leaf, (times, _) in run.throttled.items() if leaf not in run.load.limits)
    if throttled:
        return replace(finding, reason=Reason(code="throttled", text="the load's own group was limited meanwhile"))
    return finding


@contextlib.contextmanager
def _affinity(cpus: tuple[int, ...]) -> Iterator[None]:
    """Set our own CPUs to those of the process for which the host is measured; tasks without a pin inherit them."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, set(cpus) or before)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _impossible(
    experiment: Experiment, parameters: Mapping[str, Any], request: RunRequest, environment: RunEnvironment
) -> Reason | None:
    """Return why an experiment cannot run here at all."""
    reason = load_gate.dangerous(experiment, parameters, allowed=request.dangerous)
    if reason is not None:
        return reason
    if experiment.cpus != "none" and environment.worker is None:
        return environment.no_worker
    confinement = environment.confinement
    if experiment.cpus != "none" and experiment.weight == "lowest" and confinement is None:
        return environment.no_confinement
    if experiment.needs_groups and not (confinement and confinement.leaves):
        text = "without control groups there are no groups to compare"
        return Reason(code="confinement", text=text, remedy="run it as root")
    return None


def _earlier(experiment: Experiment, journal: Journal, host: Host) -> dict[str, Any]:
    """Return the valid values of the experiments that this one requires."""
    values = {}
    for name in experiment.requires:
        entry = journal.entries.get(name)
        if entry and entry["valid"] and not document.stale_reason(entry["valid"], host):
            values[name] = entry["valid"]["value"]
    return values


def _loaded(experiment: Experiment, context: Context) -> tuple[int, ...]:
    wanted = {"none": 0, "one": 1, "two": 2, "all": len(context.cpus)}[experiment.cpus]
    return context.cpus[:wanted]


def _counters(cancel_fd: int) -> tuple[Counters, Counters]:
    before = read_counters()
    rest(load_gate.CHECK_S, cancel_fd)
    return before, read_counters()


def _stored(result: Document, environment: RunEnvironment) -> Document:
    environment.journal.add(result)
    return result
