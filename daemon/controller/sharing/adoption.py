"""Statements of the fleet on this host: each waits as provisional until windows of this host agree with it.

The host's own evidence wins: a statement of its own is never replaced, and one that its windows contradict is dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from specmine.daemon.controller.function import FunctionState
from specmine.daemon.controller.inference import Inherited
from specmine.daemon.controller.phase import FINISHED, State
from specmine.daemon.controller.provisional import provisional_of
from specmine.daemon.controller.reasons import unexplained
from specmine.mining.assertions.checks import Verification
from specmine.mining.borders.inference import Inference
from specmine.mining.fleet.statement import InheritedStatement
from specmine.model.observation import Kind

from .orders import MOST_STATEMENTS, Orders

AGREEING = 2
"""Windows of this host that agree, running, before it states what the fleet does."""


def with_statements(orders: Orders, news: Iterable[InheritedStatement]) -> Orders:
    """Return the orders with statements that came; of too many the newest."""
    every = {**orders.statements}
    for each in news:
        every.pop(each.function, None)
        every[each.function] = each
    return replace(orders, statements=dict(list(every.items())[-MOST_STATEMENTS:]))


def waiting(functions: Mapping[str, FunctionState], news: Iterable[InheritedStatement]) -> dict[str, FunctionState]:
    """Return the functions of which this host states nothing yet, each with what the fleet states of it."""
    found = {}
    for each in news:
        function = functions.get(each.function)
        if function is None or function.state in FINISHED or function.state is State.EXCLUDED:
            continue
        now = function.provisional
        if now is None or (now.hosts and (now.stated is None or not now.observations)):
            found[each.function] = replace(function, provisional=provisional_of(each))
    return found


def adopted(function: FunctionState, now_ns: int) -> FunctionState:
    """Return a function that states what the fleet does, once enough windows agree; else the function as it is."""
    stated = function.provisional
    if stated is None or not stated.hosts or function.state in FINISHED:
        return function
    if stated.observations < AGREEING or stated.agreeing < AGREEING:
        return function
    result = stated.result
    state = State.SINGLE if result is None else State.EXPLAINED if len(result.behaviours) > 1 else State.UNEXPLAINED
    if result is None and stated.learned.borders:
        state = State.UNEXPLAINED
    newest = (*function.history.paths[-1:], *function.history.timing[-1:])
    function = replace(
        function,
        history=replace(function.history, tried=0),
        inference=replace(
            function.inference,
            chain=_as_chain(stated.learned, function),
            learned=stated.learned,
            kind=Kind.TIME if result is None else Kind.PATH,
            inherited=Inherited(build_id=stated.build_id, hosts=stated.hosts, since_ns=now_ns),
        ),
        explanation=replace(function.explanation, result=result, observations=0),
        verification=Verification(checks=stated.checks, checked_ns=max((one.end_ns for one in newest), default=now_ns)),
    )
    why = result.why if result is not None and len(result.behaviours) < 2 else ""
    return function.moved(state, unexplained(why) if why else None, now_ns)


def _as_chain(learned: Inference, function: FunctionState) -> Inference:
    """Return the inference as one over this host's windows: its chain is of them."""
    windows = function.history.longest[-AGREEING:]
    return replace(learned, start_ns=windows[0].start_ns if windows else None,
                   end_ns=windows[-1].end_ns if windows else None)  # fmt: skip
