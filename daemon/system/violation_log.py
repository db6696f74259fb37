"""One line in the log when a violation opens, when it turns out to be larger, and when it closes."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable

from specmine.daemon.documents.violation_text import Subject, log_line
from specmine.model.violation import Violation, ViolationState

from .logging import facts

_log = logging.getLogger(__name__)

MOST_TOLD = 1_000
"""Violations that were told, beyond which those are forgotten that nobody lists any more."""
ESCALATED = 2.0
"""Reported again if the factor has grown by this much since the last line."""


class ViolationLog:
    """Reports each change of a violation once."""

    def __init__(self) -> None:
        """Begin with nothing; what is open at a restart is reported again, since the reader may be new."""
        self._told: dict[str, Violation] = {}

    def restored(self, violations: Iterable[Violation]) -> None:
        """Take what closed before the start: nobody wants to read it again."""
        self._told |= {each.id: each for each in violations if each.state is not ViolationState.OPEN}

    def published(self, violations: Iterable[Violation], subject: Callable[[Violation], Subject]) -> None:
        """Report what is news among all violations that are known."""
        violations = tuple(violations)
        if len(self._told) > MOST_TOLD:
            known = {each.id for each in violations}
            self._told = {id: each for id, each in self._told.items() if id in known}
        for each in violations:
            before = self._told.get(each.id)
            if before is None or before.state is not each.state or _has_grown(before, each):
                self._told[each.id] = each
                self._report(each, subject(each), again=before is not None)

    def _report(self, violation: Violation, subject: Subject, *, again: bool) -> None:
        line = log_line(violation, subject)
        open_now = violation.state is ViolationState.OPEN
        level = logging.WARNING if open_now and violation.is_problem and not violation.because else logging.INFO
        known = facts(id=violation.id, function=subject.function, program=subject.program, factor=violation.factor)
        _log.log(level, f"more: {line}" if again and open_now else line, extra=known)


def _has_grown(before: Violation, now: Violation) -> bool:
    """Tell whether an open violation is much larger than it was when it was last told."""
    if now.state is not ViolationState.OPEN or min(before.factor, now.factor) <= 0:
        return False
    return abs(math.log(now.factor)) >= abs(math.log(before.factor)) + math.log(ESCALATED)
