"""One mining in the foreground: ``specmine mine`` and ``record`` without a daemon."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from specmine import __version__
from specmine.daemon.config.loader import load_config
from specmine.daemon.config.settings import Settings, settings_of
from specmine.daemon.config.tree import Config
from specmine.daemon.controller.events import Reloaded, Stopping, Surveyed
from specmine.daemon.documents.specification import last_specification, specification
from specmine.daemon.host.environment_watcher import EnvironmentWatcher
from specmine.daemon.persistence.recorder import StoreRecorder
from specmine.daemon.socket.client import DaemonConnection, NoDaemon
from specmine.daemon.system.cpu_weight import lighter
from specmine.daemon.system.kill_switch import check_on
from specmine.daemon.system.launcher import Command, CommandSource
from specmine.daemon.worker.process import ProcessWorker
from specmine.experiments.host.facts import read_host
from specmine.experiments.results.journal import default_path
from specmine.model.clock import SystemClock
from specmine.model.errors import InputError, SpecmineError
from specmine.probes.process.proc import processes
from specmine.probes.process.selection import Selection, belongs

from .kernel_source import live_source
from .loop import Listener, Step, run
from .name_search import NameSearch, none_is_named
from .replay import recorder

RENEW_EVERY_NS = 10_000_000_000

Progress = Callable[[Callable[[], dict[str, Any]]], bool]
"""Called often with a function that returns the specification so far; answers whether to go on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MineOptions:
    """What the user asked for; exactly one of pid, exe, unit and command."""

    pid: int | None = None
    exe: Path | None = None
    unit: str | None = None
    command: tuple[str, ...] = ()
    duration_s: float | None = None
    budget: float | None = None
    functions: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    store: Path | None = None
    record: Path | None = None
    user: str | None = None
    config: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MineResult:
    """What was learned: a ``specmine.specification/1``."""

    document: dict[str, Any]
    unnamed: bool = False
    """The program has none of the functions that were named."""
    names: tuple[str, ...] = ()
    """Functions of the program's own file, where it has none of those that were named."""


def mine(options: MineOptions, progress: Progress) -> MineResult:
    """Mine until the duration, the program or the user ends it.

    Raises
    ------
    InputError
        A program, file, user or function that is not there.
    HostError
        This host cannot, or privilege is missing.
    """
    config = load_config(options.config) if options.config else Config()
    duration_ns = None if options.duration_s is None else int(options.duration_s * 1e9)
    check_on(Path(config.kill_switch))
    settings = chosen_settings(options, config).for_duration(duration_ns)
    with contextlib.ExitStack() as stack:
        command = None
        if options.command:
            command = Command(options.command, options.user)
            stack.callback(command.kill)
        stack.enter_context(lighter())  # once the command has started: it keeps its own weight
        selection = chosen(options, command)
        live = live_source(
            config, [selection], watch=settings.watch, ignore=settings.ignore, sampling=not settings.watch
        )
        wrapped = CommandSource(live, command, duration_ns) if command else None
        lease = BudgetLease(config.socket.path, settings.overhead)
        stack.callback(lease.close)
        settings = replace(settings, overhead=lease.ratio)
        listeners: list[Listener] = []
        store_recorder = None
        if options.store:
            store_recorder = StoreRecorder(options.store, config.store, _warn, set_aside=False)
            stack.callback(store_recorder.close)
            listeners.append(store_recorder.listen)
        if options.record:
            recording, listener = recorder(options.record, __version__)
            stack.enter_context(recording)
            listeners.append(listener)
        # A command may execute the real program later: of it nothing is sure
        search = NameSearch(options.functions) if options.functions and command is None else None
        inbox = _Inbox(progress, wrapped, lease, search)
        listeners.append(inbox.listen)
        state = run(
            wrapped or live,
            settings,
            SystemClock(),
            ProcessWorker(),
            listeners=listeners,
            restored=store_recorder.restored if store_recorder else None,
            inbox=inbox.messages,
            deadline_ns=None if wrapped else duration_ns,
        )
    sure = search is not None and search.sure
    return MineResult(
        document=last_specification(state),
        unnamed=sure or none_is_named(state, options.functions, seen=inbox.seen, interrupted=inbox.interrupted),
        names=search.known if search is not None else (),
    )


