"""The status says who has the CPUs, and since when programs run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from specmine.daemon.controller.allocation.account import BudgetAccount
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.controller.violations.cpu_shortage import Shortage
from specmine.daemon.documents.status import DaemonFacts, status_of
from specmine.model.batch import Lifetime, Started
from specmine.model.host.cpu_shortage import CpuShortage
from tests.support.simulated import PRICES

SECOND = 10**9
LIFETIME = Lifetime(id="boot:7:1", pid=7, executable="/bin/app", build_id="ab", start_ns=500 * SECOND, processes=1)


def test_a_program_that_ran_before_has_its_own_start() -> None:
    """What started while specmine runs was seen at once; what ran before was not."""
    before = replace(LIFETIME, id="boot:8:2000", pid=8)
    later = replace(LIFETIME, id="boot:9:51000", pid=9, start_ns=511 * SECOND)
    account = BudgetAccount(began_ns=499 * SECOND)
    started = Started(now_ns=499 * SECOND, host={"cpus": "2", "utc_offset_ns": "0"}, prices=PRICES)
    lifetimes = {each.id: each for each in (before, later)}
    state = ControllerState(started=started, now_ns=900 * SECOND, lifetimes=lifetimes, account=account)
    told = {each["pid"]: each["started"] for each in status_of(state, DaemonFacts())["lifetimes"]}
    assert told == {8: "1970-01-01T00:00:20.000Z", 9: "1970-01-01T00:08:31.000Z"}


def status(one: Shortage, **account: Any) -> dict[str, Any]:
    """Return the status of a program on a host of two CPUs."""
    started = Started(now_ns=500 * SECOND, host={"cpus": "2"}, prices=PRICES)
    state = ControllerState(
        started=started,
        now_ns=900 * SECOND,
        lifetimes={LIFETIME.id: LIFETIME},
        shortages={"app": one},
        account=BudgetAccount(**{name: value * SECOND for name, value in account.items()}),
    )
    return status_of(state, DaemonFacts())


def test_who_has_the_cpus_is_said_where_nothing_takes_more_than_usual() -> None:
    """A program may wait for CPUs that others had before, too, or that watched programs have."""
    usual = CpuShortage(program="app", waiting=0.02)
    one = Shortage(newest=(CpuShortage(program="app", waiting=0.61),), usual=usual, looks=20, since_ns=1)
    (watched,) = status(one, cpu_rate=0.5, host_rate=2.0, usual_cpu_rate=0.5, usual_host_rate=1.9)["watched"]
    assert watched["short_of_cpu"] == (
        "its program waits for a CPU 61 % of the time in which it could run, usually 2 %; "
        "other processes keep 1.5, watched programs 0.5 of 2 CPUs busy"
    )
    (watched,) = status(one, cpu_rate=0.2, host_rate=2.0, usual_cpu_rate=0.2, usual_host_rate=0.4)["watched"]
    assert watched["short_of_cpu"] == "other processes keep 1.8 of 2 CPUs busy, usually 0.2"
    (watched,) = status(one)["watched"]
    assert watched["short_of_cpu"].endswith("usually 2 %"), "it is not known who has them"
