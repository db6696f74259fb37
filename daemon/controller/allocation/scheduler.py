"""Which function gets which share of the budget: the highest utility first, ties by share of time per cost.

A plan is the set of probes that should be on. The requests to the source are its difference to what is on now.
"""

from __future__ import annotations

import heapq
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from specmine.daemon.config.settings import SECOND, Settings
from specmine.daemon.controller.function import FunctionState
from specmine.daemon.controller.hotness import (
    Ancestry,
    Total,
    in_order,
    is_worth_it,
    own_share,
    total_of,
    waits_for_work,
)
from specmine.daemon.controller.phase import FINISHED, LEARNING, State
from specmine.model.observation import Kind

from .called import with_called
from .checks import check_calls, with_checks, with_open, with_suspected, with_watching
from .function_request import PAID_HITS, dearness_of
from .learning import is_judged, patience, with_learning
from .looks_inside import with_looks
from .means import Means, Plan
from .request import AT_ONCE, affordable_window, first_look, price
from .unseen_time import LEAST_RATE, most_unseen

LOOKS_AT_ONCE = 16
"""Functions that have their first look at a time."""
LOOKED_THROUGH = 48
"""Candidates among which these are chosen: none calls another, as far as stacks showed."""
BACKLOG, SMALL_BACKLOG, BACKLOG_SECONDS = 32, 8, 300
"""While so many functions wait for windows, only candidates that would be among the first of them are looked at. No
more than half of the budget can learn in this time, in seconds."""
LOOKING_SHARE = 0.5
"""Share of the budget that first looks may take while there is something to look at."""
LOOKS_OWED_NS = 10 * SECOND
"""While more is owed than so much time brings nothing is looked at for the first time: amid cold caches the first looks
cost many times what calibration says, which nobody knows before. Nor, with CPU time of our own short, while a change is
suspected: what is hot since then may be called a million times a second, and a look at it take what windows need."""
UNUSUAL = 2.0
"""Nor while a change is open, or suspected, and programs use so many times as much CPU time as they usually do: one
look at a function that a scan calls for each row cost what the usual budget brings in 100 s."""
LOOKS_APART_NS = 15 * SECOND
"""With no CPU time of our own left functions are looked at for the first time one by one, so far apart: a look costs as
much of it as a window. Half of the windows of such a daemon were first looks, of functions that take microseconds. What
something else than its share of the time asks for does not wait."""
PACE_UNDER_PRESSURE = 10.0
"""So much further apart are on-phases with no CPU time of our own left."""
ENOUGH_KNOWN, MANY_WAIT = 24, 8
"""Until so many functions have levels, and while so many wait for theirs, these come before checks of known ones."""


def plan(functions: Mapping[str, FunctionState], means: Means, settings: Settings) -> Plan:
    """Allocate the budget: first looks, what is suspected or violated, checks, looks inside, learning by utility."""
    total = total_of(functions.values(), means.runtime)
    candidates, begun = _parted(functions)
    finished = [function for function in begun if function.state in FINISHED]
    learning = [function for function in begun if function.state in LEARNING]
    means = replace(means, backlog=_backlog_of(begun, settings))
    pace = 1 + (PACE_UNDER_PRESSURE - 1) * means.pressure
    window_calls = _window_calls(functions.values(), len(learning), means, settings)
    settings = replace(settings, window_calls=window_calls, pace=pace * means.stretch**2)
    unseen = most_unseen(functions, total, means.loop_waits, settings)
    around = Ancestry(functions)
    judged = [function for function in begun if is_judged(function)]
    doubted = _is_doubted(judged, means)
    most = _most_looks(functions.values(), means)
    result = _first_looks(candidates, learning, total, means, settings, unseen, around, most, doubted=doubted)
    settings = replace(settings, check_calls=min(settings.check_calls, check_calls(finished, means, settings)))
    checking = replace(settings, pace=pace * means.check_stretch)
    result = with_suspected(judged, result, means, settings)
    result = with_open(functions.values(), result, means, settings)
    result = with_called(functions, result, means, settings)
    result = with_checks(finished, total, result, means, checking, around)
    result = with_looks(begun, result, means, settings)
    result = with_learning(begun, total, result, means, settings, unseen)
    return with_watching(finished, result, means, checking)


def _parted(functions: Mapping[str, FunctionState]) -> tuple[list[FunctionState], list[FunctionState]]:
    """Return the candidates, which are most of the functions, and all others: these alone are looked at again."""
    candidates, begun, candidate = list[FunctionState](), list[FunctionState](), State.CANDIDATE
    for function in functions.values():
        (candidates if function.phase.state is candidate else begun).append(function)
    return candidates, begun


def _window_calls(functions: Iterable[FunctionState], learning: int, means: Means, settings: Settings) -> int:
    """Return how many calls a window is to hold: fewer while many functions wait, and where calls were found dear.

    In steps of two: a change breaks the windows that are running.
    """
    dear = [dearness_of(one, means) for one in functions if one.probe.paid.hits >= PAID_HITS]
    crowd = max(1.0, learning / AT_ONCE) ** 2 * (statistics.median(dear) if dear else 1.0)
    return affordable_window(means.income / 2 ** round(math.log2(crowd)), means.prices, settings)


