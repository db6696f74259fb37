"""What there is to allocate, and what was allocated."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from specmine.daemon.config.settings import SECOND
from specmine.daemon.controller.sampling.profile import Profile
from specmine.model.batch import Lifetime, Prices, Watch
from specmine.model.function import Reason

from .account import MEMORY_NS

FAST_LINKS = 64
"""Functions with probes on at once."""
SLOTS_UNDER_PRESSURE, FEWEST_SLOTS = 16, 4
"""Functions that may be learned at once as soon as our own CPU time must be saved, and with none of it left: each needs
but a few windows, and those come less often then."""
SLOW_LINKS = 6
"""The same where every link is a perf event."""
OWED_NS = 20 * SECOND
"""Once more is owed than so much time brings, most is for paying it back."""
SAVED = 0.8
"""Share of what may be saved up that is waited for before an on-phase that costs more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What there is to allocate."""

    budget: float
    """ns of cost per second."""
    income: float
    """The same without debts and savings, which come and go: what the size of windows goes by."""
    cash: float
    """ns of cost that may be spent at once: a watch with duty cycles begins with an on-phase."""
    prices: Prices
    slow_links: bool
    now_ns: int
    running: tuple[Lifetime, ...] = ()
    runtime: Profile = field(default_factory=Profile)
    """Time profile of code made at run time."""
    cpu_rate: float = 0.0
    """CPU time of the programs, ns per second; 0: not known."""
    surprising: frozenset[str] = frozenset()
    """Functions of which sampling found more than usual: they are timed first."""
    loop_waits: Mapping[str, float] = field(default_factory=dict)
    """The share of the time of functions that waits for work in main loops."""
    pressure: float = 0.0
    """In [0, 1]: how much of our own work must be saved; each window costs a few ms of it."""
    stretch: float = 1.0
    """So much further apart are turns and plans besides, and the square of it what is learned."""
    usual_income: float = math.inf
    """``income`` at what the programs usually use of the CPU: what is owed may have to be paid back from that."""
    backlog: float = 0.0
    """In [0, 1]: how far too few functions have levels while others wait for theirs: checks make room for these."""

    @property
    def check_stretch(self) -> float:
        """How much further apart checks are: learning gives way first, to a quarter, before a change is found later."""
        return max(1.0, self.stretch - 1.0)

    @property
    def slots(self) -> int:
        """Functions that may have probes on at once."""
        return SLOW_LINKS if self.slow_links else FAST_LINKS

    @property
    def lasting(self) -> float:
        """Income that lasts: while the programs use more than usual, as in a fault, not what that brings."""
        return min(self.income, self.usual_income)

    @property
    def is_deep_in_debt(self) -> bool:
        """Whether more is owed than ``OWED_NS`` bring."""
        return self.cash < -self.lasting * OWED_NS / SECOND

    @property
    def borrowable(self) -> float:
        """Cost that one plan may borrow, ns."""
        return SAVED * self.lasting * MEMORY_NS / SECOND

    @property
    def savable(self) -> float:
        """Cost of an on-phase at most that is waited for, ns: more is never saved up, a debt is paid back later."""
        return SAVED * self.income * MEMORY_NS / SECOND

    @property
    def learning_slots(self) -> int:
        """Functions that may be learned at once."""
        most = max(FEWEST_SLOTS, round(SLOTS_UNDER_PRESSURE * (1 - self.pressure)))
        return self.slots if self.pressure <= 0 else min(self.slots, most)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Which probes should be on, and why those that wait do."""

    watches: Mapping[str, Watch] = field(default_factory=dict)
    waiting: Mapping[str, Reason] = field(default_factory=dict)
    left: float = 0.0
    cash: float = 0.0
    check_ns: int = 0
    """When the next function is to be checked, CLOCK_MONOTONIC; 0: none is known."""
