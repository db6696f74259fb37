"""What known functions get of the budget: suspected and violated ones first, checks, then what is left. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from specmine.daemon.config.settings import SECOND, Settings
from specmine.daemon.controller.function import FunctionState
from specmine.daemon.controller.hotness import Ancestry, Total, waits_for_work

from .borrowing import with_borrowed
from .check_periods import WATCH_EVERY_NS, check_periods
from .function_request import (
    CHEAP,
    URGENT_NS,
    first_cost,
    full_cost,
    most_useful,
    predicted,
    request,
    window_cost,
)
from .means import Means, Plan
from .request import shortest_period_ns

OVERDUE_NS = 5 * SECOND
"""A check that is due for so long borrows its window, up to what is kept for checks in that time."""
MOST_IN_DEBT, PART_IN_DEBT = 3, 0.5
"""Deep in debt so many suspected functions are observed for so much of what they would get: those that their windows so
far say most of, each. Checks that are due get so much of their share. The rest pays the debt back."""
CLOSING_WINDOWS = 10
"""While a violation is open, so many windows come in the time that it must hold again for, ..."""
OPEN_SHARE = 1 / 3
"""... or as many as this share of the budget pays for, of as few calls as are judged."""
RARELY_NS = 20 * SECOND
"""Where they would come less often than this, they hold fewer calls ..."""
CHECK_CALLS = 110
"""... but so many at least. Two such windows together are judged as one."""
TOGETHER, EARLY = 3, 0.6
"""With no CPU time of our own left so many functions are checked at once: those whose check would be due so soon, as a
part of the time between two. Each turn costs us as much as a third of a window, whatever comes in it."""


def check_calls(finished: Sequence[FunctionState], means: Means, settings: Settings) -> int:
    """Return how many calls a window of a finished function is to hold: fewer where full ones would come too rarely.

    A change is seen by windows, hardly by calls: of six windows a minute more is known than of three twice as large.
    In steps of two: a change breaks the windows that are running.
    """
    most = settings.window_calls
    settings, share = replace(settings, check_calls=most), settings.verification * means.income
    round_ns = sum(window_cost(one, means, settings) for one in finished) * SECOND / max(share, 1.0)
    steps = math.ceil(math.log2(max(1.0, round_ns / RARELY_NS)))
    return max(min(CHECK_CALLS, most), most >> steps)


def with_suspected(judged: Sequence[FunctionState], so_far: Plan, means: Means, settings: Settings) -> Plan:
    """Observe functions that may have changed; what is kept for checks is not taken for them.

    Those come first of which windows say so. Of the others sampling found more than usual.
    """
    at_once = replace(settings, pace=1.0)  # what may have changed is not slowed down to save our own CPU time
    urgent = [one for one in judged if one.violations.urgency or _is_surprising(one, means)]
    urgent = sorted(
        (one for one in urgent if not waits_for_work(one)), key=lambda one: (-one.violations.urgency, one.key)
    )
    # what is suspected does not wait until debts are paid back
    budget = (1 - settings.verification) * max(means.budget, means.income)
    if means.is_deep_in_debt:
        urgent = sorted(urgent, key=lambda one: -one.violations.evidence_each)[:MOST_IN_DEBT]
        budget *= PART_IN_DEBT
    # windows closer together share their disturbances: of several functions none takes the place of others
    apart = shortest_period_ns(at_once) / max(URGENT_NS, shortest_period_ns(at_once))

    def grant(function: FunctionState, spent: float) -> float:
        most, half = most_useful(function, means, at_once), 0.5 * (budget - spent)
        return min(most, half, max(apart * most, half / len(urgent)))

    return with_borrowed(urgent, grant, so_far, means, at_once)


def with_open(functions: Iterable[FunctionState], so_far: Plan, means: Means, settings: Settings) -> Plan:
    """Observe functions with open violations, so that people are soon told when they hold again.

    Neither debts nor the CPU time of our own keep them waiting: their windows are few, and small.
    """
    watches, spent, cash, loan = dict(so_far.watches), 0.0, so_far.cash, means.borrowable
    settings = replace(settings, check_calls=min(CHECK_CALLS, settings.window_calls), pace=1.0)
    violated = [one for one in functions if one.violations.standing and one.key not in watches]
    round_ns = sum(window_cost(one, means, settings) for one in violated) * SECOND / max(1.0, OPEN_SHARE * means.income)
    every_ns = max(URGENT_NS, settings.recover_after_ns // CLOSING_WINDOWS, round_ns)
    for function in sorted(violated, key=lambda one: (seen_ns(one), one.key)):
        if means.now_ns - seen_ns(function) < every_ns or len(watches) >= means.slots:
            break
        grant = _grant(function, every_ns, means, settings)
        watch = request(function, grant, means, settings)
        first = 0.0 if watch is None else first_cost(function, watch, means, settings)
        if watch is not None and (loan == means.borrowable or first <= loan):
            watches[function.key] = watch
            spent += predicted(function, watch, means, settings)
            cash -= first
            loan -= first
    return replace(so_far, watches=watches, left=so_far.left - spent, cash=cash)


def with_checks(
    finished: Sequence[FunctionState],
    total: Total,
    so_far: Plan,
    means: Means,
    settings: Settings,
    around: Ancestry | None = None,
) -> Plan:
    """Leave cheap finished functions on, observe those whose check is due, within the share for verification.

    ``around`` tells which calls which; by default only the finished functions do.
    """
    share = settings.verification * means.income
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
    periods = check_periods(finished, share, total, means, settings)
    ages = {one.key: means.now_ns - (one.verification.checked_ns or 0) for one in finished}
    others = [one for one in finished if one.key not in watches]
    others.sort(key=lambda one: (-ages[one.key] / periods[one.key], one.key))
    due = [one for one in others if ages[one.key] >= periods[one.key]]
    together = 1 + round((TOGETHER - 1) * means.pressure)
    check_ns = _next_check_ns(finished, periods, together)
    silent_ns = means.now_ns - check_ns
    if not due and silent_ns >= 0 and not any(_is_on(one) for one in finished):
        due = others[:1]
    if due:
        soon = [one for one in others if one not in due and ages[one.key] >= EARLY * periods[one.key]]
        around = around or Ancestry({one.key: one for one in finished})
        due += around.first_apart(soon, due, together - len(due))
    # what others have spent must not keep checks waiting for ever: overdue ones borrow
    loan = share * OVERDUE_NS / SECOND
    if means.cash < 0 and finished:  # ... as much as checks have not used since the last window, whatever one costs
        unused = share * (means.now_ns - max(map(seen_ns, finished))) / SECOND
        loan = min(unused * (PART_IN_DEBT if means.is_deep_in_debt else 1.0), means.savable)
    for function in due:
        if len(watches) >= means.slots or spent >= share:
            break
        # one window and its probes go again: the next on-phase would come when the next check is due
        grant = _grant(function, periods[function.key], means, settings)
        watch = request(function, grant, means, settings)
        first = 0.0 if watch is None else first_cost(function, watch, means, settings)
        borrowed = max(0.0, first - max(0.0, cash))
        overdue = max(ages[function.key] - periods[function.key], silent_ns) >= OVERDUE_NS
        overdue &= means.cash >= 0 or not function.violations.standing  # these have a share of their own
        if watch is not None and borrowed <= (loan if overdue else 0.0):
            watches[function.key] = watch
            spent += predicted(function, watch, means, settings)
            loan -= borrowed
            cash -= first
    return replace(so_far, watches=watches, left=so_far.left - spent, cash=cash, check_ns=check_ns)


def with_watching(finished: Sequence[FunctionState], so_far: Plan, means: Means, settings: Settings) -> Plan:
    """Give what is left to finished functions: first to those whose last window is old, then to those that are on."""
    watches, left, cash = dict(so_far.watches), so_far.left, so_far.cash
    if means.cash <= 0 or so_far.waiting:
        return so_far  # debts are paid back first, and what others wait for is saved
    most_on = round(means.slots * max(0.0, 1 - 2 * means.pressure))
    rest = [
        one for one in finished if one.key not in watches and one.probe.rate is not None and not waits_for_work(one)
    ]
    old = [one for one in rest if means.now_ns - seen_ns(one) >= WATCH_EVERY_NS]
    on = [one for one in rest if means.now_ns - seen_ns(one) < WATCH_EVERY_NS and one.probe.watch is not None]
    old.sort(key=lambda one: (one.probe.watch is None, seen_ns(one), one.key))
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


def _is_on(function: FunctionState) -> bool:
    """Tell whether a window of its on-phases is awaited."""
    return function.probe.watch is not None and function.probe.watch.on_ns > 0


def _next_check_ns(finished: Sequence[FunctionState], periods: Mapping[str, float], together: int) -> int:
    """Return when some are to be checked although none is due: as long after the newest window as checks are apart.

    After a violation all were observed at the same time. They would all be due at the same time, too, and what is slow
    until then be seen by none of them.
    """
    if not finished:
        return 0
    apart_ns = together / sum(1 / periods[one.key] for one in finished)
    return max(map(seen_ns, finished)) + round(apart_ns)


def _is_surprising(function: FunctionState, means: Means) -> bool:
    return function.key in means.surprising and not function.violations.open


def seen_ns(function: FunctionState) -> int:
    """Return the end of the newest window."""
    history = function.history
    return max((one.end_ns for one in (*history.timing[-1:], *history.paths[-1:])), default=0)


def _grant(function: FunctionState, every_ns: float, means: Means, settings: Settings) -> float:
    """Return what a function gets for one window, ns of cost per second: never so little that it would get none."""
    apart_ns = min(every_ns, 0.5 * settings.limit_ns)
    return min(full_cost(function, means), window_cost(function, means, settings) * SECOND / apart_ns)
