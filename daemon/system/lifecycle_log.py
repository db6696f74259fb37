"""The daemon's start and stop: in the log, and for the service manager."""

from __future__ import annotations

import logging
import os

from specmine import __version__
from specmine.model.batch import Batch, Started

from .logging import facts
from .systemd import Notifier

_log = logging.getLogger(__name__)


class LifecycleLog:
    """Reports each event once."""

    def __init__(self, notifier: Notifier) -> None:
        """Take the service manager's notifier."""
        self._notifier = notifier
        self._notified_ns = 0
        self._off = False

    def started(self, started: Started, programs: str) -> None:
        """Report that the programs are watched."""
        for note in started.notes:
            _log.info(note)
        _log.info("watching", extra=facts(version=__version__, link=started.host.get("link"), programs=programs))

    def ready(self) -> None:
        """Report to the service manager that probes are on and that the daemon answers."""
        self._notifier.send(READY=1, STATUS="looking for hot functions", MAINPID=os.getpid())

    def arrived(self, batch: Batch) -> None:
        """Log what the kernel side has to say, and each change of the kill switch."""
        for note in batch.notes:
            _log.warning(note)
        if batch.switched_off != self._off:
            self._off = batch.switched_off
            _log.warning("all probes are switched off" if self._off else "probes may be on again")

    def heartbeat(self, now_ns: int) -> None:
        """Report to the service manager that the loop runs, twice in each interval of its watchdog."""
        watchdog_ns = self._notifier.watchdog_ns
        if watchdog_ns and now_ns - self._notified_ns >= watchdog_ns // 2:
            self._notified_ns = now_ns
            self._notifier.send(WATCHDOG=1)

    def stopping(self, why: str) -> None:
        """Report that the daemon is about to end."""
        _log.info("stopping", extra=facts(why=why))
        self._notifier.send(STOPPING=1, STATUS="taking the probes off")
