"""One line in the log when a program is short of CPU time, and one when it is no longer."""

from __future__ import annotations

import logging

from specmine.daemon.controller.state import ControllerState
from specmine.daemon.documents.short_of_cpu import shortage_in_words, shortages
from specmine.model.text import escaped

from .logging import facts

_log = logging.getLogger(__name__)

LASTING_NS = 30_000_000_000
"""What ends sooner is not reported: any CPU is full for some seconds now and then."""


class ShortageLog:
    """Reports each shortage of CPU time once."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._told: set[str] = set()
        """The programs that were reported to be short of CPU time, and are."""

    def published(self, state: ControllerState) -> None:
        """Report what is news in a state."""
        short = shortages(state)
        for name, one in short.items():
            if name not in self._told and state.now_ns - one.since_ns >= LASTING_NS:
                self._told.add(name)
                text = shortage_in_words(one, state)
                _log.warning("short of CPU time: %s: %s", escaped(name), text, extra=facts(program=name))
        for name in sorted(self._told - short.keys()):
            self._told.discard(name)
            _log.info("enough CPU time again: %s", escaped(name), extra=facts(program=name))
