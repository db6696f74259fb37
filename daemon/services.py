"""What works around the loop of a daemon, what a test replaces of it, and what it says of itself."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field

from specmine import __version__
from specmine.daemon.config.tree import Config, Program
from specmine.daemon.controller.events import Acknowledged, Asked, Reloaded, Stopping
from specmine.daemon.documents.status import DaemonFacts
from specmine.daemon.host.environment_watcher import EnvironmentWatcher
from specmine.daemon.host.experiment_runner import ExperimentRunner
from specmine.daemon.metrics.http import MetricsServer
from specmine.daemon.persistence.recorder import StoreRecorder
from specmine.daemon.regression.watcher import ChangeWatcher
from specmine.daemon.sharing.watcher import FleetWatcher
from specmine.daemon.socket.answered_time import AnsweredTime
from specmine.daemon.system.priority import lower_priority
from specmine.daemon.system.systemd import Notifier
from specmine.daemon.worker.process import ProcessWorker, Worker
from specmine.model.batch import Source
from specmine.model.clock import Clock, SystemClock
from specmine.probes.process.proc import resident_bytes

from .kernel_source import live_source, selection_of
from .unmatched_names import UnmatchedName

MakeSource = Callable[[Config], Source]


def configured_source(config: Config) -> Source:
    """Return the kernel side for a configuration."""
    selections = [selection_of(each) for each in config.programs]
    return live_source(config, selections, watch=config.functions.watch, ignore=config.functions.ignore)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seams:
    """What a test replaces."""

    source: MakeSource = configured_source
    clock: Clock = field(default_factory=SystemClock)
    worker: Callable[[], Worker] = ProcessWorker
    notifier: Notifier = field(default_factory=Notifier)
    lower_priority: Callable[[], None] = lower_priority


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """What works around the loop while it runs."""

    source: Source
    store: StoreRecorder
    changes: ChangeWatcher
    environment: EnvironmentWatcher
    experiments: ExperimentRunner
    fleet: FleetWatcher
    metrics: MetricsServer | None
    answered: AnsweredTime


Message = Callable[[Services, int], Reloaded | Acknowledged | Asked | Stopping | None]
"""Something to do at the next turn of the loop, given its time; returns an event for the controller, or None."""


def facts_of(
    services: Services, config: Config, worker: Worker, lent_ratio: float, unmatched: Iterable[UnmatchedName] = ()
) -> DaemonFacts:
    """Return what the controller does not know of its daemon; ``lent_ratio`` of the budget is leased."""
    return DaemonFacts(
        version=__version__,
        pid=os.getpid(),
        programs=tuple(map(shown, config.programs)),
        agent_promised=config.budget.agent,
        promised=config.budget.overhead,
        lent_ratio=lent_ratio,
        metrics=services.metrics.address if services.metrics else "",
        kill_switch=config.kill_switch,
        store=services.store.facts,
        restarts={"worker": getattr(worker, "restarts", 0)},
        resident_bytes=resident_bytes(os.getpid()),
        helpers_resident=_helpers_resident(services, worker),
        experiments=services.experiments.entries,
        changes=services.changes.changes,
        unmatched_names=tuple(asdict(each) for each in unmatched),
    )


def _helpers_resident(services: Services, worker: Worker) -> dict[str, int]:
    """Return the memory of the helpers that the kernel side does not know, of those that live."""
    pids = {"worker": getattr(worker, "pid", None), "experiments": services.experiments.pid}
    return {name: size for name, pid in pids.items() if pid and (size := resident_bytes(pid))}


def shown(program: Program) -> str:
    """Return what to call a program: its name, or how it was chosen."""
    return selection_of(program).shown
