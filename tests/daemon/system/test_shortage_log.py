"""One line in the log when a program is short of CPU time for a while, and one when it is no longer."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import pytest

from specmine.daemon.system.shortage_log import LASTING_NS, ShortageLog

REDIS = {"program": "redis", "since": None, "text": "other processes keep 2.0 of 2 CPUs busy, usually 0.3"}


def told(caplog: pytest.LogCaptureFixture, log: ShortageLog, *short: Mapping[str, object], now_ns: int) -> list[str]:
    """Return what is reported at a moment."""
    caplog.clear()
    with caplog.at_level(logging.INFO, "specmine.daemon.system.shortage_log"):
        log.published(short, now_ns)
    return [f"{each.levelname} {each.getMessage()}" for each in caplog.records]


def test_a_shortage_is_reported_once_it_lasts_and_when_it_ends(caplog: pytest.LogCaptureFixture) -> None:
    """Not each second in between; the next one is news."""
    log = ShortageLog()
    for begin_ns in (0, 10 * LASTING_NS):
        assert told(caplog, log, REDIS, now_ns=begin_ns) == []
        (line,) = told(caplog, log, REDIS, now_ns=begin_ns + LASTING_NS)
        assert line == f"WARNING short of CPU time: redis: {REDIS['text']}"
        assert told(caplog, log, REDIS, now_ns=begin_ns + 2 * LASTING_NS) == []
        assert told(caplog, log, now_ns=begin_ns + 3 * LASTING_NS) == ["INFO enough CPU time again: redis"]


def test_what_ends_at_once_is_not_reported(caplog: pytest.LogCaptureFixture) -> None:
    """Any CPU is full for some seconds now and then."""
    log = ShortageLog()
    for at_ns in range(0, 4 * LASTING_NS, LASTING_NS):
        assert told(caplog, log, REDIS, now_ns=at_ns) == []
        assert told(caplog, log, now_ns=at_ns + LASTING_NS // 2) == []
