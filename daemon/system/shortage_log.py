"""One line in the log when a program is short of CPU time, and one when it is no longer."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from specmine.model.text import escaped

from .logging import facts

_log = logging.getLogger(__name__)

LASTING_NS = 30_000_000_000
"""What ends sooner is not reported: any CPU is full for some seconds now and then."""


class ShortageLog:
    """Reports each shortage of CPU time once."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._since_ns: dict[str, int] = {}
        """When a program was first seen to be short of CPU time ..."""
        self._told: set[str] = set()
        """... and the programs of which that was reported."""

    def published(self, short: Iterable[Mapping[str, Any]], now_ns: int) -> None:
        """Report what is news.

        Parameters
        ----------
        short : iterable of mapping
            The programs that are short of CPU time now (``documents.short_of_cpu``).
        now_ns : int
            Time of the controller.
        """
        now = {str(each["program"]): str(each["text"]) for each in short}
        for name, text in now.items():
            since_ns = self._since_ns.setdefault(name, now_ns)
            if name not in self._told and now_ns - since_ns >= LASTING_NS:
                self._told.add(name)
                _log.warning("short of CPU time: %s: %s", escaped(name), text, extra=facts(program=name))
        for name in self._since_ns.keys() - now.keys():
            del self._since_ns[name]
            if name in self._told:
                self._told.discard(name)
                _log.info("enough CPU time again: %s", escaped(name), extra=facts(program=name))
