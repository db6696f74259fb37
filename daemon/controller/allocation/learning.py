"""What is learned with the rest of the budget: half of what is left to each function in turn, by utility. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from specmine.daemon.config.settings import Settings
from specmine.daemon.controller import reasons
from specmine.daemon.controller.function import FunctionState
from specmine.daemon.controller.hotness import Total
from specmine.daemon.controller.phase import FINISHED, LEARNING, State
from specmine.model.function import Reason

from .function_request import (
    CHEAP,
    SLOW_LINK_RATE,
    first_cost,
    full_cost,
    least_cost,
    most_useful,
    predicted,
    request,
)
from .means import Means, Plan
from .utility import priority, utility

BEGUN = 0.6
"""Share of what is left that a function being learned gets at most: one that never becomes stable must not take all."""
BEGINNING = 0.15
"""Share of the budget that must be left before another function is learned."""
EXPLAINING_SHARE = 0.25
"""Share of what is left for learning that call paths get while functions wait for their first levels."""
LEAST_EXPLAINING = 0.2
"""... of which this part is left to them while few functions have levels."""
RECHECK = 0.5
"""Utility from which a finished function is observed before its check is due."""


def with_learning(
    functions: Iterable[FunctionState],
    total: Total,
    so_far: Plan,
    means: Means,
    settings: Settings,
    unseen: str = "",
) -> Plan:
    """Give the rest of the budget to what can be learned, half of what is left to each in turn; ``unseen`` is first."""
    others = [function for function in functions if function.key not in so_far.watches]  # calls of some are looked into
    learning = [function for function in others if function.state in LEARNING]
    learning += [
        function
        for function in others
        if function.state in FINISHED and utility(function, means.now_ns, means.running) >= RECHECK
    ]
    learning.sort(key=lambda function: priority(function, total, means, settings, unseen))
    watches, waiting, left, cash = dict(so_far.watches), dict(so_far.waiting), so_far.left, so_far.cash
    most = min(means.slots, len(watches) + means.learning_slots)
    timing = any(function.state is State.WAITING for function in learning)
    for_explaining = EXPLAINING_SHARE * max(1 - means.backlog, LEAST_EXPLAINING) * left if timing else left
    for place, function in enumerate(learning):
        if function.state in FINISHED and waiting:
            break  # these come last: what others save for is not spent on more windows of what is known
        watch = None
        # in pauses it would begin with an on-phase, which nothing is left for
        beyond = cash <= 0 and function.probe.watch is None and least_cost(function, means) > left
        if len(watches) < most and not beyond:
            grant = _grant(function, left, len(learning) - place, means, settings)
            if function.state is State.EXPLAINING:
                grant = min(grant, for_explaining)
            watch = request(function, grant, means, settings)
        first = 0.0 if watch is None else first_cost(function, watch, means, settings)
        if watch is not None and first <= max(0.0, cash):
            watches[function.key] = watch
            cost = predicted(function, watch, means, settings)
            left -= cost
            for_explaining -= cost if function.state is State.EXPLAINING else 0.0
            cash -= first
        elif function.state not in FINISHED:
            waiting[function.key] = _why_not(function, len(watches), most, means)
            # what it is saving for must not be spent on something of less use
            cash -= first
    return replace(so_far, watches=watches, waiting=waiting, left=left, cash=cash)


def _grant(function: FunctionState, left: float, others: int, means: Means, settings: Settings) -> float:
    """Return what a function gets of what is left, ns of cost per second.

    A function with windows gets all that brings the next ones faster, so that it is learned soon. Another one begins
    once enough is left. Where watching all the time costs next to nothing it begins at once: it needs only patience.
    """
    if left <= 0:
        return 0.0
    if function.probe.rate is None:
        return 0.5 * left / others
    if _is_begun(function, settings):
        return min(most_useful(function, means, settings), BEGUN * left)
    none_left = left < BEGINNING * means.budget and function.probe.watch is None
    if none_left and full_cost(function, means) > CHEAP * means.budget:
        return 0.0
    return min(most_useful(function, means, settings), max(0.5 * left, left / others))


def _is_begun(function: FunctionState, settings: Settings) -> bool:
    """Tell whether a function has windows and needs but a few more; one that never becomes stable stands back."""
    if function.state is State.EXPLAINING:
        return True
    return function.state in (State.TIMING, State.WAITING) and 0 < function.history.tried <= patience(settings)


def patience(settings: Settings) -> int:
    """Return after how many windows a function that did not become stable stands back."""
    return settings.mining.recent + settings.mining.chain_observations


def is_judged(function: FunctionState) -> bool:
    """Tell whether a change of a function may be suspected: also of one that is not learned to its end."""
    state = function.phase.state  # not by a property: this is asked for all functions
    return state in FINISHED or (state in LEARNING and function.violations.ready)


def _why_not(function: FunctionState, used: int, most: int, means: Means) -> Reason:
    rate = function.probe.rate or 0.0
    if means.slow_links and rate > SLOW_LINK_RATE:
        return reasons.too_fast(rate, SLOW_LINK_RATE)
    if used >= most:
        return reasons.no_slot(most, held_back=most < means.slots)
    return reasons.no_budget(rate, full_cost(function, means), means.budget)
