"""Formulas that a mined specification is made of: class shares and levels, with what they were learned from."""

from __future__ import annotations

from dataclasses import dataclass

from .lexicon import duration, number
from .syntax import Formula, Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class MinedAssertion(Formula):
    """A mined assertion: calls fall into classes as so many calls did."""

    subject: Subject
    borders: tuple[float, ...]
    """In s, ascending; a duration equal to a border belongs to the lower class."""
    shares: tuple[float, ...]
    calls: int

    def __str__(self) -> str:
        """Return the text."""
        borders = ", ".join(map(duration, self.borders)) or "none"
        shares = ", ".join(map(number, self.shares))
        return f"shares({self.subject}, {borders}{self.subject.condition_text}) ~ [{shares}] of {self.calls}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalQuantile:
    """One quantile of a level, and the range in which windows of an unchanged program have it. In s."""

    name: str
    """p50, p90 or p99."""
    seconds: float
    low: float
    high: float

    def __str__(self) -> str:
        """Return the text."""
        return f"{self.name} {duration(self.seconds)} in [{duration(self.low)}, {duration(self.high)}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class MinedLevel(Formula):
    """A mined level: calls take as long as so many calls in so many lifetimes did."""

    subject: Subject
    quantiles: tuple[NormalQuantile, ...]
    calls: int
    windows: int
    lifetimes: int
    above: float | None = None
    """In s: only calls that take longer ..."""
    upto: float | None = None
    """... and at most so long; None: no limit."""

    def __str__(self) -> str:
        """Return the text."""
        bounds = (f", > {duration(self.above)}" if self.above is not None else "") + (
            f", <= {duration(self.upto)}" if self.upto is not None else ""
        )
        asserted = ", ".join(map(str, self.quantiles))
        return (
            f"levels({self.subject}{bounds}{self.subject.condition_text}) ~ [{asserted}]"
            f" of {_counted(self.calls, 'call')} in {_counted(self.windows, 'window')}"
            f" of {_counted(self.lifetimes, 'lifetime')}"
        )


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
