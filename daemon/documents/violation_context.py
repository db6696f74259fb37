"""The names around the violations of a controller's state."""

from __future__ import annotations

from typing import Any

from specmine.daemon.controller.function import FunctionState
from specmine.daemon.controller.state import ControllerState
from specmine.model.violation import Violation

from .programs import program_of
from .short_of_cpu import programs_short_of_cpu
from .timestamps import date_of
from .violations import SCHEMA, Context, Named, explained_by, listed

MOST_CALLERS, LEAST_SHARE = 2, 0.1
"""Callers that are told with a violation: so many, of so much of the function's time at least."""


def violations_of(state: ControllerState) -> tuple[Violation, ...]:
    """Return all violations that are open or closed lately, of all functions."""
    changed = (each.violations for each in state.functions.values())
    return tuple(one for each in changed if each.standing or each.closed for one in each.all)


def context_of(state: ControllerState) -> Context:
    """Return the names of all functions with violations, and which explains which."""
    violations = violations_of(state)
    keys = {one.function for one in violations} | {one.because for one in violations if one.because}
    return Context(
        names={key: _named(state.functions[key], state) for key in keys if key in state.functions},
        utc_offset_ns=state.utc_offset_ns,
        explained=explained_by(violations),
    )


def violations_document(state: ControllerState) -> dict[str, Any]:
    """Return ``specmine.violations/1``: all that are open or closed lately, open ones first.

    With the programs that are short of CPU time: their clients wait, though no call of a function may take longer.
    """
    host = state.started.host.get("hostname", "") if state.started else ""
    return {
        "schema": SCHEMA,
        "host": host,
        "at": date_of(state, state.now_ns),
        "short_of_cpu": programs_short_of_cpu(state),
        "violations": listed(violations_of(state), context_of(state)),
    }


def _named(function: FunctionState, state: ControllerState) -> Named:
    named = function.function
    return Named(
        function=named.name,
        module=named.module,
        program=program_of(function, state),
        build_id=named.build_id,
        behaviours=_expressions(function),
        callers=_callers(function, state),
        starts_ns=tuple(
            each.start_ns
            for each in state.lifetimes.values()
            if each.build_id == named.build_id and each.start_ns > state.began_ns
        ),
    )


def _callers(function: FunctionState, state: ControllerState) -> tuple[str, ...]:
    """Return the callers that have a tenth of its time or more, at most two."""
    callers = function.profile.callers
    least_ns = LEAST_SHARE * sum(time_ns for _, time_ns in callers)
    much = (key for key, time_ns in callers[:MOST_CALLERS] if time_ns >= least_ns)
    return tuple(state.catalog[key].name for key in much if key in state.catalog)


def _expressions(function: FunctionState) -> tuple[str, ...]:
    """Return the expressions of the behaviours, in the order of the specification."""
    result = function.explanation.result
    if result is None:
        return ("true",)
    ordered = sorted(result.behaviours, key=lambda each: (-each.calls, each.expression))
    return tuple(each.expression for each in ordered)
