"""Calls that have not returned after ``max_open``: given up, and counted as censored.

The kernel counts the calls that are open now by the period in which they began. A period lasts as long as
``max_open``. So when one begins, what is still open of the last but one is older than that, and is given up. A call
that was given up and ends later has no duration. One that returns too late before it was given up has none either:
the kernel counts it as censored itself.
"""

from __future__ import annotations

from specmine.probes.kernel.structs import PERIODS

from .slot import Slot


class OpenCalls:
    """The calls of one slot that were given up."""

    def __init__(self, slot: Slot, max_open_ns: int) -> None:
        """Give nothing up yet."""
        self._slot, self._max_open_ns = slot, max_open_ns
        slot.set_max_open(max_open_ns)
        self._next_ns = 0
        self._given_up = 0
        self._known = [0] * PERIODS
        """Given up so far, by the remainder of the period in which they began."""

    @property
    def censored(self) -> int:
        """Running total of calls that lasted longer than ``max_open``, each counted once."""
        return self._given_up + self._slot.count("censored")

    def poll(self, now_ns: int) -> None:
        """Give up what has been open for too long; a call is given up between one and two times ``max_open``."""
        if now_ns >= self._next_ns:
            self._next_ns = now_ns + self._max_open_ns
            self._given_up += self._next_period()

    def give_up_all(self) -> None:
        """Give up all calls that are open now: nobody will learn when they return."""
        self._given_up += self._next_period() + self._next_period()

    def forget_all(self) -> None:
        """Give up all calls without counting them: the slot gets another function."""
        self._next_period()
        self._next_period()

    def _next_period(self) -> int:
        """Begin a period; return how many calls of the last but one are given up by that."""
        began = self._slot.next_period() - 2
        late = self._slot.count_of_period("late", began)  # read first: what ends in between is given up next time
        total = late + self._slot.count_of_period("open", began)
        fresh = total - self._known[began % PERIODS]
        self._known[began % PERIODS] = total
        return max(0, fresh)
