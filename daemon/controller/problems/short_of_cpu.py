"""Which functions of a program show first that it is kept from CPU time, and what keeps it. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Mapping

from specmine.daemon.config.settings import SECOND
from specmine.daemon.controller.allocation.account import BudgetAccount
from specmine.daemon.controller.function import FunctionState
from specmine.daemon.controller.hotness import waits_for_work
from specmine.daemon.controller.phase import FINISHED
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.controller.violations.cpu_shortage import Shortage

TIMED_NS, MOST_TIMED = 60 * SECOND, 4
"""So long after it began so many functions of the program are timed first, those that most time goes into."""


def first_to_show(known: Mapping[str, Shortage], functions: Mapping[str, FunctionState], now_ns: int) -> frozenset[str]:
    """Return the functions that are to be timed first: windows say what the shortage does to them."""
    found: set[str] = set()
    for name, one in known.items():
        if not one.since_ns or now_ns - one.since_ns >= TIMED_NS:
            continue
        own = [
            each
            for each in functions.values()
            if each.state in FINISHED and not waits_for_work(each) and _is_of(each, name)
        ]
        first = heapq.nlargest(MOST_TIMED, own, key=lambda each: (each.profile.inclusive_ns, each.key))
        found.update(each.key for each in first)
    return frozenset(found)


def _is_of(function: FunctionState, program: str) -> bool:
    """Tell whether a function belongs to a program; one that was never observed may belong to any."""
    return not function.identity.programs or program in function.identity.programs


def shortage_of(function: FunctionState, known: Mapping[str, Shortage]) -> Shortage | None:
    """Return what keeps the program of a function from CPU time: of several programs the one that lacks it."""
    own = [one for name, one in known.items() if _is_of(function, name)]
    return max(own, key=lambda one: (bool(one.since_ns), one.now.waiting or 0.0), default=None)


def others_of(account: BudgetAccount) -> tuple[float, float]:
    """Return how many CPUs processes keep busy that nobody watches, now and usually."""
    now, usual = account.host_rate - account.cpu_rate, account.usual_host_rate - account.usual_cpu_rate
    return max(0.0, now) / SECOND, max(0.0, usual) / SECOND


def cpus_of(state: ControllerState) -> int:
    """Return how many CPUs the host has; 0: not known."""
    return int(state.started.host.get("cpus", "0")) if state.started else 0
