"""Programs that are short of CPU time are told with the violations: their functions may take as long as usual."""

from __future__ import annotations

from dataclasses import replace

from specmine.daemon.controller.allocation.account import BudgetAccount
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.controller.violations.cpu_shortage import Shortage
from specmine.daemon.documents.violation_context import violations_document
from specmine.model.batch import Lifetime, Started
from specmine.model.host.cpu_shortage import CpuShortage
from tests.support.simulated import PRICES, SECOND

LIFETIME = Lifetime(id="boot:7:1", pid=7, executable="/bin/app", build_id="ab", start_ns=500 * SECOND, processes=1)


def test_the_list_of_violations_has_programs_that_run_and_are_short_of_cpu_time() -> None:
    """Since when, and why; not one that ended, nor one that gets as much as usual."""
    usual = CpuShortage(program="app", waiting=0.02)
    short = Shortage(newest=(replace(usual, waiting=0.7),), usual=usual, looks=20, since_ns=800 * SECOND)
    state = ControllerState(
        started=Started(now_ns=500 * SECOND, host={"cpus": "2", "utc_offset_ns": "0"}, prices=PRICES),
        now_ns=900 * SECOND,
        lifetimes={LIFETIME.id: LIFETIME},
        shortages={"app": short, "ended": short},
        account=BudgetAccount(cpu_rate=0.2 * SECOND, host_rate=2.0 * SECOND, usual_host_rate=0.4 * SECOND),
    )
    assert violations_document(state)["short_of_cpu"] == [
        {
            "program": "app",
            "since": "1970-01-01T00:13:20.000Z",
            "text": "other processes keep 1.8 of 2 CPUs busy, usually 0.4",
        }
    ]
    calm = replace(state, shortages={"app": replace(short, since_ns=0)})
    assert violations_document(calm)["short_of_cpu"] == []
