"""One life of the daemon: everything built in order, run, and taken down in reverse."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from specmine import __version__
from specmine.daemon.config.loader import ConfigError, load_config
from specmine.daemon.config.settings import settings_of
from specmine.daemon.config.tree import Config, Program, changed_keys, until_restart
from specmine.daemon.controller.events import Arrived, Begun, Reloaded, Stopping, Surveyed
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.documents.status import Surroundings, status_of
from specmine.daemon.host.environment_watcher import Survey
from specmine.daemon.host.experiment_runner import Scheduler
from specmine.daemon.metrics.counters import Reading, readings
from specmine.daemon.metrics.http import MetricsServer
from specmine.daemon.persistence.recorder import Keeper
from specmine.daemon.regression.watcher import ChangeWatcher
from specmine.daemon.socket.budget_leases import Shares
from specmine.daemon.socket.handlers import Answers
from specmine.daemon.socket.server import Server
from specmine.daemon.system.kill_switch import switch
from specmine.daemon.system.lifecycle_log import Teller
from specmine.daemon.system.logging import facts
from specmine.daemon.system.priority import step_back
from specmine.daemon.system.signals import handled
from specmine.daemon.system.systemd import Notifier
from specmine.daemon.worker.process import ProcessWorker, Worker
from specmine.experiments.host.facts import read_host
from specmine.model.batch import Source
from specmine.model.clock import Clock, SystemClock, utc_ns
from specmine.model.errors import HostError, InputError
from specmine.store.lock import FileLock

from .kernel_source import live_source, selection_of
from .loop import Step, run

_log = logging.getLogger(__name__)

MakeSource = Callable[[Config], Source]


def configured_source(config: Config) -> Source:
    """Return the kernel side for a configuration."""
    selections = [selection_of(each) for each in config.programs]
    return live_source(config, selections, watch=config.functions.watch, ignore=config.functions.ignore)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seams:
    """What a test puts something else in the place of."""

    source: MakeSource = configured_source
    clock: Clock = field(default_factory=SystemClock)
    worker: Callable[[], Worker] = ProcessWorker
    notifier: Notifier = field(default_factory=Notifier)
    step_back: Callable[[], None] = step_back


class Daemon:
    """The daemon from its configuration to its end."""

    def __init__(self, config: Config, path: Path | None, seams: Seams | None = None) -> None:
        """Take the configuration, already checked, and the file it came from, to be read again on reload."""
        self._config = config
        self._path = path
        self._seams = seams or Seams()
        self._state: ControllerState | None = None
        self._messages: list[Callable[[int], Reloaded | Stopping | None]] = []
        self._left = config.budget.overhead
        self._lock = threading.Lock()
        self._shares = Shares(config.budget.overhead, self._budget_left)
        self._keeper: Keeper | None = None
        self._metrics: MetricsServer | None = None
        self._teller = Teller(self._seams.notifier)
        self._experiments: Scheduler | None = None
        self._survey: Survey | None = None
        self._changes: ChangeWatcher | None = None

    def run(self) -> ControllerState:
        """Watch until a signal ends it; return what is known then.

        Raises
        ------
        SpecmineError
            If it cannot start: lock, store, port or socket taken, or this host cannot.
        """
        config = self._config
        if not config.programs:
            raise InputError("no programs are configured", remedy="list what to watch under programs")
        with ExitStack() as stack:
            host_lock = FileLock(config.host_lock, what="this host", remedy="one specmined watches a host: stop it")
            stack.callback(host_lock.release)
            source = self._seams.source(config)
            self._keeper = keeper = Keeper(config.store.path, config.store, _log.warning)
            stack.callback(keeper.close)
            self._changes = ChangeWatcher(keeper.say)
            self._changes.restore(*keeper.past())
            if config.metrics.listen is not None:
                self._metrics = MetricsServer(config.metrics.listen, self._view, series=config.metrics.series)
                stack.callback(self._metrics.close)
            server = Server(
                config.socket.path,
                self._answers(keeper),
                closed=self._shares.end,
                mode=config.socket.mode,
                group=config.socket.group,
            )
            stack.callback(server.close)
            stack.enter_context(handled(self._signals()))
            journal = Path(config.store.path).parent / "experiments.json"
            self._survey = Survey(journal, read_host)
            self._experiments = Scheduler(
                config.experiments,
                journal,
                host=read_host,
                report=_log.warning,
                publish=keeper.document,
            )
            stack.callback(self._experiments.close)
            # The loop closes the source before this stack unwinds: probes go first, then all else
            state = run(
                source,
                settings_of(config),
                self._seams.clock,
                self._seams.worker(),
                listeners=[keeper.listen, self._changes.listen, self._listen],
                restored=keeper.restored,
                inbox=self._inbox,
            )
            _log.info("stopped, every probe is gone", extra=facts(why=state.stopped))
            return state

    def stop(self, why: str) -> None:
        """End at the next turn of the loop."""
        self._teller.stopping(why)
        self._messages.append(lambda now_ns: Stopping(now_ns=now_ns, why=why))

    def switch(self, *, off: bool) -> None:
        """Make or remove the kill switch; the holder of the probes sees it by itself."""
        try:
            switch(Path(self._config.kill_switch), off=off)
        except HostError as error:
            _log.error("the kill switch does not move", extra=facts(reason=str(error)))

    def reload(self) -> None:
        """Read the configuration again at the next turn of the loop."""
        self._messages.append(self._reloaded)

    def _signals(self) -> dict[signal.Signals, Callable[[], object]]:
        """Return what each signal asks for."""
        return {
            signal.SIGTERM: lambda: self.stop("signal"),
            signal.SIGINT: lambda: self.stop("signal"),
            signal.SIGHUP: self.reload,
            signal.SIGUSR1: lambda: self.switch(off=True),
            signal.SIGUSR2: lambda: self.switch(off=False),
        }

    def _inbox(self, now_ns: int) -> Iterable[Reloaded | Surveyed | Stopping]:
        self._teller.heartbeat(now_ns)
        if self._survey is not None and (surveyed := self._survey.turn(now_ns)) is not None:
            yield surveyed
        if self._experiments is not None:
            self._experiments.turn(now_ns, utc_ns(), off=Path(self._config.kill_switch).exists())
        with self._lock:
            messages, self._messages = self._messages, []
        for message in messages:
            event = message(now_ns)
            if event is not None:
                yield event

    def _reloaded(self, now_ns: int) -> Reloaded | None:
        notifier = self._seams.notifier
        notifier.send(RELOADING=1, MONOTONIC_USEC=now_ns // 1000)
        try:
            return self._changed(now_ns)
        finally:
            notifier.send(READY=1)

    def _changed(self, now_ns: int) -> Reloaded | None:
        try:
            new = load_config(self._path) if self._path else Config()
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
        if self._experiments is not None:
            self._experiments.settings = new.experiments
        self._shares.set_budget(new.budget.overhead)
        if self._keeper is not None:
            self._keeper.change(new.store)
        if self._metrics is not None:
            self._metrics.collector.series = new.metrics.series
        logging.getLogger("specmine").setLevel(new.log.level.upper())
        return self._settings_event(now_ns)

    def _settings_event(self, now_ns: int) -> Reloaded:
        settings = replace(settings_of(self._config), overhead=self._left)
        return Reloaded(now_ns=now_ns, settings=settings)

    def _budget_left(self, ratio: float) -> None:
        """Follow a loan; comes from the server's thread."""
        with self._lock:
            self._left = ratio
            self._messages.append(self._settings_event)

    def _listen(self, step: Step) -> None:
        if isinstance(step.event, Begun):
            self._seams.step_back()  # not before: beside two busy CPUs the compiling child would take a minute
            self._teller.begun(step.event.started, ",".join(map(shown, self._config.programs)))
        if isinstance(step.event, Arrived):
            self._teller.arrived(step.event.batch, self._state)
        if step.published:
            self._state = step.state

    def _answers(self, keeper: Keeper) -> Answers:
        return Answers(
            state=lambda: self._state,
            around=self._around,
            shares=self._shares,
            label=keeper.label,
            builds=lambda: keeper.builds,
            changes=self._changes,
            kill_switch=Path(self._config.kill_switch),
        )

    def _view(self) -> tuple[list[Reading], dict[str, Any]] | None:
        state = self._state
        return None if state is None else (readings(state), status_of(state, self._around()))

    def _around(self) -> Surroundings:
        return Surroundings(
            version=__version__,
            pid=os.getpid(),
            programs=tuple(map(shown, self._config.programs)),
            agent_promised=self._config.budget.agent,
            promised=self._config.budget.overhead,
            lent_ratio=sum(self._shares.lent.values()),
            metrics=self._metrics.address if self._metrics else "",
            kill_switch=self._config.kill_switch,
            store=self._keeper.facts if self._keeper else {},
            resident_bytes=resident_bytes(),
            experiments=self._experiments.entries if self._experiments else {},
            changes=self._changes.changes if self._changes else (),
        )


def shown(program: Program) -> str:
    """Return what to call a program: its name, or how it was chosen."""
    return program.name or program.exe or program.unit or program.cgroup or f"pid {program.pid}"


def resident_bytes() -> int:
    """Return the resident memory of this process."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
