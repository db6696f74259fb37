"""One line in the log when a program is short of CPU time for a while, and one when it is no longer."""

from __future__ import annotations

import logging

import pytest

from specmine.daemon.controller.allocation.account import BudgetAccount
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.controller.violations.cpu_shortage import Shortage
from specmine.daemon.system.shortage_log import LASTING_NS, ShortageLog
from specmine.model.batch import Lifetime, Started
from specmine.model.host.cpu_shortage import CpuShortage
from tests.support.simulated import PRICES, SECOND

LIFETIME = Lifetime(id="boot:7:1", pid=7, executable="/bin/app", build_id="ab", start_ns=SECOND, processes=1)
USUAL, NOW = CpuShortage(program="app", waiting=0.02), CpuShortage(program="app", waiting=0.7)


def told(caplog: pytest.LogCaptureFixture, log: ShortageLog, now_ns: int, since_ns: int = 0) -> list[str]:
    """Return what is reported at a moment of a program that is short since another, or is not."""
    state = ControllerState(
        started=Started(now_ns=SECOND, host={"cpus": "2"}, prices=PRICES),
        now_ns=now_ns,
        lifetimes={LIFETIME.id: LIFETIME},
        shortages={"app": Shortage(newest=(NOW,), usual=USUAL, looks=20, since_ns=since_ns)},
        account=BudgetAccount(cpu_rate=0.2 * SECOND, host_rate=2.0 * SECOND, usual_host_rate=0.4 * SECOND),
    )
    caplog.clear()
    with caplog.at_level(logging.INFO, "specmine.daemon.system.shortage_log"):
        log.published(state)
    return [f"{each.levelname} {each.getMessage()}" for each in caplog.records]


def test_a_shortage_is_reported_once_it_lasts_and_when_it_ends(caplog: pytest.LogCaptureFixture) -> None:
    """Not each second in between; the next one is news."""
    log = ShortageLog()
    for begin_ns in (LASTING_NS, 10 * LASTING_NS):
        assert told(caplog, log, begin_ns, begin_ns) == []
        (line,) = told(caplog, log, begin_ns + LASTING_NS, begin_ns)
        assert line == "WARNING short of CPU time: app: other processes keep 1.8 of 2 CPUs busy, usually 0.4"
        assert told(caplog, log, begin_ns + 2 * LASTING_NS, begin_ns) == []
        assert told(caplog, log, begin_ns + 3 * LASTING_NS) == ["INFO enough CPU time again: app"]
        assert told(caplog, log, begin_ns + 4 * LASTING_NS) == []


def test_what_ends_at_once_is_not_reported(caplog: pytest.LogCaptureFixture) -> None:
    """Any CPU is full for some seconds now and then."""
    log = ShortageLog()
    for at_ns in range(LASTING_NS, 5 * LASTING_NS, LASTING_NS):
        assert told(caplog, log, at_ns + LASTING_NS // 2, at_ns) == []
        assert told(caplog, log, at_ns + 2 * LASTING_NS // 3) == []
