"""What a detector says when a stream has changed."""

from __future__ import annotations

from dataclasses import dataclass

from specmine.model.violation import Direction, What


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """Which numbers of a function are watched, one per window."""

    what: What
    part: str
    """``all``: location of all calls; ``mean``: their mean duration; ``upper``: location of the slowest tenth;
    ``class 0``: of the calls of a class; ``share 1``: share of a class; ``path``: share of calls over paths that no
    behaviour knows."""
    expression: str = "true"
    """The behaviour whose calls they are; ``true``: all calls of the function."""


EVERY_CALL = Stream(what=What.LEVEL, part="all")
"""The location of all calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """A stream that is suspected to have changed, or has."""

    stream: Stream
    direction: Direction
    factor: float
    """Since the change over before; of durations for a level, of the share otherwise."""
    factor_low: float
    factor_high: float
    """95 % interval."""
    since_ns: int
    """Estimated moment of the change, CLOCK_MONOTONIC."""
    windows: int
    """Windows since then."""
    log_e: float
    """Evidence: natural logarithm of the e-value."""
    opened: bool
    """False: only suspected, and nobody is told but the scheduler."""
