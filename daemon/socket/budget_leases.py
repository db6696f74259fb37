"""Parts of the daemon's budget leased to a ``mine`` on the same host, so that both together keep the promise."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from specmine.model.errors import InputError

LARGEST_LEASED_SHARE = 0.5
"""Share of the daemon's own budget that can be leased in all; the rest goes on with verification."""


class BudgetLeases:
    """The leases, by connection: a lease ends with its connection, however that ends."""

    def __init__(self, budget: float, changed: Callable[[float], None]) -> None:
        """Begin without leases.

        Parameters
        ----------
        budget : float
            The overhead budget, as a ratio of the programs' CPU time.
        changed : callable
            Gets the ratio that is left for the daemon whenever it changes.
        """
        self._budget = budget
        self._changed = changed
        self._granted: dict[int, float] = {}
        self._lock = threading.Lock()

    @property
    def granted(self) -> Mapping[int, float]:
        """The present leases: number of the connection to ratio."""
        return dict(self._granted)

    def grant(self, connection: int, wanted: float) -> float:
        """Lease at most what is wanted and return how much; a second request replaces the first.

        Raises
        ------
        InputError
            If everything that can be leased is leased.
        """
        with self._lock:
            others = sum(ratio for other, ratio in self._granted.items() if other != connection)
            granted = min(wanted, LARGEST_LEASED_SHARE * self._budget - others)
            if granted <= 0.01 * self._budget:
                raise InputError("the daemon has lent all it can of its budget", remedy="try again later")
            self._granted[connection] = granted
            self._report_rest()
        return granted

    def end(self, connection: int) -> None:
        """End the lease of a connection."""
        with self._lock:
            if self._granted.pop(connection, None) is not None:
                self._report_rest()

    def set_budget(self, budget: float) -> None:
        """Follow a change of the configuration; leases that no longer fit shrink."""
        with self._lock:
            scale = budget / self._budget
            self._granted = {connection: ratio * min(1.0, scale) for connection, ratio in self._granted.items()}
            self._budget = budget
            self._report_rest()

    def _report_rest(self) -> None:
        self._changed(self._budget - sum(self._granted.values()))
