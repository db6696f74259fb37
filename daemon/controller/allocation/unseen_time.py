"""The function that comes first: in its calls is most of the program's time that no known function has. Pure.

Whatever becomes slower below a known function shows in it. So the function that handles requests tells of more faults
than any of those that it calls, though it has little time of its own. Once it is known, wrappers around it add nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from specmine.daemon.config.settings import Settings
from specmine.daemon.controller.function import FunctionState
from specmine.daemon.controller.hotness import WORKING, Total, is_idle
from specmine.daemon.controller.phase import State
from specmine.daemon.controller.sampling.callers import MOST_CALLS, carried_up

from .learning import is_judged, patience

LEAST_SHARE = 0.1
"""Of the program's CPU time that no known function has; who would add less comes by its utility."""
LEAST_RATE = 1.0
"""Calls a second: functions that are called more rarely would hold up the others."""


def most_unseen(
    functions: Mapping[str, FunctionState], total: Total, loop_waits: Mapping[str, float], settings: Settings
) -> str:
    """Return the function that would add most to what known functions see of the program's time; '' if none adds much.

    Parameters
    ----------
    functions : mapping of str to FunctionState
        All functions by key.
    total : Total
        All time that sampling found.
    loop_waits : mapping of str to float
        The share of the time of functions that waits for work in main loops.
    settings : Settings
    """
    least_ns = LEAST_SHARE * total.cpu_ns
    wide = {
        key: working_ns
        for key, function in functions.items()
        if function.profile.inclusive_ns >= least_ns > 0  # few are, and the rest takes time
        and (working_ns := _working_ns(function, loop_waits)) >= least_ns
        and _may_be_learned(function, loop_waits, settings)
    }
    if not wide:
        return ""
    known = {key: _working_ns(function, loop_waits) for key, function in functions.items() if is_judged(function)}
    below_ns = carried_up(known, known, {key: one.profile for key, one in functions.items()})
    above = dict.fromkeys(known, 1.0)
    most_ns, first = max(
        (time_ns * (1 - _seen(key, functions, above)) - below_ns.get(key, 0.0), key) for key, time_ns in wide.items()
    )
    return first if most_ns >= least_ns else ""


def _working_ns(function: FunctionState, loop_waits: Mapping[str, float]) -> float:
    return function.profile.inclusive_ns * (1 - loop_waits.get(function.key, 0.0))


def _may_be_learned(function: FunctionState, loop_waits: Mapping[str, float], settings: Settings) -> bool:
    """Tell whether a function is called often enough, and no loop; one that never becomes stable stands back."""
    if function.state not in (State.CANDIDATE, State.WAITING, State.TIMING) or is_judged(function):
        return False
    if is_idle(function) or loop_waits.get(function.key, 0.0) >= WORKING:
        return False
    rate = function.probe.rate
    called = rate >= LEAST_RATE if rate is not None else function.state is State.CANDIDATE
    return called and function.history.tried <= patience(settings)


def _seen(key: str, functions: Mapping[str, FunctionState], found: dict[str, float], calls: int = 0) -> float:
    """Return the share of a function's time that passes below known functions; ``found``: what was returned before."""
    if key not in found:
        found[key] = 0.0  # recursion ends here
        callers = [each for each in functions[key].profile.callers if each[0] in functions]
        if callers and calls < MOST_CALLS:
            seen_ns = sum(time_ns * _seen(caller, functions, found, calls + 1) for caller, time_ns in callers)
            found[key] = seen_ns / max(sum(time_ns for _, time_ns in callers), functions[key].profile.inclusive_ns, 1.0)
    return found[key]
