"""The violations of one function: what is asserted, what was found wrong, and what has closed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace

from specmine.mining.detection.alarm import Alarm, Stream
from specmine.model.violation import Violation

from .yardstick import Yardstick

CLOSED = 8
"""Closed violations of a function that the controller remembers; the store has all."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OpenViolation:
    """A violation that is open, with what decides when it closes."""

    violation: Violation
    stream: Stream
    """The stream whose alarm opened it."""
    factors: tuple[tuple[int, float], ...] = ()
    """End of each of the newest windows, and the logarithm of what it is times what is asserted."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FunctionViolations:
    """What is known of the changes of one function."""

    yardstick: Yardstick | None = None
    """None while nothing is asserted."""
    alarms: tuple[Alarm, ...] = ()
    """Of the newest window: suspected, or more."""
    standing: tuple[OpenViolation, ...] = ()
    closed: tuple[Violation, ...] = ()
    """The newest that recovered or were acknowledged, oldest first."""

    @property
    def open(self) -> tuple[Violation, ...]:
        """The violations that are open, oldest first."""
        return tuple(one.violation for one in self.standing)

    @property
    def all(self) -> tuple[Violation, ...]:
        """The open ones, then those that closed, newest first."""
        return (*self.open, *reversed(self.closed))

    @property
    def suspected(self) -> bool:
        """True while a stream may have changed that no open violation is about."""
        return bool(self.alarms) and not self.standing

    def with_closed(self, closed: Iterable[Violation]) -> FunctionViolations:
        """Return it with more closed violations; they are open no longer."""
        new = tuple(closed)
        if not new:
            return self
        ids = {one.id for one in new}
        standing = tuple(one for one in self.standing if one.violation.id not in ids)
        return replace(self, standing=standing, closed=(*self.closed, *new)[-CLOSED:])

    def shifted(self, by_ns: int) -> FunctionViolations:
        """Return it with its times on a clock that is ahead by so much."""
        return replace(
            self,
            yardstick=self.yardstick.shifted(by_ns) if self.yardstick else None,
            alarms=tuple(replace(one, since_ns=one.since_ns + by_ns) for one in self.alarms),
            standing=tuple(
                replace(
                    one,
                    violation=one.violation.shifted(by_ns),
                    factors=tuple((end_ns + by_ns, factor) for end_ns, factor in one.factors),
                )
                for one in self.standing
            ),
            closed=tuple(one.shifted(by_ns) for one in self.closed),
        )


def identified(violation: Violation, utc_offset_ns: int) -> Violation:
    """Return a violation with the name that the store knows it by."""
    text = "\0".join((*violation.identity, str(violation.found_ns + utc_offset_ns)))
    return replace(violation, id=hashlib.sha256(text.encode()).hexdigest()[:12])
