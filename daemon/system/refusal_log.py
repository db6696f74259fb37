"""The functions that the daemon gave up, in the log: one line for a name and a reason, whatever build it is of."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from specmine.model.batch import Batch
from specmine.model.function import Function

from .logging import facts

_log = logging.getLogger(__name__)

QUIET_NS = 3_600_000_000_000
"""A name that was refused for the same reason is not logged before it was not refused again for this long."""
MOST_KEPT = 2_000
"""Names that are kept, those refused last."""


class RefusalLog:
    """Reports each refusal once, and not again for each new build of a program that is often deployed."""

    def __init__(self) -> None:
        """Have reported nothing yet."""
        self._last_ns: dict[tuple[str, str], int] = {}
        """When a name was last refused for a reason, that which is longest ago first."""

    def arrived(self, batch: Batch, catalog: Mapping[str, Function]) -> None:
        """Log what was refused, except what was refused within the hour before.

        Parameters
        ----------
        batch : Batch
        catalog : mapping
            Functions by key.
        """
        for each in batch.refusals:
            known = catalog.get(each.function)
            name = known.title if known else each.function
            last_ns = self._last_ns.pop((name, each.reason.code), None)
            self._last_ns[name, each.reason.code] = batch.now_ns
            if last_ns is None or batch.now_ns - last_ns >= QUIET_NS:
                _log.info("refused", extra=facts(function=name, code=each.reason.code, why=each.reason.text))
        while len(self._last_ns) > MOST_KEPT:
            del self._last_ns[next(iter(self._last_ns))]
