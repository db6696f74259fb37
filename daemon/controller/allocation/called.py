"""What is called by functions that have changed, or may have, is observed at once: it may be why they did. Pure.

A caller is slower because of what it calls, and the windows of either may come first. Without this a caller alone is
named, and the next check of what it calls may be minutes away. One window shows whether more are worth it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from specmine.daemon.config.settings import SECOND, Settings
from specmine.daemon.controller.function import FunctionState
from specmine.daemon.controller.hotness import Ancestry, waits_for_work
from specmine.mining.detection.changes import STEPS

from .borrowing import with_borrowed
from .checks import CHECK_CALLS, seen_ns
from .function_request import URGENT_NS, full_cost, window_cost
from .learning import is_judged
from .means import Means, Plan

EVIDENCE = 6.0
"""A suspicion from so much evidence on is followed to what the function calls."""
OWN_EVIDENCE = 1.0
"""After its first window a function is observed again from so much evidence of its own on, until it is suspected
itself: what calls it has changed, so little is enough."""
AT_ONCE = 4
"""Functions that are observed at a time for this reason: those first that take most time."""


def with_called(functions: Mapping[str, FunctionState], so_far: Plan, means: Means, settings: Settings) -> Plan:
    """Observe what is called by functions that have changed, directly or through others, since they did."""
    called = _called(functions, so_far, means.now_ns)
    settings = replace(settings, check_calls=min(CHECK_CALLS, settings.window_calls), pace=1.0)

    def grant(function: FunctionState, _: float) -> float:
        return min(full_cost(function, means), window_cost(function, means, settings) * SECOND / URGENT_NS)

    return with_borrowed(called, grant, so_far, means, settings)


def _called(functions: Mapping[str, FunctionState], so_far: Plan, now_ns: int) -> list[FunctionState]:
    """Return the known functions that had no window since a function changed that calls them, or one that deviates."""
    doubtful = (key for key, one in functions.items() if one.violations.alarms or one.violations.standing)
    changed = {key: functions[key].violations.changed_ns(EVIDENCE) for key in doubtful}
    since_ns = {key: at_ns for key, at_ns in changed.items() if at_ns is not None}
    if not since_ns:
        return []
    callers, found = Ancestry(functions), []
    for key, function in functions.items():
        if not is_judged(function) or key in so_far.watches or key in since_ns or waits_for_work(function):
            continue
        after_ns = max((since_ns[each] for each in callers.of(key) if each in since_ns), default=0)
        seen = seen_ns(function)
        deviates = after_ns and now_ns - seen >= URGENT_NS and _own_evidence(function) >= OWN_EVIDENCE
        if seen < after_ns or deviates:
            found.append(function)
    found.sort(key=lambda one: (-one.profile.inclusive_ns, one.key))
    return callers.first_apart(found, (), AT_ONCE)


def _own_evidence(function: FunctionState) -> float:
    """Return the largest evidence that a function has become slower, however small."""
    excursions = (each for one in function.violations.detector.streams for each in one.excursions)
    return max((each.evidence for each in excursions if STEPS[each.step] > 0), default=0.0)
