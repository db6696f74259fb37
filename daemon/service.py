"""One run of the daemon: everything is built in order, runs, and is taken down in reverse."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from specmine.daemon.config.loader import ConfigError, load_config
from specmine.daemon.config.reload import changed_keys, until_restart
from specmine.daemon.config.settings import settings_of
from specmine.daemon.config.tree import Config
from specmine.daemon.controller.events import Acknowledged, Arrived, Asked, Begun, Reloaded, Restored, Stopping
from specmine.daemon.controller.problems.acknowledgement import all_acknowledged
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.documents.status import DaemonFacts, status_of
from specmine.daemon.documents.violation_context import context_of, violations_of
from specmine.daemon.documents.violations import subject_of
from specmine.daemon.host.environment_watcher import EnvironmentWatcher
from specmine.daemon.host.experiment_runner import ExperimentRunner
from specmine.daemon.metrics.http import MetricsServer
from specmine.daemon.metrics.snapshot import FunctionSnapshot, snapshots
from specmine.daemon.persistence.recorder import StoreRecorder
from specmine.daemon.regression.watcher import ChangeWatcher
from specmine.daemon.sharing.document import FILE
from specmine.daemon.sharing.watcher import FleetWatcher
from specmine.daemon.socket.answered_time import AnsweredTime
from specmine.daemon.socket.budget_leases import BudgetLeases
from specmine.daemon.socket.handlers import RequestHandlers
from specmine.daemon.socket.server import Server
from specmine.daemon.system.heap import HeapTrim
from specmine.daemon.system.kill_switch import switch
from specmine.daemon.system.lifecycle_log import LifecycleLog
from specmine.daemon.system.logging import facts
from specmine.daemon.system.refusal_log import RefusalLog
from specmine.daemon.system.shortage_log import ShortageLog
from specmine.daemon.system.signals import handled
from specmine.daemon.system.systemd import metrics_socket
from specmine.daemon.system.violation_log import ViolationLog
from specmine.experiments.host.facts import read_host
from specmine.model.clock import utc_ns
from specmine.model.errors import HostError, InputError
from specmine.store import read_store
from specmine.store.lock import FileLock

from .loop import Message as Event
from .loop import Step, run
from .services import Message, Seams, Services, facts_of, shown
from .unmatched_names import UnmatchedNames

__all__ = ["START_NS", "Daemon", "Seams"]

_log = logging.getLogger(__name__)

_RELOAD_WAIT_S = 1.0
"""For a configuration that is a pipe: a loop that stands still for five seconds loses its probes."""
START_NS = 10_000_000_000
"""So long after its start the daemon keeps its priority: beside busy CPUs the lowest one would delay the first probes,
after a restart too, by half a minute."""


class Daemon:
    """The daemon from its configuration to its end."""

    def __init__(self, config: Config, path: Path | None, seams: Seams | None = None) -> None:
        """Take the configuration, already checked, and the file it came from, to be read again on reload."""
        self._config = config
        self._path = path
        self._seams = seams or Seams()
        self._state: ControllerState | None = None
        self._worker = self._seams.worker()
        self._messages: list[Message] = []
        self._acknowledging: list[tuple[tuple[str, ...], str, str]] = []
        """What was acknowledged, by whom and why, and is not yet in the state: answers show it at once."""
        self._lock = threading.Lock()
        self._overhead = config.budget.overhead
        """The part of the budget that is not leased."""
        self._leases = BudgetLeases(config.budget.overhead, self._lease_changed)
        self._lifecycle_log = LifecycleLog(self._seams.notifier)
        self._refusal_log = RefusalLog()
        self._violation_log = ViolationLog()
        self._shortage_log = ShortageLog()
        self._unmatched_names = UnmatchedNames()
        self._heap = HeapTrim()
        self.failed = False
        """A thread has ended by an error: the daemon ends too, to be started anew."""
        self._lower_at_ns = 0
        """When to take the lowest priority, 0 while that is not known, or done."""

    def run(self) -> ControllerState:
        """Watch until a signal ends it; return the last state.

        Raises
        ------
        SpecmineError
            If it cannot start: lock, store, port or socket taken, or this host cannot.
        """
        if not self._config.programs:
            raise InputError("no programs are configured", remedy="list what to watch under programs")
        with ExitStack() as stack:
            services = self._services(stack)
            # The loop closes the source before this stack unwinds: probes go first, then all else
            state = run(
                services.source,
                settings_of(self._config),
                self._seams.clock,
                self._worker,
                listeners=[services.store.listen, services.changes.listen, self._listen],
                restored=services.store.restored,
                inbox=partial(self._inbox, services),
            )
            _log.info("stopped, every probe is gone", extra=facts(why=state.stopped))
            return state

    def stop(self, why: str) -> None:
        """End at the next turn of the loop."""

        def stopping(_: Services, now_ns: int) -> Stopping:
            self._lifecycle_log.stopping(why)
            return Stopping(now_ns=now_ns, why=why)

        self._messages.append(stopping)  # a signal may come in the middle of a line of the log: nothing is said here

    def fail(self, what: str) -> None:
        """End at the next turn of the loop: a thread has ended by an error; comes from that thread."""
        _log.critical(f"{what}, please report this")
        with self._lock:
            self.failed = True
            self._messages.append(lambda _, now_ns: Stopping(now_ns=now_ns, why="failed"))

    def switch(self, *, off: bool) -> None:
        """Create or remove the kill switch; the holder of the probes detects it by itself."""
        try:
            switch(Path(self._config.kill_switch), off=off)
        except HostError as error:
            reason = str(error)
            self._messages.append(lambda _, __: _log.error("the kill switch does not move", extra=facts(reason=reason)))

    def reload(self) -> None:
        """Read the configuration again at the next turn of the loop."""
        self._messages.append(self._reloaded)

    def _services(self, stack: ExitStack) -> Services:
        """Build everything in order; the stack takes it down in reverse."""
        config = self._config
        host_lock = FileLock(config.host_lock, what="this host", remedy="one specmined watches a host: stop it")
        stack.callback(host_lock.release)
        source = self._seams.source(config)
        store = StoreRecorder(config.store.path, config.store, _log.warning)
        stack.callback(store.close)
        changes = ChangeWatcher(store.write_changes)
        changes.restore(*store.loaded())

        # Both are called after the loop's first state at the earliest, when the services are complete
        def daemon_facts() -> DaemonFacts:
            lent_ratio = sum(self._leases.granted.values())
            return facts_of(services, self._config, self._worker, lent_ratio, self._unmatched_names.found)

        def view() -> tuple[list[FunctionSnapshot], dict[str, Any]] | None:
            state = self._state
            return None if state is None else (snapshots(state), status_of(state, daemon_facts()))

        metrics = None
        if config.metrics.listen is not None:
            metrics = MetricsServer(config.metrics.listen, view, series=config.metrics.series, passed=metrics_socket())
            stack.callback(metrics.close)
        handlers = RequestHandlers(
            state=self._answered_from,
            daemon=daemon_facts,
            leases=self._leases,
            label=store.label_build,
            builds=lambda: store.builds,
            labels=lambda: store.labels,
            changes=changes,
            acknowledge=self._acknowledge,
            follow=self._follow,
            kill_switch=Path(config.kill_switch),
            stored=lambda: read_store(Path(config.store.path)),
        )
        server = Server(
            config.socket.path,
            handlers,
            closed=self._leases.end,
            mode=config.socket.mode,
            group=config.socket.group,
        )
        stack.callback(server.close)
        stack.enter_context(handled(self._signals()))
        journal = Path(config.store.path).parent / "experiments.json"
        experiments = ExperimentRunner(
            config.experiments,
            journal,
            host=read_host,
            report=_log.warning,
            publish=store.write_document,
        )
        stack.callback(experiments.close)
        services = Services(
            source=source,
            store=store,
            changes=changes,
            environment=EnvironmentWatcher(journal, read_host),
            experiments=experiments,
            fleet=FleetWatcher(
                Path(config.fleet.spool_folder) / FILE if config.fleet.connect is not None else None,
                read_host().boot_id,
                _log.warning,
            ),
            metrics=metrics,
            answered=AnsweredTime((lambda: server.cpu_s, lambda: metrics.cpu_s if metrics is not None else 0.0)),
        )
        return services

    def _signals(self) -> dict[signal.Signals, Callable[[], object]]:
        """Return what each signal asks for."""
        return {
            signal.SIGTERM: lambda: self.stop("signal"),
            signal.SIGINT: lambda: self.stop("signal"),
            signal.SIGHUP: self.reload,
            signal.SIGUSR1: lambda: self.switch(off=True),
            signal.SIGUSR2: lambda: self.switch(off=False),
        }

    def _inbox(self, services: Services, now_ns: int) -> Iterable[Event]:
        self._lifecycle_log.heartbeat(now_ns)
        self._heap.turn(now_ns)
        surveyed = services.environment.turn(now_ns)
        if surveyed is not None:
            yield surveyed
        answered = services.answered.turn(now_ns)
        if answered is not None:
            yield answered
        yield from services.fleet.turn(now_ns)
        services.experiments.turn(now_ns, utc_ns(), off=Path(self._config.kill_switch).exists())
        with self._lock:
            messages, self._messages = self._messages, []
        for message in messages:
            event = message(services, now_ns)
            if event is not None:
                yield event

    def _reloaded(self, services: Services, now_ns: int) -> Reloaded | None:
        notifier = self._seams.notifier
        notifier.send(RELOADING=1, MONOTONIC_USEC=now_ns // 1000)
        try:
            return self._changed(services, now_ns)
        finally:
            notifier.send(READY=1)

    def _changed(self, services: Services, now_ns: int) -> Reloaded | None:
        try:
            new = load_config(self._path, wait_s=_RELOAD_WAIT_S) if self._path else Config()
            effective = until_restart(self._config, new)
        except (ConfigError, ValueError) as error:
            _log.error("the new configuration is refused, the old one stays", extra=facts(reason=str(error)))
            return None
        later = changed_keys(effective, new)
        if later:
            _log.warning("some keys change only at a restart", extra=facts(keys=",".join(later)))
        changed = ",".join(changed_keys(self._config, effective)) or "nothing"
        _log.info("configuration read again", extra=facts(changed=changed))
        self._config = new = effective
        services.experiments.settings = new.experiments
        self._leases.set_budget(new.budget.overhead)
        services.store.apply(new.store)
        if services.metrics is not None:
            services.metrics.collector.series = new.metrics.series
        logging.getLogger("specmine").setLevel(new.log.level.upper())
        return self._settings_event(services, now_ns)

    def _settings_event(self, _: Services, now_ns: int) -> Reloaded:
        settings = replace(settings_of(self._config), overhead=self._overhead)
        return Reloaded(now_ns=now_ns, settings=settings)

    def _acknowledge(self, ids: tuple[str, ...], by: str, comment: str) -> None:
        """Acknowledge violations at the next turn of the loop; comes from the server's thread."""
        with self._lock:
            self._messages.append(lambda _, now_ns: Acknowledged(now_ns=now_ns, ids=ids, by=by, comment=comment))
            self._acknowledging.append((ids, by, comment))

    def _answered_from(self) -> ControllerState | None:
        """Return the state that was published last, with all that was acknowledged since."""
        with self._lock:
            state, waiting = self._state, tuple(self._acknowledging)
        if state is not None:
            for told in waiting:
                functions = all_acknowledged(state.functions, *told, state.now_ns, state.settings)
                state = replace(state, functions=functions)
        return state

    def _follow(self, functions: tuple[str, ...]) -> None:
        """Have waits followed from the next turn of the loop on; comes from the server's thread."""
        if not self._config.kernel.wait_kind:
            raise InputError(
                "the configuration forbids to follow waits", remedy="set kernel.wait_kind: on, and restart"
            )
        with self._lock:
            self._messages.append(lambda _, now_ns: Asked(now_ns=now_ns, functions=functions))

    def _lease_changed(self, ratio: float) -> None:
        """Plan with what is not leased; comes from the server's thread."""
        with self._lock:
            self._overhead = ratio
            self._messages.append(self._settings_event)

    def _listen(self, step: Step) -> None:
        if isinstance(step.event, Begun):
            self._lower_at_ns = step.event.started.now_ns + START_NS
            self._lifecycle_log.started(step.event.started, ",".join(map(shown, self._config.programs)))
        if isinstance(step.event, Arrived):
            if self._lower_at_ns and step.event.batch.now_ns >= self._lower_at_ns:
                self._lower_at_ns = 0
                self._seams.lower_priority()
            self._lifecycle_log.arrived(step.event.batch)
            self._refusal_log.arrived(step.event.batch, step.state.catalog)
        if isinstance(step.event, Restored):
            self._violation_log.restored(step.event.violations)
        if isinstance(step.event, Acknowledged):
            with self._lock:
                self._state = step.state
                self._acknowledging.remove((step.event.ids, step.event.by, step.event.comment))
        if step.published:
            first, self._state = self._state is None, step.state
            if first:  # from now on there is a state to answer from
                self._lifecycle_log.ready()
            self._unmatched_names.turn(step.state)
            self._shortage_log.published(step.state)
            if violations := violations_of(step.state):
                context = context_of(step.state)
                self._violation_log.published(violations, lambda each: subject_of(each, context))
