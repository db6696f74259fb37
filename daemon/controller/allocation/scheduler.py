"""Which function gets which share of the budget: the highest utility first, ties by share of time per cost.

A plan is the set of probes that should be on. The requests to the source are its difference to what is on now.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace

from specmine.daemon.config.settings import SECOND, Settings
from specmine.daemon.controller import reasons
from specmine.daemon.controller.function import FunctionState
from specmine.daemon.controller.hotness import Ancestry, Total, in_order, is_worth_it, total_of
from specmine.daemon.controller.phase import FINISHED, State
from specmine.model.function import Reason
from specmine.model.observation import Kind

from .function_request import (
    PAID_HITS,
    SLOW_LINK_RATE,
    URGENT_NS,
    dearness_of,
    first_cost,
    full_cost,
    least_cost,
    most_useful,
    predicted,
    request,
    window_cost,
)
from .means import Means, Plan
from .request import AT_ONCE, affordable_window, first_look, price, shortest_period_ns
from .utility import priority, utility

LOOKS_AT_ONCE = 16
"""Functions that have their first look at a time."""
LOOKED_THROUGH = 48
"""Candidates among which these are chosen: none calls another, as far as stacks showed."""
LOOKING_SHARE = 0.5
"""Share of the budget that first looks may take while there is something to look at."""
PACE_UNDER_PRESSURE = 10.0
"""So much further apart are on-phases with no CPU time of our own left."""
BEGUN = 0.6
"""Share of what is left that a function being learned gets at most: one that never becomes stable must not take all."""
BEGINNING = 0.15
"""Share of the budget that must be left before another function is learned."""
EXPLAINING_SHARE = 0.25
"""Share of what is left for learning that call paths get while functions wait for their first levels."""
CHEAP = 0.02
"""A finished function that costs less than this share of the budget stays on: its counts remain exact."""
WATCH_EVERY_NS = 10 * SECOND
"""Windows of finished functions come this often where what is kept for them, or left, allows it."""
LOOKED_INTO_NS = 300 * SECOND
"""So long the callees of a function that nothing explains are timed together with it."""
RECHECK = 0.5
"""Utility from which a finished function is observed before its check is due."""
_LEARNING = (State.WAITING, State.TIMING, State.EXPLAINING)


def plan(functions: Mapping[str, FunctionState], means: Means, settings: Settings) -> Plan:
    """Allocate the budget: first looks, then what is suspected, then checks that are due, then learning by utility."""
    total = total_of(functions.values(), means.runtime)
    pace = 1 + (PACE_UNDER_PRESSURE - 1) * means.pressure
    settings = replace(settings, window_calls=_window_calls(functions, means, settings), pace=pace)
    result = _first_looks(functions, total, means, settings)
    finished = [function for function in functions.values() if function.state in FINISHED]
    result = _suspected(finished, result, means, settings)
    result = _checks(finished, result, means, settings)
    result = _learning(functions, total, result, means, settings)
    return _watching(finished, result, means, settings)


def _window_calls(functions: Mapping[str, FunctionState], means: Means, settings: Settings) -> int:
    """Return how many calls a window is to hold: fewer while many functions wait, and where calls were found dear.

    In steps of two: a change breaks the windows that are running.
    """
    learning = sum(function.state in _LEARNING for function in functions.values())
    dear = [dearness_of(one, means) for one in functions.values() if one.probe.paid.hits >= PAID_HITS]
    crowd = max(1.0, learning / AT_ONCE) ** 2 * (statistics.median(dear) if dear else 1.0)
    return affordable_window(means.income / 2 ** round(math.log2(crowd)), means.prices, settings)


def _first_looks(functions: Mapping[str, FunctionState], total: Total, means: Means, settings: Settings) -> Plan:
    """Time a window of the most promising candidates, each until its quota of hits is used."""
    candidates = {key: function for key, function in functions.items() if function.state is State.CANDIDATE}
    watches = {key: one.probe.watch for key, one in candidates.items() if one.probe.watch is not None}
    unseen = [
        function
        for function in in_order(candidates, total)
        if function.probe.watch is None and is_worth_it(function, total)
    ]
    cash, taken = LOOKING_SHARE * means.cash, 0.0
    most = means.slots // 2 if means.slow_links else LOOKS_AT_ONCE
    around = Ancestry(functions)
    for function in unseen[:LOOKED_THROUGH]:
        if len(watches) >= most:
            break
        # probes inside a call add to it, and what they add is not known well
        if not around.is_apart(function.key, watches):
            continue
        call_ns = price(means.prices, Kind.TIME, function.function)
        look, cost_ns = first_look(function.function, call_ns, means.income, settings)
        cost_ns = min(cost_ns, LOOKING_SHARE * means.savable)
        # one at a time also in debt, as after sampling at the start: what a second brings pays for several
        if cost_ns > cash - taken and (watches or cost_ns > LOOKING_SHARE * means.income):
            break
        taken += cost_ns
        watches[function.key] = look
    left = means.budget * (1 - LOOKING_SHARE * bool(watches))
    return Plan(watches=watches, left=left, cash=means.cash - taken)


def _suspected(finished: Sequence[FunctionState], so_far: Plan, means: Means, settings: Settings) -> Plan:
    """Observe functions that may have changed; what is kept for checks is not taken for them."""
    watches, spent, cash = dict(so_far.watches), 0.0, so_far.cash
    at_once = replace(settings, pace=1.0)  # what may have changed is not slowed down to save our own CPU time
    urgent = [one for one in finished if one.violations.urgency]
    # what is suspected does not wait until debts are paid back: it borrows what others then have to earn
    budget, loan = max(means.budget, means.income), means.savable
    for function in sorted(urgent, key=lambda one: (-one.violations.urgency, one.key)):
        # windows closer together share their disturbances: of several functions none takes the place of others
        most, half = most_useful(function, means, at_once), 0.5 * (budget - spent)
        apart = shortest_period_ns(at_once) / max(URGENT_NS, shortest_period_ns(at_once))
        grant = min(most, half, max(apart * most, half / len(urgent)))
        watch = request(function, grant, means, at_once)
        first = 0.0 if watch is None else first_cost(function, watch, means, at_once)
        if watch is not None and first <= max(0.0, cash) + loan and len(watches) < means.slots:
            watches[function.key] = watch
            spent += predicted(function, watch, means, at_once)
            loan -= max(0.0, first - max(0.0, cash))
            cash -= first
    return replace(so_far, watches=watches, left=so_far.left - spent, cash=cash)


def _checks(finished: Sequence[FunctionState], so_far: Plan, means: Means, settings: Settings) -> Plan:
    """Leave cheap finished functions on, observe those whose check is due, within the share for verification."""
    share = settings.verification * min(means.budget, means.income)
    most_on = round(0.5 * means.slots * max(0.0, 1 - 2 * means.pressure))  # each brings windows all the time
    watches, spent, cash = dict(so_far.watches), 0.0, so_far.cash
    for function in sorted(finished, key=lambda one: (full_cost(one, means), one.key)):
        if function.key in watches:
            continue
        cost = full_cost(function, means)
        if cost > CHEAP * means.budget or spent + cost > 0.5 * share or len(watches) >= most_on:
            break
        watch = request(function, cost, means, settings)
        if watch is not None:
            watches[function.key] = watch
            spent += cost
    every_ns = _check_every_ns(finished, share, means, settings)
    due = [one for one in finished if one.key not in watches and _is_due(one, every_ns, means)]
    due.sort(key=lambda one: (one.verification.checked_ns or 0, one.key))
    for function in due:
        if len(watches) >= means.slots or spent >= share:
            break
        # one window and its probes go again: the next on-phase would come when the next check is due
        grant = min(full_cost(function, means), window_cost(function, means, settings) * SECOND / every_ns)
        watch = request(function, grant, means, settings)
        first = 0.0 if watch is None else first_cost(function, watch, means, settings)
        if watch is not None and first <= max(0.0, cash):
            watches[function.key] = watch
            spent += predicted(function, watch, means, settings)
            cash -= first
    return replace(so_far, watches=watches, left=so_far.left - spent, cash=cash)


def _learning(
    functions: Mapping[str, FunctionState], total: Total, so_far: Plan, means: Means, settings: Settings
) -> Plan:
    """Give the rest of the budget to what can be learned, half of what is left to each in turn."""
    looked_into = _looked_into(functions, means.now_ns)
    learning = [function for function in functions.values() if function.state in _LEARNING]
    learning += [
        function
        for function in functions.values()
        if function.state in FINISHED
        and function.key not in so_far.watches
        and (function.key in looked_into or utility(function, means.now_ns, means.running) >= RECHECK)
    ]
    learning.sort(key=lambda function: priority(function, total, means, settings))
    watches, waiting, left, cash = dict(so_far.watches), dict(so_far.waiting), so_far.left, so_far.cash
    most = min(means.slots, len(watches) + means.learning_slots)
    timing = any(function.state is State.WAITING for function in learning)
    for_explaining = EXPLAINING_SHARE * left if timing else left
    for place, function in enumerate(learning):
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
    return Plan(watches=watches, waiting=waiting, left=left, cash=cash)


def _looked_into(functions: Mapping[str, FunctionState], now_ns: int) -> frozenset[str]:
    """Return functions that nothing explains, and their callees: what calls reach is known only while both are on."""
    asked = {one.identity.descended for one in functions.values() if one.identity.descended}
    unexplained = {
        key: function.function.name
        for key, function in functions.items()
        if function.state is State.UNEXPLAINED
        and function.function.name in asked
        and now_ns - function.phase.since_ns < LOOKED_INTO_NS
    }
    callers = frozenset(unexplained.values())
    callees = {key for key, one in functions.items() if one.identity.descended in callers and one.state in FINISHED}
    return frozenset((*callees, *unexplained))


def _watching(finished: Sequence[FunctionState], so_far: Plan, means: Means, settings: Settings) -> Plan:
    """Give what is left to finished functions: first to those whose last window is old, then to those that are on."""
    watches, left, cash = dict(so_far.watches), so_far.left, so_far.cash
    if means.cash <= 0 or so_far.waiting:
        return so_far  # debts are paid back first, and what others wait for is saved
    most_on = round(means.slots * max(0.0, 1 - 2 * means.pressure))
    rest = [one for one in finished if one.key not in watches and one.probe.rate is not None]
    old = [one for one in rest if means.now_ns - _seen_ns(one) >= WATCH_EVERY_NS]
    on = [one for one in rest if means.now_ns - _seen_ns(one) < WATCH_EVERY_NS and one.probe.watch is not None]
    old.sort(key=lambda one: (one.probe.watch is None, _seen_ns(one), one.key))
    on.sort(key=lambda one: (full_cost(one, means), one.key))
    for function in (*old, *on):
        if len(watches) >= most_on or left <= 0:
            break
        watch = request(function, min(most_useful(function, means, settings), 0.5 * left), means, settings)
        first = 0.0 if watch is None else first_cost(function, watch, means, settings)
        if watch is not None and first <= max(0.0, cash):
            watches[function.key] = watch
            left -= predicted(function, watch, means, settings)
            cash -= first
    return replace(so_far, watches=watches, left=left, cash=cash)


def _seen_ns(function: FunctionState) -> int:
    """Return the end of the newest window."""
    history = function.history
    return max((one.end_ns for one in (*history.timing[-1:], *history.paths[-1:])), default=0)


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
    patience = settings.mining.recent + settings.mining.chain_observations
    return function.state in (State.TIMING, State.WAITING) and 0 < function.history.tried <= patience


def _why_not(function: FunctionState, used: int, most: int, means: Means) -> Reason:
    rate = function.probe.rate or 0.0
    if means.slow_links and rate > SLOW_LINK_RATE:
        return reasons.too_fast(rate, SLOW_LINK_RATE)
    if used >= most:
        return reasons.no_slot(most, held_back=most < means.slots)
    return reasons.no_budget(rate, full_cost(function, means), means.budget)


def _check_every_ns(finished: Sequence[FunctionState], share: float, means: Means, settings: Settings) -> float:
    """Return how often each is observed: as what is kept for it allows, less often if our own work must be saved."""
    least_ns: float = min(WATCH_EVERY_NS, settings.verify_every_ns)
    least_ns += means.pressure * (settings.verify_every_ns - least_ns)
    round_ns = sum(window_cost(one, means, settings) for one in finished) * SECOND / max(share, 1.0)
    return max(least_ns, min(round_ns, settings.verify_every_ns))


def _is_due(function: FunctionState, every_ns: float, means: Means) -> bool:
    """Tell whether a window is due."""
    return means.now_ns - (function.verification.checked_ns or 0) >= every_ns
