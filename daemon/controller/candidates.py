"""Which functions the controller follows: found by sampling, named by the user, callers of finished ones, or callees of
unexplained ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache

from specmine.daemon.config.settings import Settings
from specmine.mining.fleet.statement import InheritedStatement
from specmine.model.function import Function
from specmine.model.globs import matches

from . import reasons
from .function import FunctionState, Identity
from .phase import FINISHED, Phase, State
from .provisional import RETAINED, Provisional, ProvisionalAssertions, inherited
from .state import ControllerState

ADMITTED_AT_ONCE = 4
"""So many functions named by the user are timed before their calls were counted."""
MOST_FUNCTIONS = 5000
"""Functions followed; the coldest candidates are forgotten first."""
CALLEES_AT_ONCE = 4
"""Callees of an unexplained function that become candidates: those that take most of its time."""
Functions = dict[str, FunctionState]


def candidate(
    function: Function, settings: Settings, now_ns: int, statements: Callable[[], ProvisionalAssertions]
) -> FunctionState:
    """Return a function that nothing is known of yet."""
    provisional = statements().of(function)
    new = FunctionState(
        identity=Identity(function=function, hinted=matches(function, settings.watch)),
        phase=Phase(since_ns=now_ns),
        violations=inherited(provisional, now_ns),
        provisional=provisional,
    )
    if matches(function, settings.ignore):
        return new.moved(State.EXCLUDED, reasons.excluded(), now_ns)
    return new


def admit_named(functions: Functions, now_ns: int) -> None:
    """Time the few functions that the user named at once: the kernel's bucket bounds what is not known yet."""
    named = [
        key for key, function in functions.items() if function.identity.hinted and function.state is State.CANDIDATE
    ]
    if len(named) > ADMITTED_AT_ONCE:
        return
    for key in named:
        if functions[key].probe.rate is None and functions[key].probe.watch is None:
            functions[key] = functions[key].moved(State.WAITING, reasons.queued(0.0), now_ns)


def admit_asked(functions: Functions, state: ControllerState) -> None:
    """Follow the functions that the fleet asks this host to observe: those of its own programs, no others."""
    orders = state.orders
    force = orders.in_force(state.settings, state.now_ns)
    for key, function in list(functions.items()):
        duty = orders.duties.get(key) if force else None
        kind = duty.kind if duty is not None else None
        if function.identity.asked is not kind:
            functions[key] = replace(function, identity=replace(function.identity, asked=kind))
    if not force or state.settings.watch:
        return
    statements = cache(lambda: statements_of(functions, orders.statements))
    for key, duty in orders.duties.items():
        if key not in functions and key in state.catalog:
            new = candidate(state.catalog[key], state.settings, state.now_ns, statements)
            functions[key] = replace(new, identity=replace(new.identity, asked=duty.kind))


def admit_while_asked(functions: Functions, state: ControllerState) -> None:
    """Do so at each turn while the fleet asks for anything: where it does not, no function is looked at."""
    if state.orders.duties:
        admit_asked(functions, state)


def climb(
    functions: Functions, news: Sequence[str], before: Mapping[str, FunctionState], state: ControllerState, now_ns: int
) -> None:
    """Make the callers of functions that have just been finished candidates; ``news``: those that changed."""
    if state.settings.watch:
        return
    statements = cache(lambda: statements_of(functions, state.orders.statements))
    for key in news:
        function = functions[key]
        if function.state not in FINISHED:
            continue
        if key in before and before[key].state in FINISHED and before[key].profile is function.profile:
            continue
        for caller, _ in function.profile.callers:
            if caller not in functions and caller in state.catalog:
                functions[caller] = candidate(state.catalog[caller], state.settings, now_ns, statements)
            if caller in functions and not functions[caller].identity.climbed:
                identity = replace(functions[caller].identity, climbed=function.function.name)
                functions[caller] = replace(functions[caller], identity=identity)


def descend(
    functions: Functions, news: Sequence[str], before: Mapping[str, FunctionState], state: ControllerState
) -> None:
    """Make the callees of functions that nothing explains candidates: what their calls reach may explain them.

    These are the direct callees that samples found, those that take most time first. They are looked for again when its
    calls were explained with more windows: samples go on meanwhile.
    """
    if state.settings.watch:
        return
    asked = {
        key
        for key in news
        if functions[key].state is State.UNEXPLAINED and _is_told_anew(functions[key], before.get(key))
    }
    if not asked:
        return
    taken: dict[str, list[tuple[float, str]]] = {key: [] for key in asked}
    for callee, function in functions.items():
        for caller, time_ns in function.profile.callers:
            if caller in asked and callee != caller:
                taken[caller].append((time_ns, callee))
    for caller, callees in sorted(taken.items()):
        for _, callee in sorted(callees, key=lambda each: (-each[0], each[1]))[:CALLEES_AT_ONCE]:
            if not functions[callee].identity.descended:
                identity = replace(functions[callee].identity, descended=functions[caller].function.name)
                functions[callee] = replace(functions[callee], identity=identity)


def _is_told_anew(function: FunctionState, before: FunctionState | None) -> bool:
    """Tell whether it has just been found that nothing explains a function, for the first time or with more windows."""
    if before is None or before.state is not State.UNEXPLAINED:
        return True
    return before.explanation.result is not function.explanation.result


def bounded(functions: Functions) -> Functions:
    """Forget the coldest of too many."""
    if len(functions) <= MOST_FUNCTIONS:
        return functions
    idle = [one for one in functions.values() if one.state is State.CANDIDATE and one.probe.watch is None]
    idle.sort(key=lambda one: (one.profile.inclusive_ns, one.key))
    forgotten = {one.key for one in idle[: len(functions) - MOST_FUNCTIONS]}
    return {key: function for key, function in functions.items() if key not in forgotten}


def statements_of(
    functions: Mapping[str, FunctionState], stated: Mapping[str, InheritedStatement] | None = None
) -> ProvisionalAssertions:
    """Return what finished functions state, for functions of the same name in other builds; and what the fleet does."""
    finished = sorted(
        (function for function in functions.values() if function.state in FINISHED),
        key=lambda function: (function.phase.since_ns, function.key),
    )
    return ProvisionalAssertions(
        (
            (
                function.function,
                Provisional(
                    build_id=function.function.build_id,
                    learned=function.inference.learned,
                    result=function.explanation.result if function.state is not State.SINGLE else None,
                    measured=function.violations,
                    before=function.history.timing[-RETAINED:] or function.history.paths[-RETAINED:],
                ),
            )
            for function in finished
            if function.inference.learned is not None
        ),
        stated,
    )
