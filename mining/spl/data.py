"""What formulas are evaluated on: the lifetimes of functions, whatever they were read from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from specmine.mining.levels.window import Window
from specmine.mining.regression.comparison import LifetimeSample

from .syntax import Subject


class Missing(Exception):
    """The data does not hold what a formula speaks of; the message says what and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassCalls:
    """Calls per class, one row per lifetime or window; rows say how much shares vary by themselves."""

    rows: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedQuantile:
    """A quantile that a document states, where it does not hold the durations."""

    seconds: float
    low: float
    """From here ..."""
    high: float
    """... to here windows have it."""
    windows: int
    """Windows that ``seconds`` rests on."""
    calls: int


class Data(Protocol):
    """Where evaluation takes its numbers from; of a subject with ``cpu`` the time on CPU is meant."""

    def lifetimes(self, subject: Subject) -> Sequence[LifetimeSample]:
        """Return the lifetimes of a subject with its calls in them, in ns. Raises Missing."""
        ...

    def class_calls(self, subject: Subject, borders_ns: Sequence[float]) -> ClassCalls:
        """Return the calls per class. Raises Missing."""
        ...

    def windows(self, subject: Subject) -> Sequence[Window]:
        """Return the windows of a subject, in the order of time within each lifetime. Raises Missing."""
        ...

    def stated(self, subject: Subject) -> Mapping[str, StatedQuantile] | None:
        """Return the quantiles that a document states of a subject, by name; None where windows say it better."""
        ...
