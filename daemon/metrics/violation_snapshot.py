"""What the metrics show of a violation. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from specmine.daemon.documents.violation_text import Subject, metric_text, place, title
from specmine.model.level import PROBABILITIES, Level
from specmine.model.violation import Violation, ViolationState

CLOSED_NS = 300_000_000_000
"""A violation that closed is shown as 0 for so long."""
_RENEWED = 1.1
"""The text is written anew when the factor has changed by this factor, so that labels do not change all the time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownViolation:
    """One violation, with the names around it."""

    violation: Violation
    subject: Subject
    behaviour: str
    """12 hex digits, of (function, build, expression)."""

    @property
    def identity(self) -> tuple[str, str, str]:
        """The values of the labels behaviour, what and direction."""
        return self.behaviour, self.violation.what.value, self.violation.direction.value

    @property
    def is_open(self) -> bool:
        """Whether the assertion is still violated."""
        return self.violation.state is ViolationState.OPEN

    @property
    def is_explained(self) -> bool:
        """Whether another violated function explains it."""
        return bool(self.violation.because)

    @property
    def started(self) -> float:
        """When the change began, Unix seconds."""
        return (self.violation.since_ns + self.subject.utc_offset_ns) / 1e9

    @property
    def info(self) -> tuple[str, ...]:
        """The values of the labels cause, because, where, title and text."""
        violation, subject = self.violation, self.subject
        where = place(violation, subject.function) or "all calls"
        because = subject.because if violation.because else ""
        texts = title(violation, subject), metric_text(violation, subject)
        return violation.cause.kind.value, because, where, *texts

    def says_as(self, told: ShownViolation) -> bool:
        """Tell whether the words for ``told`` still fit: only figures changed, and little."""
        now, then = self.violation, told.violation
        words = (now.cause, now.because, now.state, now.quantile, now.since_ns, self.subject)
        if words != (then.cause, then.because, then.state, then.quantile, then.since_ns, told.subject):
            return False
        return 1 / _RENEWED < now.factor / then.factor < _RENEWED if then.factor > 0 else now.factor == then.factor


def seconds(level: Level) -> dict[str, float]:
    """Return the quantiles of a level by name, in seconds."""
    return {name: each.ns * 1e-9 for name in PROBABILITIES if (each := level.quantile(name)) is not None}


def bounds(level: Level) -> dict[tuple[str, str], float]:
    """Return the ends of the ranges of a level by quantile and bound, in seconds."""
    ends: dict[tuple[str, str], float] = {}
    for name in PROBABILITIES:
        each = level.quantile(name)
        if each is not None and each.low_ns is not None and each.high_ns is not None:
            ends |= {(name, "low"): each.low_ns * 1e-9, (name, "high"): each.high_ns * 1e-9}
    return ends
