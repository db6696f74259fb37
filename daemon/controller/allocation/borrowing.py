"""Functions that are observed at once, before what that costs has been earned: it is borrowed. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from specmine.daemon.config.settings import Settings
from specmine.daemon.controller.function import FunctionState

from .function_request import first_cost, predicted, request
from .means import Means, Plan

Grant = Callable[[FunctionState, float], float]
"""What a function gets, ns of cost per second, where so much has been granted to those before it."""


def with_borrowed(
    functions: Iterable[FunctionState], grant: Grant, so_far: Plan, means: Means, settings: Settings
) -> Plan:
    """Observe functions in this order, as far as probes and what may be borrowed last.

    Parameters
    ----------
    functions : iterable of FunctionState
    grant : callable
    so_far : Plan
    means : Means
        ``borrowable`` is the most that is borrowed, ns of cost.
    settings : Settings
    """
    watches, spent, cash, loan = dict(so_far.watches), 0.0, so_far.cash, means.borrowable
    for function in functions:
        watch = request(function, grant(function, spent), means, settings)
        first = 0.0 if watch is None else first_cost(function, watch, means, settings)
        if watch is not None and first <= max(0.0, cash) + loan and len(watches) < means.slots:
            watches[function.key] = watch
            spent += predicted(function, watch, means, settings)
            loan -= max(0.0, first - max(0.0, cash))
            cash -= first
    return replace(so_far, watches=watches, left=so_far.left - spent, cash=cash)
