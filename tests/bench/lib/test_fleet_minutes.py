"""Simulated hosts divided over processes do as one process would let them do."""

from __future__ import annotations

from argparse import Namespace

import pytest

from bench.fleet.sharing import Outcome, simulated
from bench.lib.simulated_fleet import made_fleet


def outcome(processes: int, *, lost: int = 0) -> Outcome:
    """Return what becomes of three hosts in two minutes."""
    members, centre = made_fleet(3, 8, slowest=50.0, every=20, shares=True)
    given = Namespace(seconds=120, every=20, lost=lost, processes=processes)
    return simulated(members, centre, given, shares=True)


@pytest.mark.parametrize("lost", [0, 70])
def test_processes_change_nothing(lost: int) -> None:
    """What is known after each minute, and what it cost, also once the fleet is not reached any more."""
    one = outcome(1, lost=lost)
    assert one == outcome(2, lost=lost)
    assert (one.known[120] > 0) == (not lost)
    assert one.overhead[120] > one.overhead[60] > 0
