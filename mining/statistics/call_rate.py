"""The rate of calls of a function and its interval, from looks: on-phases at random times that count calls."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from .student_t import t_quantile

LEAST_LOOKS = 3
"""Fewer looks give no interval."""
MOST_TAKEN = 0.5
"""Largest share of time that counting may take; beyond it the rate without looks has no upper bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One look: calls, its length in seconds, what it stands for, and what it took."""

    calls: int
    seconds: float
    stands_for: float
    taken: float

    def longer(self, more: Look) -> Look:
        """Return it with what was seen next of the same."""
        return Look(
            calls=self.calls + more.calls,
            seconds=self.seconds + more.seconds,
            stands_for=self.stands_for + more.stands_for,
            taken=self.taken + more.taken,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Looks:
    """Weighted sums over looks. A look begins at a random time and represents a stretch of time.

    A look may end when it has counted enough calls. Calls divided by time would then be the harmonic mean of the rates:
    too low by any factor where calls come in bursts. The mean of the rates, weighted by the time each look represents,
    has no such bias.
    """

    number: int = 0
    weight: float = 0.0
    """Seconds that the looks represent: the sum of w."""
    weighted: float = 0.0
    """Sum of w r, where r is a look's calls a second."""
    squares: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Sums of w^2, w^2 r and w^2 r^2."""
    taken: float = 0.0
    """Sum of w times the share of the look's time that counting itself took, as if in one thread.

    With several threads that is too much, and the upper end of the interval too high.
    """
    newest: Look | None = None
    """The last look, which may go on."""

    def with_look(
        self, calls: int, seconds: float, stands_for: float, taken: float = 0.0, *, goes_on: bool = False
    ) -> Looks:
        """Add a look.

        Parameters
        ----------
        calls : int
        seconds : float
            How long, > 0; where only a part of the processes is looked at, that part of the time.
        stands_for : float
            Seconds that it represents.
        taken : float
            CPU time that counting itself took, s.
        goes_on : bool
            It is more of the last look, as while the same processes are looked at: not one by itself.
        """
        look, before = Look(calls=calls, seconds=seconds, stands_for=stands_for, taken=taken), self
        if goes_on and self.newest is not None:
            before, look = self._changed(self.newest, -1), self.newest.longer(look)
        return replace(before._changed(look, 1), newest=look)

    def _changed(self, look: Look, sign: int) -> Looks:
        w, r = max(look.stands_for, look.seconds), look.calls / look.seconds
        first, second, third = self.squares
        return Looks(
            taken=self.taken + sign * w * look.taken / look.seconds,
            number=self.number + sign,
            weight=self.weight + sign * w,
            weighted=self.weighted + sign * w * r,
            squares=(first + sign * w * w, second + sign * w * w * r, third + sign * w * w * r * r),
        )

    @property
    def rate(self) -> float:
        """Calls a second."""
        return self.weighted / self.weight if self.weight else 0.0

    def interval(self, level: float = 0.95, *, wider: float = 1.0) -> tuple[float, float] | None:
        """Return the interval of the rate without looks, calls a second; None with too few looks.

        ``wider`` multiplies half its width.

        The program cannot use for calls the time that counting takes. Its rate may be higher by that much than the one
        measured. If counting took most of the time, there is no upper end (infinity).
        """
        half = self._half_width(level)
        if half is None:
            return None
        taken, half = self.taken / self.weight, wider * half
        high = (self.rate + half) / (1 - taken) if taken < MOST_TAKEN else math.inf
        return max(0.0, self.rate - half), high

    def _half_width(self, level: float) -> float | None:
        """Return half the width of the interval of the measured rate.

        The variance is that of a weighted mean as a ratio of sums: Cochran, Sampling Techniques (1977), section 6.3.
        Looks count as independent.
        """
        if self.number < LEAST_LOOKS:
            return None
        w2, w2r, w2r2 = self.squares
        spread = max(0.0, w2r2 - 2 * self.rate * w2r + self.rate**2 * w2) / self.weight**2
        n = self.number
        return t_quantile(0.5 + 0.5 * level, n - 1) * math.sqrt(spread * n / (n - 1))
