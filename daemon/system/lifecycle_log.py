"""What the daemon says of its life: to the log, and to the service manager."""

from __future__ import annotations

import logging
import os

from specmine import __version__
from specmine.daemon.controller.state import ControllerState
from specmine.model.batch import Batch, Started

from .logging import facts
from .systemd import Notifier

_log = logging.getLogger(__name__)


class Teller:
    """Says each thing once."""

    def __init__(self, notifier: Notifier) -> None:
        """Take the service manager to tell."""
        self._notifier = notifier
        self._told_ns = 0
        self._off = False
        self._refused: set[tuple[str, str]] = set()

    def begun(self, started: Started, programs: str) -> None:
        """Say that the programs are watched."""
        for note in started.notes:
            _log.info(note)
        _log.info("watching", extra=facts(version=__version__, link=started.host.get("link"), programs=programs))
        self._notifier.send(READY=1, STATUS="looking for hot functions", MAINPID=os.getpid())

    def arrived(self, batch: Batch, state: ControllerState | None) -> None:
        """Log each refusal once, and when the kill switch comes or goes."""
        for each in batch.refusals:
            named = (each.function, each.reason.code)
            if named not in self._refused:
                self._refused.add(named)
                known = state.catalog.get(each.function) if state else None
                name = known.title if known else each.function
                _log.info("refused", extra=facts(function=name, code=each.reason.code, why=each.reason.text))
        if batch.switched_off != self._off:
            self._off = batch.switched_off
            _log.warning("all probes are switched off" if self._off else "probes may be on again")

    def heartbeat(self, now_ns: int) -> None:
        """Tell the service manager twice an interval that the loop turns."""
        watchdog_ns = self._notifier.watchdog_ns
        if watchdog_ns and now_ns - self._told_ns >= watchdog_ns // 2:
            self._told_ns = now_ns
            self._notifier.send(WATCHDOG=1)

    def stopping(self, why: str) -> None:
        """Say that the end begins."""
        _log.info("stopping", extra=facts(why=why))
        self._notifier.send(STOPPING=1, STATUS="taking the probes off")
