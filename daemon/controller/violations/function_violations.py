"""The violations of one function: what is asserted, what was found wrong, and what has closed."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from specmine.daemon.config.settings import SECOND
from specmine.mining.detection.alarm import Alarm, Stream
from specmine.mining.detection.changes import SUSPECTED
from specmine.mining.detection.detector import SHOWN, DetectorState
from specmine.model.observation import Observation
from specmine.model.violation import Direction, Violation

from . import detection
from .change import WindowLocation
from .lost_time import LostTime
from .yardstick import Yardstick

CLOSED = 8
"""Closed violations of a function that the controller remembers; the store has all."""
URGENT, URGENT_FASTER = SUSPECTED, 2 * SUSPECTED
"""Evidence of a change from which it is in doubt what is usual: of one that is slower, or faster. From the first on
windows of a slower one come first, and often: after a long pause one window of twice the time brings little more."""
DOUBT_NS = 600 * SECOND
"""Windows of a suspicion come first for so long at most, ..."""
BROUGHT = 0.75
"""... and only while they have brought so much evidence each, or as much as people are shown. Of a true change nearly
all bring more; of one that is none the evidence stays where it began, for hours."""
LINGERING = 2
"""After so many windows that are as usual again the next comes soon, too: where a few calls pause, not every window has
one that does. So it does after one of too few calls to be looked at alone, if these are far off ..."""
LOCATIONS = 12
"""Windows that are remembered one by one."""
PATIENCE, EARNED = 12.0, 0.25
"""... up to so many in vain. Each other window without evidence earns so much of one."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OpenViolation:
    """A violation that is open, with what decides when it closes."""

    violation: Violation
    of_class: int | None = None
    """Number of the class that it is about, where it is about one."""
    factors: tuple[tuple[int, float], ...] = ()
    """End of each of the newest windows, and the logarithm of observed over expected."""
    refreshed_ns: int = 0
    """When its numbers were last renewed."""
    largest: float = 0.0
    """The factor that was furthest from 1 since it opened; 0: that of the violation."""

    @property
    def extent(self) -> float:
        """Logarithm of the largest factor since it opened."""
        return math.log(max(self.largest or self.violation.factor, 1e-9))


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """The medians of some minutes, for changes that creep."""

    began_ns: int = 0
    windows: int = 0
    total: float = 0.0
    """Sum of the logarithms of observed over expected."""
    outside: int = 0
    """Blocks running that were outside the range, those below it counted negative."""
    first_ns: int = 0
    """Start of the first of these."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FunctionViolations:
    """What is known of the changes of one function."""

    yardstick: Yardstick | None = None
    """None while there is nothing to measure by."""
    detector: DetectorState = field(default_factory=DetectorState)
    pending: tuple[Observation, ...] = ()
    """Windows too short to be looked at one by one."""
    locations: tuple[WindowLocation, ...] = ()
    """Of the newest windows, oldest first: history has two of few calls as one."""
    alarms: tuple[Alarm, ...] = ()
    """Of the newest window: suspected, or more; the most evidence first."""
    calm: int = LINGERING + 1
    """Windows since the last that was urgent, one more than ``LINGERING`` at most ..."""
    patience: float = PATIENCE
    """... and how many more may come soon without evidence."""
    examined: tuple[Stream, ...] = ()
    """Streams whose alarm has been turned into a violation, or belongs to one."""
    standing: tuple[OpenViolation, ...] = ()
    closed: tuple[Violation, ...] = ()
    """The newest that recovered or were acknowledged, oldest first."""
    block: Block = field(default_factory=Block)
    lost: LostTime = field(default_factory=LostTime)
    """What calls took more than the yardstick says."""

    @property
    def ready(self) -> bool:
        """True if its own build has shown what changes are measured by."""
        yardstick = self.yardstick
        return yardstick is not None and yardstick.inherited_ns is None and yardstick.ready

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
        """True while people are shown that something may have changed that no open violation is about."""
        return self.evidence >= SHOWN

    @property
    def evidence(self) -> float:
        """Largest evidence of a change that no open violation is about; 0 below ``URGENT``, and after ``DOUBT_NS``."""
        return max((one.log_e for one in self._doubts), default=0.0)

    @property
    def urgency(self) -> float:
        """Evidence of a change that more windows soon are to decide; 0 if there is none.

        What fast windows could not decide in ``DOUBT_NS``, or bring little evidence of, further ones will not: others
        need them more. So they do if calls may have become faster: nobody waits for that to be found.
        """
        open_to = (
            one.log_e
            for one in self._doubts
            if one.direction is not Direction.FASTER and one.log_e >= min(SHOWN, BROUGHT * one.windows)
        )
        return max(open_to, default=URGENT if self._lingers else 0.0)

    @property
    def evidence_each(self) -> float:
        """Evidence that each window brought since what is suspected began: of a true change all bring some."""
        return max((one.log_e / max(1, one.windows) for one in self._doubts), default=0.0)

    @property
    def _lingers(self) -> bool:
        return 0 < self.calm <= LINGERING and self.patience >= 1 and not self.standing

    def with_alarms(self, alarms: tuple[Alarm, ...]) -> FunctionViolations:
        """Return it with what the newest window says is suspected, or open."""
        if any(_is_urgent(one) and one.direction is not Direction.FASTER for one in alarms):
            return replace(self, alarms=alarms, calm=0)
        patience = self.patience - 1 if self._lingers else min(PATIENCE, self.patience + EARNED)
        return replace(self, alarms=alarms, calm=min(LINGERING, self.calm) + 1, patience=patience)

    def with_pending(self, pending: tuple[Observation, ...], *, is_off: bool) -> FunctionViolations:
        """Return it with windows that hold too few calls yet; if these are far off, the next ones come soon."""
        if not is_off or self.patience < 1 or self.standing:
            return replace(self, pending=pending)
        return replace(self, pending=pending, calm=1, patience=self.patience - 1)

    def changed_ns(self, evidence: float) -> int | None:
        """Return when it changed last, as violations say that are open, or suspicions of so much evidence; or None.

        Of a suspicion that it is faster nobody asks why.
        """
        slower = (one for one in self._doubts if one.direction is not Direction.FASTER)
        doubts = (one.since_ns for one in slower if one.log_e >= evidence)
        return max((*(one.since_ns for one in self.open), *doubts), default=None)

    @property
    def _doubts(self) -> tuple[Alarm, ...]:
        if self.standing:
            return ()
        newest_ns = self.detector.ended_ns
        return tuple(one for one in self.alarms if _is_urgent(one) and newest_ns - one.since_ns < DOUBT_NS)

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
        block = self.block
        if block.began_ns:
            block = replace(block, began_ns=block.began_ns + by_ns, first_ns=block.first_ns + by_ns)
        return replace(
            self,
            yardstick=self.yardstick.shifted(by_ns) if self.yardstick else None,
            detector=detection.shifted(self.detector, by_ns),
            pending=(),
            locations=(),
            alarms=tuple(replace(one, since_ns=one.since_ns + by_ns) for one in self.alarms),
            standing=tuple(
                replace(
                    one,
                    violation=one.violation.shifted(by_ns),
                    factors=tuple((end_ns + by_ns, factor) for end_ns, factor in one.factors),
                    refreshed_ns=one.refreshed_ns + by_ns,
                )
                for one in self.standing
            ),
            closed=tuple(one.shifted(by_ns) for one in self.closed),
            block=block,
            lost=self.lost.shifted(by_ns),
        )


def _is_urgent(alarm: Alarm) -> bool:
    return alarm.log_e >= (URGENT_FASTER if alarm.direction is Direction.FASTER else URGENT)


def identified(violation: Violation, utc_offset_ns: int) -> Violation:
    """Return a violation with the name that the store knows it by."""
    text = "\0".join((*violation.identity, str(violation.found_ns + utc_offset_ns)))
    return replace(violation, id=hashlib.sha256(text.encode()).hexdigest()[:12])
