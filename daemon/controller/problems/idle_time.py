"""How much of a function's time passes waiting for work, in it or in what it calls. Pure.

An event loop, ``main`` and a thread's first function have all the time of a thread, most of it in ``epoll_wait``.
Nobody can make that shorter, so people want to see other functions first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from specmine.daemon.controller.function import FunctionState
from specmine.daemon.controller.hotness import waits_for_work

MOST_CALLS = 64
"""Calls one above the other that are followed; recursion ends there."""
LEAST_PART = 1e-3
"""Of a function's time; less is not followed to its callers."""


def idle_shares(functions: Mapping[str, FunctionState]) -> dict[str, float]:
    """Return the share of the time of functions that passes waiting for work; functions without any are left out.

    Samples tell the time of a function through each of its direct callers. What waits in it is divided alike.

    Parameters
    ----------
    functions : mapping of str to FunctionState
        All functions by key.

    Returns
    -------
    dict
        In (0, 1] by key.
    """
    found: dict[str, float] = {}
    ahead: dict[str, float] = defaultdict(float)
    for key, function in functions.items():
        if waits_for_work(function) and function.profile.inclusive_ns > 0:
            found[key] = function.profile.inclusive_ns
            _add_to_callers(ahead, function, function.profile.inclusive_ns)
    waits = frozenset(found)
    for _ in range(MOST_CALLS):
        here, ahead = ahead, defaultdict(float)
        for key, idle_ns in here.items():
            above = functions.get(key)
            if above is None or key in waits or idle_ns < LEAST_PART * above.profile.inclusive_ns:
                continue
            found[key] = found.get(key, 0.0) + idle_ns
            _add_to_callers(ahead, above, idle_ns)
        if not ahead:
            break
    return {key: min(1.0, idle_ns / functions[key].profile.inclusive_ns) for key, idle_ns in found.items()}


def _add_to_callers(amounts: dict[str, float], function: FunctionState, idle_ns: float) -> None:
    callers = function.profile.callers
    total = max(sum(time_ns for _, time_ns in callers), function.profile.inclusive_ns)
    for key, time_ns in callers:
        amounts[key] += idle_ns * time_ns / total