def _backlog_of(functions: Sequence[FunctionState], settings: Settings) -> float:
    """Return how far too few functions have levels while others wait for theirs, in [0, 1].

    What is hardly called, or did not become stable in many windows, does not count: it may wait for hours.
    """
    known = sum(_has_levels(function) for function in functions)
    waiting = sum(_may_soon_have_levels(function, settings) for function in functions)
    return max(0.0, 1 - known / ENOUGH_KNOWN) * min(1.0, waiting / MANY_WAIT)


def _has_levels(function: FunctionState) -> bool:
    return function.state is State.EXPLAINING or is_judged(function)


def _may_soon_have_levels(function: FunctionState, settings: Settings) -> bool:
    if function.state not in LEARNING or _has_levels(function):
        return False
    return (function.probe.rate or 0.0) >= LEAST_RATE and function.history.tried <= patience(settings)


def _is_wanted(function: FunctionState) -> bool:
    """Tell whether something else than its share of the time asks for it."""
    identity = function.identity
    named = identity.hinted or identity.climbed or identity.descended or identity.asked is not None
    return bool(named) or function.provisional is not None


def _least_share(learning: Iterable[FunctionState], total: Total, means: Means, settings: Settings) -> float:
    """Return what a candidate must have more of the time for a first look: what it costs, those that wait would get."""
    waiting = (own_share(one, total, means.loop_waits.get(one.key, 0.0)) for one in learning)
    backlog = _backlog(means, settings)
    most = heapq.nlargest(backlog, waiting)
    return most[-1] if len(most) == backlog else -1.0


def _proven_share(function: FunctionState, total: Total, means: Means) -> float:
    """Return a candidate's share of the time, less a standard deviation: of many functions some have a sample more."""
    share = own_share(function, total, means.loop_waits.get(function.key, 0.0))
    return share * max(0.0, 1 - 1 / math.sqrt(max(function.profile.samples, 1.0)))


def _backlog(means: Means, settings: Settings) -> int:
    """Return how many functions may wait for windows before others are looked at only if they come first."""
    mining = settings.mining
    function_ns = mining.chain_observations * mining.minimum_calls * means.prices.time_ns
    return round(min(max(0.5 * means.income * BACKLOG_SECONDS / function_ns, SMALL_BACKLOG), BACKLOG))


def _is_doubted(judged: Iterable[FunctionState], means: Means) -> bool:
    """Tell whether what is hot now may be hot because of a change: it is not looked at for the first time then."""
    unusual = means.income > UNUSUAL * means.lasting
    if not unusual and means.pressure <= 0:
        return False
    found = [one.violations for one in judged if not waits_for_work(one)]
    if unusual and any(one.standing or one.evidence for one in found):
        return True
    return means.pressure > 0 and any(one.urgency for one in found)


def _most_looks(functions: Iterable[FunctionState], means: Means) -> int:
    """Return how many functions that nothing asks for may begin a first look: few while our own CPU time is short."""
    if means.pressure <= 0:
        return LOOKS_AT_ONCE
    last_ns = max((one.probe.first_watch_ns or 0 for one in functions), default=0)
    if means.now_ns - last_ns < means.pressure * means.stretch * LOOKS_APART_NS:
        return 0
    return max(1, round(LOOKS_AT_ONCE * (1 - means.pressure)))


def _first_looks(
    candidates: Sequence[FunctionState],
    learning: Iterable[FunctionState],
    total: Total,
    means: Means,
    settings: Settings,
    first: str,
    around: Ancestry,
    most_unasked: int,
    *,
    doubted: bool,
) -> Plan:
    """Time a window of the most promising candidates, each until its quota of hits is used; ``first`` comes first."""
    watches = {one.key: one.probe.watch for one in candidates if one.probe.watch is not None}
    least = _least_share(learning, total, means, settings)
    unseen = [
        function
        for function in candidates
        if function.probe.watch is None
        and is_worth_it(function, total)
        and (_is_wanted(function) or function.key == first or _proven_share(function, total, means) > least)
    ]
    cash, taken = LOOKING_SHARE * means.cash, 0.0
    if doubted or means.cash < -means.lasting * LOOKS_OWED_NS / SECOND:
        unseen = []
    most = means.slots // 2 if means.slow_links else LOOKS_AT_ONCE
    ordered = sorted(in_order(unseen, total, means.loop_waits), key=lambda function: function.key != first)
    for function in ordered[:LOOKED_THROUGH]:
        if len(watches) >= most:
            break
        unasked = function.key != first and not _is_wanted(function)
        if unasked and not most_unasked:
            continue
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
        most_unasked -= unasked
        watches[function.key] = look
    left = means.budget * (1 - LOOKING_SHARE * bool(watches))
    return Plan(watches=watches, left=left, cash=means.cash - taken)