def chosen_settings(options: MineOptions, config: Config) -> Settings:
    """Return the controller's settings: the configuration, with what the command line says above it."""
    settings = replace(settings_of(config), agent=0.0)  # who waits for the result wants it soon
    if options.budget is not None:
        settings = replace(settings, overhead=options.budget)
    if options.functions:
        settings = replace(settings, watch=options.functions)
    if options.ignore:
        settings = replace(settings, ignore=options.ignore)
    if settings.watch:  # nothing is searched for, and nobody is told of changes
        settings = replace(settings, sampling_hertz=0)
    return settings


def chosen(options: MineOptions, command: Command | None) -> Selection:
    """Return the choice of the program. Raises InputError for a unit without a process."""
    if command is not None:
        return Selection(pid=command.pid, at_exec=True)
    if options.pid is not None:
        return Selection(pid=options.pid)
    if options.exe is not None:
        return Selection(exe=os.path.realpath(options.exe))
    selection = Selection(unit=options.unit or "")
    if not any(belongs(selection, each.pid, None) for each in processes()):
        raise InputError(f"no process runs in unit {options.unit}", remedy="see `systemctl status`")
    return selection


class BudgetLease:
    """A lease of part of the daemon's budget, if one runs on this host: both together keep its promise."""

    def __init__(self, path: str, wanted: float) -> None:
        """Ask the daemon for a lease; without a daemon all that was wanted is granted."""
        self.ratio = wanted
        self._renew_at_ns = 0
        self._connection: DaemonConnection | None = None
        with contextlib.suppress(NoDaemon):
            self._connection = DaemonConnection(path)
            self.ratio = float(self._connection.ask({"command": "share", "ratio": wanted})["granted_ratio"])

    def renew(self, now_ns: int) -> None:
        """Renew the lease from time to time: the daemon ends one whose holder is silent."""
        if self._connection is not None and now_ns >= self._renew_at_ns:
            self._renew_at_ns = now_ns + RENEW_EVERY_NS
            try:
                self._connection.ask({"command": "status"})
            except SpecmineError:  # the daemon has ended, and with it the lease
                self.close()

    def close(self) -> None:
        """End the lease."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _warn(text: str) -> None:
    logging.getLogger(__name__).warning(text)


class _Inbox:
    """Shows progress, and turns the user's wish to stop and news of the host into events."""

    def __init__(
        self, progress: Progress, command: CommandSource | None, lease: BudgetLease, search: NameSearch | None = None
    ) -> None:
        self._progress, self._command, self._lease, self._search = progress, command, lease, search
        self.interrupted = False
        """The user ended it."""
        self.seen = False
        """A process of the program was seen."""
        self._step: Step | None = None
        self._environment_watcher = EnvironmentWatcher(default_path(), read_host)

    def listen(self, step: Step) -> None:
        """Remember the newest step."""
        self._step = step
        self.seen = self.seen or any(each.processes for each in step.state.lifetimes.values())

    def messages(self, now_ns: int) -> Iterable[Reloaded | Surveyed | Stopping]:
        """Return news of the host and show progress; stop if the user wants it."""
        self._lease.renew(now_ns)
        surveyed = self._environment_watcher.turn(now_ns)
        if surveyed is not None:
            yield surveyed
        if self._step is not None and self._search is not None and self._search.turn(self._step.state):
            yield Stopping(now_ns=now_ns, why="unnamed")
            return
        if self._step is None or self._progress(self._document):
            return
        self.interrupted = True
        if self._command is not None:
            self._command.stopping = True  # the command's end is the program's end, with its status
        else:
            yield Stopping(now_ns=now_ns, why="signal")

    def _document(self) -> dict[str, Any]:
        assert self._step is not None
        return specification(self._step.state)
