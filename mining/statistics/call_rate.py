"""How often a function is called, from looks at random times: the mean rate and its interval."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .student_t import t_quantile

LEAST_LOOKS = 3
"""Looks below which nothing is said of how far rates differ."""
MOST_TAKEN = 0.5
"""Share of the time that looks may take for the rate without them to have an upper bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Looks:
    """Weighted sums over looks, each of which began at a random time and stands for a stretch of time.

    A look may end when it has seen enough calls. Calls over time would then be the harmonic mean of the rates, too low
    by any factor where calls come in bursts; the mean of the rates, weighted by what each look stands for, is not.
    """

    number: int = 0
    weight: float = 0.0
    """Seconds that the looks stand for, w."""
    weighted: float = 0.0
    """Sum of w r, where r is a look's calls a second."""
    squares: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Sums of w^2, w^2 r and w^2 r^2."""
    taken: float = 0.0
    """Sum of w times the share of the look's time that looking took itself, of one thread: of several together it is
    too much, and the upper end too high."""

    def seen(self, calls: int, seconds: float, stands_for: float, taken: float = 0.0) -> Looks:
        """Add a look of ``seconds`` > 0, which stands for as many or more; looking itself took ``taken`` s of CPU."""
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

        What looks take the program cannot use for calls. So much higher its rate may be than the one that was seen; if
        they took most of the time there is no upper end (infinity).
        """
        half = self._half_width(level)
        if half is None:
            return None
        taken = self.taken / self.weight
        high = (self.rate + half) / (1 - taken) if taken < MOST_TAKEN else math.inf
        return max(0.0, self.rate - half), high

    def _half_width(self, level: float) -> float | None:
        """Return half the interval of the rate that was seen.

        The variance of a weighted mean as of a ratio of sums: Cochran, Sampling Techniques (1977), section 6.3. Looks
        are taken as independent.
        """
        if self.number < LEAST_LOOKS:
            return None
        w2, w2r, w2r2 = self.squares
        spread = max(0.0, w2r2 - 2 * self.rate * w2r + self.rate**2 * w2) / self.weight**2
        n = self.number
        return t_quantile(0.5 + 0.5 * level, n - 1) * math.sqrt(spread * n / (n - 1))
