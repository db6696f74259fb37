"""A logarithmic axis of durations: where a duration lies, and which ticks it has."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from specmine.analysis.wording.typesetting import typeset
from specmine.model.text import three_digits

_MOST_TICKS = 9
_STEPS: tuple[tuple[float, ...], ...] = ((1, 2, 5), (1, 3), (1,))
_FINE_STEPS: tuple[tuple[float, ...], ...] = (
    (1, 1.5, 2, 3, 4, 5, 7),
    (1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9),
)
"""Of a short axis, where the others have fewer than three ticks."""
_FEWEST_TICKS = 3


@dataclass(frozen=True, slots=True)
class LogAxis:
    """From ``low`` to ``high`` seconds, both above 0."""

    low: float
    high: float

    def place(self, seconds: float) -> float:
        """Return where a duration lies, in [0, 1]; beyond the ends it is at the end."""
        if seconds <= self.low:
            return 0.0
        return min(1.0, math.log(seconds / self.low) / math.log(self.high / self.low))

    def percent(self, seconds: float) -> str:
        """Return the place as an attribute of SVG."""
        return f"{100 * self.place(seconds):.2f}%"

    def ticks(self, most: int = _MOST_TICKS) -> list[tuple[float, str]]:
        """Return some round durations within the axis, with their text."""
        found: list[float] = []
        for steps in _STEPS:
            found = self._round(steps)
            if len(found) <= most:
                break
        for steps in _FINE_STEPS:
            if len(found) < _FEWEST_TICKS:
                found = self._round(steps)
        every = max(1, math.ceil(len(found) / most))
        return [(each, typeset(three_digits(each))) for each in found[::every]]

    def _round(self, steps: tuple[float, ...]) -> list[float]:
        """Return the durations within the axis that are one of the steps in some decade."""
        decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        found = [step * 10.0**decade for decade in decades for step in steps]
        return [each for each in found if self.low * 0.999 <= each <= self.high * 1.001]


def axis_over(values: Iterable[float], *, least_ratio: float = 4.0) -> LogAxis:
    """Return an axis with some room around the values; durations of 0 are taken as a nanosecond."""
    known = [max(1e-9, value) for value in values]
    low, high = (min(known), max(known)) if known else (1e-6, 1e-3)
    room = max(1.15, math.sqrt(least_ratio / (high / low)) if high / low < least_ratio else 1.15)
    return LogAxis(low / room, high * room)
