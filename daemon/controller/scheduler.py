"""Which function gets which share of the budget: the highest utility first, ties by share of time per cost.

A plan is the set of probes that should be on. The requests to the source are its difference to what is on now.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from specmine.daemon.config.settings import SECOND, Settings
from specmine.mining.borders.inference import utility_of
from specmine.mining.regression.lifetime_utility import utility_over_lifetimes
from specmine.model.batch import Lifetime, Prices, Watch
from specmine.model.function import Reason
from specmine.model.observation import Kind
from specmine.model.probe_kind import PROBE_KINDS

from . import reasons
from .budget import (
    AT_ONCE,
    MEMORY_NS,
    SPARE_CALLS,
    OnPhase,
    affordable_window,
    cost_rate,
    first_look,
    on_phase,
    price,
    shortest_period_ns,
    watch_for,
    worthwhile,
)
from .function import FunctionState
from .hotness import Ancestry, Total, in_order, is_idle, is_worth_it, own_share, total_of, variation
from .phase import FINISHED, State
from .profile import Profile

LOOKS_AT_ONCE = 16
"""Functions that have their first look at a time."""
LOOKED_THROUGH = 48
"""Candidates among which these are chosen: none calls another, as far as stacks showed."""
LOOKING_SHARE = 0.5
"""Share of the budget that first looks may take while there is something to look at."""
FAST_LINKS = 64
"""Functions with probes on at once."""
SLOTS_UNDER_PRESSURE, FEWEST_SLOTS = 16, 4
"""Functions that may be learned at once as soon as our own CPU time must be saved, and with none of it left: each needs
but a few windows, and those come less often then."""
PACE_UNDER_PRESSURE = 10.0
"""So much further apart are on-phases with no CPU time of our own left."""
SLOW_LINKS = 6
"""The same where every link is a perf event."""
SLOW_LINK_RATE = 5000.0
"""Calls a second above which a function gets no perf-event link: it would stay on for too long."""
BEGUN = 0.6
"""Share of what is left that a function being learned gets at most: one that never becomes stable must not take all."""
BEGINNING = 0.15
"""Share of the budget that must be left before another function is learned."""
CHEAP = 0.02
"""A finished function that costs less than this share of the budget stays on: its counts remain exact."""
YOUNG_NS = 300 * SECOND
"""So long the first window of a lifetime is waited for."""
PAID_HITS = 100
"""Hits from which it is known what a timed call costs with all hits around it."""
SAVED = 0.8
"""Share of what may be saved up that is waited for before an on-phase that costs more."""
DEAREST = 8.0
"""The most that is assumed of it: the places that a call returns to are learned with the first ones."""
UNKNOWN_BURST = 400
"""Hits at once of a function whose rate is not known."""
WATCH_EVERY_NS = 10 * SECOND
"""Windows of finished functions come this often where what is kept for them, or left, allows it ..."""
URGENT_NS = 5 * SECOND
"""... and those of functions that are suspected to have changed this often, before all else."""
WHOLE_WINDOW = 1 << 20
"""Calls of a window of a finished function that is on all the time: it lasts as long as windows do."""
LOOKED_INTO_NS = 300 * SECOND
"""So long the callees of a function that nothing explains are timed together with it."""
RECHECK = 0.5
"""Utility from which a finished function is observed before its check is due."""

_LEARNING = (State.WAITING, State.TIMING, State.EXPLAINING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What there is to allocate."""

    budget: float
    """ns of cost per second."""
    income: float
    """The same without debts and savings, which come and go: what the size of windows goes by."""
    cash: float
    """ns of cost that may be spent at once: a watch with duty cycles begins with an on-phase."""
    prices: Prices
    slow_links: bool
    now_ns: int
    running: tuple[Lifetime, ...] = ()
    runtime: Profile = field(default_factory=Profile)
    """Time profile of code made at run time."""
    pressure: float = 0.0
    """In [0, 1]: how much of our own work must be saved; each window costs a few ms of it."""

    @property
    def slots(self) -> int:
        """Functions that may have probes on at once."""
        return SLOW_LINKS if self.slow_links else FAST_LINKS

    @property
    def savable(self) -> float:
        """Cost of an on-phase at most that is waited for, ns: more is never saved up, a debt is paid back later."""
        return SAVED * self.income * MEMORY_NS / SECOND

    @property
    def learning_slots(self) -> int:
        """Functions that may be learned at once."""
        most = max(FEWEST_SLOTS, round(SLOTS_UNDER_PRESSURE * (1 - self.pressure)))
        return self.slots if self.pressure <= 0 else min(self.slots, most)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Which probes should be on, and why those that wait do."""

    watches: Mapping[str, Watch] = field(default_factory=dict)
    waiting: Mapping[str, Reason] = field(default_factory=dict)
    left: float = 0.0
    cash: float = 0.0


def kind_for(function: FunctionState) -> Kind:
    """Return what to collect: call paths once there are classes to explain by them, durations before."""
    explained = function.state in FINISHED and function.explanation.result is not None
    by_path = explained or function.state is State.EXPLAINING
    return Kind.PATH if by_path and function.phase.refusal(Kind.PATH) is None else Kind.TIME


def utility(function: FunctionState, now_ns: int, running: Collection[Lifetime] = ()) -> float:
    """Return how much is to be learned by observing the function now, in [0, 1].

    Of a finished one: what the age of its chain says, but nothing of lifetimes that were observed enough, and most
    of one that was never observed (``mining/regression/lifetime_utility.py``). Checks go on either way.
    """
    chain = function.inference.chain
    if chain is None or function.verification.violations or function.state not in FINISHED:
        return 1.0
    by_age = utility_of(chain, now_ns)
    if not running:
        return by_age
    return utility_over_lifetimes(by_age, function.history.lifetimes, _that_may_call(function, running, now_ns))


def _that_may_call(function: FunctionState, running: Collection[Lifetime], now_ns: int) -> dict[str, bool]:
    """Return the running lifetimes of the builds in which the function was observed, and whether they are young."""
    observed = {name for name, _ in function.history.lifetimes.moments}
    builds = {function.function.build_id, *(lifetime.build_id for lifetime in running if lifetime.id in observed)}
    return {lifetime.id: now_ns - lifetime.start_ns < YOUNG_NS for lifetime in running if lifetime.build_id in builds}


def plan(functions: Mapping[str, FunctionState], means: Means, settings: Settings) -> Plan:
    """Allocate the budget: first looks, then checks that are due, then learning by utility."""
    total = total_of(functions.values(), means.runtime)
    pace = 1 + (PACE_UNDER_PRESSURE - 1) * means.pressure
    settings = replace(settings, window_calls=_window_calls(functions, means, settings), pace=pace)
    result = _first_looks(functions, total, means, settings)
    finished = [function for function in functions.values() if function.state in FINISHED]
    result = _checks(finished, result, means, settings)
    result = _learning(functions, total, result, means, settings)
    return _watching(finished, result, means, settings)


def _window_calls(functions: Mapping[str, FunctionState], means: Means, settings: Settings) -> int:
    """Return how many calls a window is to hold: fewer while many functions wait, and where calls were found dear.

    In steps of two: a change breaks the windows that are running.
    """
    learning = sum(function.state in _LEARNING for function in functions.values())
    dear = [_dearness(one, means) for one in functions.values() if one.probe.paid.hits >= PAID_HITS]
    crowd = max(1.0, learning / AT_ONCE) * (statistics.median(dear) if dear else 1.0)
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


def _checks(finished: Sequence[FunctionState], so_far: Plan, means: Means, settings: Settings) -> Plan:
    """Leave cheap finished functions on, observe those whose check is due, within the share for verification."""
    share = settings.verification * min(means.budget, means.income)
    most_on = round(0.5 * means.slots * max(0.0, 1 - 2 * means.pressure))  # each brings windows all the time
    watches = dict(so_far.watches)
    spent, cash = 0.0, so_far.cash
    at_once = replace(settings, pace=1.0)  # what may have changed is not slowed down to save our own CPU time
    urgent = [one for one in finished if one.violations.urgency]
    # what is suspected does not wait until debts are paid back: it borrows what others then have to earn
    budget, loan = max(means.budget, means.income), means.savable
    for function in sorted(urgent, key=lambda one: (-one.violations.urgency, one.key)):
        # windows closer together share their disturbances: of several functions none takes the place of others
        most, half = _most_useful(function, means, at_once), 0.5 * (budget - spent)
        apart = shortest_period_ns(at_once) / max(URGENT_NS, shortest_period_ns(at_once))
        grant = min(most, half, max(apart * most, half / len(urgent)))
        watch = _request(function, grant, means, at_once)
        first = 0.0 if watch is None else _first_cost(function, watch, means, at_once)
        if watch is not None and first <= max(0.0, cash) + loan and len(watches) < means.slots:
            watches[function.key] = watch
            spent += predicted(function, watch, means, at_once)
            loan -= max(0.0, first - max(0.0, cash))
            cash -= first
    urgently, spent = spent, 0.0  # what is kept for checks is not taken by what is suspected
    for function in sorted(finished, key=lambda one: (_full_cost(one, means), one.key)):
        if function.key in watches:
            continue
        cost = _full_cost(function, means)
        if cost > CHEAP * means.budget or spent + cost > 0.5 * share or len(watches) >= most_on:
            break
        watch = _request(function, cost, means, settings)
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
        grant = min(_full_cost(function, means), _window_cost(function, means, settings) * SECOND / every_ns)
        watch = _request(function, grant, means, settings)
        first = 0.0 if watch is None else _first_cost(function, watch, means, settings)
        if watch is not None and first <= max(0.0, cash):
            watches[function.key] = watch
            spent += predicted(function, watch, means, settings)
            cash -= first
    return replace(so_far, watches=watches, left=so_far.left - urgently - spent, cash=cash)


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
    learning.sort(key=lambda function: _priority(function, total, means, settings))
    watches, waiting, left, cash = dict(so_far.watches), dict(so_far.waiting), so_far.left, so_far.cash
    most = min(means.slots, len(watches) + means.learning_slots)
    for place, function in enumerate(learning):
        grant = _grant(function, left, len(learning) - place, means, settings)
        watch = _request(function, grant, means, settings) if len(watches) < most else None
        first = 0.0 if watch is None else _first_cost(function, watch, means, settings)
        if watch is not None and first <= max(0.0, cash):
            watches[function.key] = watch
            left -= predicted(function, watch, means, settings)
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
    on.sort(key=lambda one: (_full_cost(one, means), one.key))
    for function in (*old, *on):
        if len(watches) >= most_on or left <= 0:
            break
        watch = _request(function, min(_most_useful(function, means, settings), 0.5 * left), means, settings)
        first = 0.0 if watch is None else _first_cost(function, watch, means, settings)
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
    most = _most_useful(function, means, settings)
    if _is_begun(function, settings):
        return min(most, BEGUN * left)
    expensive = _full_cost(function, means) > CHEAP * means.budget
    if left < BEGINNING * means.budget and expensive and function.probe.watch is None:
        return 0.0
    return min(most, max(0.5 * left, left / others))


def _is_begun(function: FunctionState, settings: Settings) -> bool:
    """Tell whether a function has windows and needs but a few more; one that never becomes stable stands back."""
    if function.state is State.EXPLAINING:
        return True
    patience = settings.mining.recent + settings.mining.chain_observations
    return function.state in (State.TIMING, State.WAITING) and 0 < function.history.tried <= patience


def _first_cost(function: FunctionState, watch: Watch, means: Means, settings: Settings) -> float:
    """Return what a request costs at once: an on-phase, unless the function is watched in this way already."""
    now = function.probe.watch
    if watch.on_ns == 0 or (now is not None and now.kind is watch.kind and now.on_ns > 0):
        return 0.0
    return min(_on_phase(function, watch.kind, means, settings).cost_ns, means.savable)


def _priority(function: FunctionState, total: Total, means: Means, settings: Settings) -> tuple[object, ...]:
    rate = function.probe.rate or 0.0
    cost = price(means.prices, kind_for(function), function.function) * _dearness(function, means)
    value = variation(function) if function.state in FINISHED else own_share(function, total) * min(1.0, rate)
    # what is on stays on unless something is clearly better, and what was begun is finished before another begins
    staying = (1.5 if function.probe.watch is not None else 1.0) * (1 + 9 * _progress(function, settings))
    return (
        not function.identity.hinted,
        is_idle(function) or (function.state not in FINISHED and not rate),
        -round(utility(function, means.now_ns, means.running), 3),
        function.state in FINISHED,
        -(value * staying / cost),
        function.key,
    )


def _progress(function: FunctionState, settings: Settings) -> float:
    """Return how much of what a function needs is there, in [0, 1]."""
    chain = function.inference.chain
    if function.state is State.EXPLAINING:
        return 0.5 + 0.5 * min(1.0, len(function.history.paths) / settings.mining.recent)
    if function.state in (State.TIMING, State.WAITING) and chain is not None:  # also while its probes had to go
        return 0.5 * min(1.0, chain.chain / settings.mining.chain_observations)
    return 0.0


def _request(function: FunctionState, grant: float, means: Means, settings: Settings) -> Watch | None:
    """Return the watch that fits a grant, None if none does."""
    rate, now = function.probe.rate or 0.0, function.probe.watch
    if means.slow_links and rate > SLOW_LINK_RATE:
        return None
    kind = kind_for(function)
    duty = not means.slow_links
    watch = watch_for(
        function.function,
        kind,
        rate,
        grant=grant,
        prices=means.prices,
        settings=settings,
        duty=duty,
        dearness=_dearness(function, means),
        crowding=_crowding(function),
    )
    watch = replace(watch, program=function.home(means.running)) if watch is not None else None
    if watch is not None and function.probe.rate is None:
        watch = replace(watch, burst_hits=min(watch.burst_hits, UNKNOWN_BURST))
    if watch is not None and function.state in FINISHED and watch.on_ns == 0:
        # its windows cost us more than its calls cost the program: few long ones tell as much as many short ones
        length_ns = min(settings.window_ns, URGENT_NS) if function.violations.urgency else settings.window_ns
        watch = replace(watch, window_calls=WHOLE_WINDOW, window_ns=length_ns)
    if watch is None and grant > 0 and now is not None and now.kind is kind and now.on_ns:
        # in a dry spell a window that has begun is stretched, not thrown away
        return replace(now, period_ns=settings.limit_ns)
    return watch


def _why_not(function: FunctionState, used: int, most: int, means: Means) -> Reason:
    rate = function.probe.rate or 0.0
    if means.slow_links and rate > SLOW_LINK_RATE:
        return reasons.too_fast(rate, SLOW_LINK_RATE)
    if used >= most:
        return reasons.no_slot(most, held_back=most < means.slots)
    return reasons.no_budget(rate, _full_cost(function, means), means.budget)


def _most_useful(function: FunctionState, means: Means, settings: Settings) -> float:
    """Return the largest grant that still brings observations faster, ns of cost per second."""
    rate = function.probe.rate or 0.0
    dearness = _dearness(function, means)
    return worthwhile(function.function, kind_for(function), rate, means.prices, settings, dearness)


def _window_cost(function: FunctionState, means: Means, settings: Settings) -> float:
    """Return what a window of the function costs, ns."""
    call_ns = price(means.prices, kind_for(function), function.function) * _dearness(function, means)
    return SPARE_CALLS * settings.window_calls * call_ns


def _full_cost(function: FunctionState, means: Means) -> float:
    """Return what it costs to have the function on all the time, ns per second."""
    call_ns = price(means.prices, kind_for(function), function.function) * _dearness(function, means)
    return (function.probe.rate or 0.0) * call_ns


def _dearness(function: FunctionState, means: Means) -> float:
    """Return what a timed call was found to cost with all hits around it, relative to its price; 1: not known."""
    paid = function.probe.paid
    if paid.hits < PAID_HITS:
        return 1.0
    time_ns, path_ns = (price(means.prices, kind, function.function) for kind in (Kind.TIME, Kind.PATH))
    found = paid.cost_ns / max(time_ns, (paid.calls - paid.by_path) * time_ns + paid.by_path * path_ns)
    return min(max(1.0, found), DEAREST)


def _crowding(function: FunctionState) -> float:
    """Return how many hits came for each that a timed call needs; 1: not known."""
    paid = function.probe.paid
    if paid.hits < PAID_HITS:
        return 1.0
    return min(max(1.0, paid.hits / max(1.0, paid.calls) / PROBE_KINDS[Kind.TIME].hits), DEAREST)


def predicted(function: FunctionState, watch: Watch, means: Means, settings: Settings) -> float:
    """Return the mean cost of a watch, ns per second."""
    if watch.on_ns == 0:
        dearness = _dearness(function, means)
        return cost_rate(means.prices, watch, function.probe.rate or 0.0, function.function, dearness)
    settings = replace(settings, window_calls=watch.window_calls)
    return _on_phase(function, watch.kind, means, settings).cost_ns * SECOND / watch.period_ns


def _on_phase(function: FunctionState, kind: Kind, means: Means, settings: Settings) -> OnPhase:
    call_ns, hit_ns = (price(means.prices, one, function.function) for one in (kind, Kind.COUNT))
    return on_phase(function.probe.rate or 0.0, call_ns * _dearness(function, means), hit_ns, settings)


def _check_every_ns(finished: Sequence[FunctionState], share: float, means: Means, settings: Settings) -> float:
    """Return how often each is observed: as what is kept for it allows, less often if our own work must be saved."""
    least_ns: float = min(WATCH_EVERY_NS, settings.verify_every_ns)
    least_ns += means.pressure * (settings.verify_every_ns - least_ns)
    round_ns = sum(_window_cost(one, means, settings) for one in finished) * SECOND / max(share, 1.0)
    return max(least_ns, min(round_ns, settings.verify_every_ns))


def _is_due(function: FunctionState, every_ns: float, means: Means) -> bool:
    """Tell whether a window is due."""
    return means.now_ns - (function.verification.checked_ns or 0) >= every_ns


def same_enough(old: Watch | None, new: Watch | None) -> bool:
    """Tell whether a change of plan is too small to break the window that is running."""
    if old is None or new is None:
        return old is new
    if (old.kind, old.on_ns == 0, old.window_calls, old.window_ns, old.program) != (
        new.kind,
        new.on_ns == 0,
        new.window_calls,
        new.window_ns,
        new.program,
    ):
        return False
    if not 0.5 <= new.timed_share / old.timed_share <= 2:
        return False
    if new.on_ns == 0:
        return 0.4 * old.hits_per_second <= new.hits_per_second <= 2.5 * old.hits_per_second
    return 0.5 * old.period_ns <= new.period_ns <= 1.8 * old.period_ns
