"""The rate of calls of a function and its interval, from looks: on-phases at random times that count calls."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .student_t import t_quantile

LEAST_LOOKS = 3
"""Fewer looks give no interval."""
MOST_TAKEN = 0.5
"""Largest share of time that counting may take; beyond it the rate without looks has no upper bound."""


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

    def with_look(self, calls: int, seconds: float, stands_for: float, taken: float = 0.0) -> Looks:
        """Add a look of ``seconds`` > 0 that represents ``stands_for`` s; counting itself took ``taken`` s of CPU."""
        w, r = max(stands_for, seconds), calls / seconds
        squares = (self.squares[0] + w * w, self.squares[1] + w * w * r, self.squares[2] + w * w * r * r)
        return Looks(
            taken=self.taken + w * taken / seconds,
            number=self.number + 1,
            weight=self.weight + w,
            weighted=self.weighted + w * r,
            squares=squares,
        )

    @property
    def rate(self) -> float:
        """Calls a second."""
        return self.weighted / self.weight if self.weight else 0.0

    def interval(self, level: float = 0.95) -> tuple[float, float] | None:
        """Return the interval of the rate without looks, calls a second; None with too few looks.

        The program cannot use for calls the time that counting takes. Its rate may be higher by that much than the one
        measured. If counting took most of the time, there is no upper end (infinity).
        """
        half = self._half_width(level)
        if half is None:
            return None
        taken = self.taken / self.weight
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
