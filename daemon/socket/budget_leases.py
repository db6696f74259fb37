"""Parts of the daemon's budget lent to a ``mine`` beside it, so that both together keep the promise."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from specmine.model.errors import InputError

LARGEST_LOAN = 0.5
"""Share of the daemon's own budget that can be lent in all; the rest keeps checking what is known."""


class Shares:
    """The loans, by connection: a loan ends with the connection of the one who has it, however that ends."""

    def __init__(self, budget: float, changed: Callable[[float], None]) -> None:
        """Begin without loans.

        Parameters
        ----------
        budget : float
            The budget inside programs, as a ratio of their CPU time.
        changed : callable
            Told the ratio that is left for the daemon whenever it changes.
        """
        self._budget = budget
        self._changed = changed
        self._lent: dict[int, float] = {}
        self._lock = threading.Lock()

    @property
    def lent(self) -> Mapping[int, float]:
        """The present loans: number of the connection to ratio."""
        return dict(self._lent)

    def lend(self, connection: int, wanted: float) -> float:
        """Lend at most what is wanted and return how much; a second request replaces the first.

        Raises
        ------
        InputError
            If everything that can be lent is lent.
        """
        with self._lock:
            others = sum(ratio for other, ratio in self._lent.items() if other != connection)
            granted = min(wanted, LARGEST_LOAN * self._budget - others)
            if granted <= 0.01 * self._budget:
                raise InputError("the daemon has lent all it can of its budget", remedy="try again later")
            self._lent[connection] = granted
            self._tell()
        return granted

    def end(self, connection: int) -> None:
        """Take back what a connection has."""
        with self._lock:
            if self._lent.pop(connection, None) is not None:
                self._tell()

    def set_budget(self, budget: float) -> None:
        """Follow a change of the configuration; loans that no longer fit shrink."""
        with self._lock:
            scale = budget / self._budget
            self._lent = {connection: ratio * min(1.0, scale) for connection, ratio in self._lent.items()}
            self._budget = budget
            self._tell()

    def _tell(self) -> None:
        self._changed(self._budget - sum(self._lent.values()))
