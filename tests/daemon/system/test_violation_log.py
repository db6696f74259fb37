"""One line a violation in the log: when it opens, when it has grown, when it closes."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from specmine.daemon.documents.violation_text import Subject
from specmine.daemon.system.violation_log import ViolationLog
from specmine.model.violation import Direction, Violation, ViolationState
from tests.support.violations import SECOND, violation

ONE = violation("ab+0x10")


def subject(_: Violation) -> Subject:
    """Return the names around any violation."""
    return Subject(function="checksum", program="shop", module="shop")


def lines_of(caplog: pytest.LogCaptureFixture, log: ViolationLog, *violations: Violation) -> list[tuple[int, str]]:
    """Return level and text of the lines about these violations."""
    caplog.clear()
    with caplog.at_level(logging.INFO, "specmine.daemon.system.violation_log"):
        log.published(violations, subject)
    return [(each.levelno, each.getMessage()) for each in caplog.records]


def test_it_is_told_when_it_opens_and_when_it_closes(caplog: pytest.LogCaptureFixture) -> None:
    """Not each second in between, though its numbers change."""
    log = ViolationLog()
    ((level, text),) = lines_of(caplog, log, ONE)
    assert level == logging.WARNING
    assert text.startswith("slower: checksum (shop) 2.1x slower since 00:01:40: median 160 us, normal 72-80 us")
    assert lines_of(caplog, log, replace(ONE, factor=2.2)) == []
    ((level, text),) = lines_of(caplog, log, ONE.closed(ViolationState.RECOVERED, 900 * SECOND))
    assert level == logging.INFO and text.startswith("normal again: checksum (shop), 2.1x slower from")
    assert lines_of(caplog, log, ONE.closed(ViolationState.RECOVERED, 900 * SECOND)) == []


def test_it_is_told_again_when_it_has_grown(caplog: pytest.LogCaptureFixture) -> None:
    """A factor twice as large is another size of trouble."""
    log = ViolationLog()
    lines_of(caplog, log, ONE)
    ((level, text),) = lines_of(caplog, log, replace(ONE, factor=4.3))
    assert level == logging.WARNING and text.startswith("more: slower: checksum (shop) 4.3x slower")
    assert lines_of(caplog, log, replace(ONE, factor=4.4)) == []


def test_consequences_and_improvements_are_no_warnings(caplog: pytest.LogCaptureFixture) -> None:
    """Only what somebody must act on is a warning."""
    log = ViolationLog()
    faster = replace(ONE, id="b", direction=Direction.FASTER, factor=0.5)
    through = replace(ONE, id="c", because="ab+0x20")
    assert [level for level, _ in lines_of(caplog, log, faster, through)] == [logging.INFO] * 2


def test_what_closed_before_the_start_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    """A restart repeats what is open, and nothing else."""
    log, closed = ViolationLog(), replace(ONE, id="b").closed(ViolationState.RECOVERED, 900 * SECOND)
    log.restored([ONE, closed])
    assert len(lines_of(caplog, log, ONE, closed)) == 1
