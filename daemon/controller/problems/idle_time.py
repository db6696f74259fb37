"""How much of a function's time passes waiting for work, in it or in what it calls. Pure.

An event loop, ``main`` and a thread's first function have all the time of a thread, most of it in ``epoll_wait``.
Nobody can make that shorter, so people want to see other functions first. A function that works may wait in the same
way, for a lock that another process holds: that is not for lack of work.
"""

from __future__ import annotations

from collections.abc import Mapping

from specmine.daemon.controller.function import FunctionState
from specmine.daemon.controller.hotness import WORKING, waits_for_work
from specmine.daemon.controller.sampling.callers import MOST_CALLS, carried_up


def idle_shares(functions: Mapping[str, FunctionState]) -> dict[str, float]:
    """Return the share of the time of functions that passes waiting for work; functions without any are left out.

    Parameters
    ----------
    functions : mapping of str to FunctionState
        All functions by key.

    Returns
    -------
    dict
        In (0, 1] by key.
    """
    call = {caller for function in functions.values() for caller, _ in function.profile.callers}
    waits = {
        key: function.profile.inclusive_ns
        for key, function in functions.items()
        if waits_for_work(function) and function.profile.inclusive_ns > 0
    }
    # what only jumps to a wait has the time and callers of that
    going_up = [key for key in waits if functions[key].profile.own_ns or key in call]
    found = carried_up(waits, going_up, {key: one.profile for key, one in functions.items()})
    return {key: min(1.0, idle_ns / functions[key].profile.inclusive_ns) for key, idle_ns in found.items()}


def loop_shares(functions: Mapping[str, FunctionState], idle: Mapping[str, float]) -> dict[str, float]:
    """Return the share of the time of functions that waits for work, as far as no function above them works.

    Parameters
    ----------
    functions : mapping of str to FunctionState
        All functions by key.
    idle : mapping of str to float
        Their idle shares.

    Returns
    -------
    dict
        In (0, 1] by key; functions without any are left out.
    """
    within: dict[str, float] = {}

    def within_work(key: str, calls: int = 0) -> float:
        """Return the share of a function's time that passes below one that works, that function included."""
        if key not in within:
            function, within[key] = functions[key], 0.0  # recursion ends here
            callers = [each for each in function.profile.callers if each[0] in functions]
            if not function.profile.loop_bottom and idle.get(key, 0.0) < WORKING and function.probe.rate != 0.0:
                within[key] = 1.0
            elif not function.profile.loop_bottom and calls < MOST_CALLS and callers:
                working_ns = sum(time_ns * within_work(caller, calls + 1) for caller, time_ns in callers)
                within[key] = working_ns / max(sum(time_ns for _, time_ns in callers), 1.0)
        return within[key]

    shares = {key: share * (1 - within_work(key)) for key, share in idle.items()}
    return {key: share for key, share in shares.items() if share > 0}
