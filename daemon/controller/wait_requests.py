"""Of which functions the waits are followed: those whose violation is open, and those asked for. Pure."""

from __future__ import annotations

from dataclasses import replace

from specmine.daemon.config.settings import SECOND
from specmine.model.inside.waits import Waits
from specmine.model.violation import CauseKind, Direction

from .function import FunctionState
from .state import ControllerState

ASKED_NS = 90 * SECOND
"""Who asks has the waits followed for so long: in that time each assertion is checked at least once."""
OPEN_NS = 600 * SECOND
"""The waits of a violated function are followed for so long after the violation was opened."""
MOST_FUNCTIONS = 4
"""Functions whose waits are followed by turns: those asked for come first, then the newest violations."""
PLACED = frozenset({CauseKind.WAIT, CauseKind.UNKNOWN})
"""Causes of which the place of waits tells more: calls that work, or wait for a CPU, are blocked as usual."""
KEPT_PHASES = 16
"""Of a function the newest phases count: an on-phase may have no more than a hundred calls."""
KEPT_NS = 600 * SECOND
"""What is older than the newest phase by more is dropped."""


def with_waits(function: FunctionState, waits: Waits) -> FunctionState:
    """Return a function with one more phase in which its waits were followed."""
    kept = [each for each in function.waits if waits.end_ns - each.end_ns <= KEPT_NS]
    return replace(function, waits=(*kept, waits)[-KEPT_PHASES:])


def with_question(state: ControllerState, functions: tuple[str, ...], now_ns: int) -> ControllerState:
    """Return the state after somebody asked for the waits of some functions."""
    asked = {key: until_ns for key, until_ns in state.asked.items() if until_ns > now_ns}
    asked |= {key: now_ns + ASKED_NS for key in functions if key in state.functions}
    return replace(state, now_ns=now_ns, asked=asked)


def followed(state: ControllerState) -> tuple[str, ...]:
    """Return the functions whose waits are to be followed now, the most urgent first."""
    asked = sorted(key for key, until_ns in state.asked.items() if until_ns > state.now_ns and key in state.functions)
    opened: list[tuple[int, str]] = []
    for key, function in state.functions.items():
        standing = function.violations.standing
        if not standing:
            continue
        found_ns = [
            one.violation.found_ns
            for one in standing
            if one.violation.direction is not Direction.FASTER
            and not one.violation.because
            and one.violation.cause.kind in PLACED
        ]
        # also while its probes are off: an on-phase is followed from its begin on, so it must be known before
        if found_ns and state.now_ns - max(found_ns) <= OPEN_NS:
            opened.append((-max(found_ns), key))
    ordered = dict.fromkeys([*asked, *(key for _, key in sorted(opened))])
    return tuple(ordered)[:MOST_FUNCTIONS]
