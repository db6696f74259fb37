"""Who gets which share of the budget: the highest utility first, ties by share of time per predicted cost.

Pure planning: from what is known to the set of probes that should be on. The requests to the source are the
difference to what is on now.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from specmine.daemon.config.settings import SECOND, Settings
from specmine.mining.borders.inference import utility_of
from specmine.mining.regression.lifetime_utility import utility_over_lifetimes
from specmine.model.batch import Lifetime, Prices, Watch
from specmine.model.function import Reason
from specmine.model.observation import Kind

from . import reasons
from .budget import affordable_window, cost_rate, phase, price, watch_for, worthwhile
from .function import Knowledge
from .hotness import Total, in_order, is_worth_it, own_share, total_of, variation
from .phase import FINISHED, State
from .profile import Where
from .transitions import ADMISSION_NS

COUNTED_AT_ONCE = 12
COUNTING_SHARE = 0.3
"""Share of the budget that counting may take while there is something to count."""
FAST_LINKS = 64
"""Functions with probes on at once."""
LESSONS_UNDER_PRESSURE = 12
SLOW_LINKS = 6
"""The same where every link is a perf event."""
SLOW_LINK_RATE = 5000.0
"""Calls a second above which a function gets no perf-event link: it would stay on for too long."""
BEGUN = 0.6
"""Share of what is left that a lesson begun gets at most: a function that never settles must not take all."""
BEGINNING = 0.15
"""Share of the budget that must be left for another lesson to begin."""
CHEAP = 0.02
"""A finished function that costs less than this share of the budget stays on: its counts remain exact."""
YOUNG_NS = 300 * SECOND
"""So long the first window of a lifetime is waited for."""
UNKNOWN_BURST = 400
"""Hits of a function whose rate is not known that it may take at once."""
REVISIT = 0.5
"""Utility from which a finished function is observed before its check is due."""


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
    runtime: Where = field(default_factory=Where)
    """Where time went in code made at run time."""
    pressure: float = 0.0
    """In [0, 1]: how much of our own work must be saved; each window costs a few ms of it."""

    @property
    def places(self) -> int:
        """Functions that may have probes on at once."""
        return SLOW_LINKS if self.slow_links else FAST_LINKS

    @property
    def lessons(self) -> int:
        """Functions that may be learned at once."""
        return self.places if self.pressure <= 0 else max(1, round(LESSONS_UNDER_PRESSURE * (1 - self.pressure)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Which probes should be on, and why those that wait do."""

    watches: Mapping[str, Watch] = field(default_factory=dict)
    waiting: Mapping[str, Reason] = field(default_factory=dict)
    left: float = 0.0
    cash: float = 0.0


def kind_for(known: Knowledge) -> Kind:
    """Return what to collect: call paths once there are classes to explain by them, durations before."""
    by_path = known.state is State.EXPLAINING or (known.state in FINISHED and known.result is not None)
    return Kind.PATH if by_path and known.refusal(Kind.PATH) is None else Kind.TIME


def utility(known: Knowledge, now_ns: int, running: Collection[Lifetime] = ()) -> float:
    """Return how much is to be learned by observing the function now, in [0, 1].

    Of a finished one: as much as the age of what is known says, but nothing of lifetimes that were observed
    enough, and most of one that was not seen at all (``mining/regression/lifetime_utility.py``). Checks go on
    either way.
    """
    if known.chain is None or known.violations or known.state not in FINISHED:
        return 1.0
    found = utility_of(known.chain, now_ns)
    return utility_over_lifetimes(found, known.lifetimes, _that_may_call(known, running, now_ns)) if running else found


def _that_may_call(known: Knowledge, running: Collection[Lifetime], now_ns: int) -> dict[str, bool]:
    """Return the running lifetimes of the builds in which the function was seen, and whether they are young."""
    seen = {name for name, _ in known.lifetimes.moments}
    builds = {known.function.build_id, *(each.build_id for each in running if each.id in seen)}
    return {each.id: now_ns - each.start_ns < YOUNG_NS for each in running if each.build_id in builds}


def plan(known: Mapping[str, Knowledge], means: Means, settings: Settings) -> Plan:
    """Allocate the budget: counts first, then checks that are due, then learning by utility."""
    total = total_of(known.values(), means.runtime)
    settings = replace(settings, window_calls=affordable_window(means.income, means.prices, settings))
    result = _counts(known, total, means, settings)
    finished = [each for each in known.values() if each.state in FINISHED]
    result = _checks(finished, result, means, settings)
    return _lessons(known, total, result, means, settings)


def _counts(known: Mapping[str, Knowledge], total: Total, means: Means, settings: Settings) -> Plan:
    """Count the calls of the most promising candidates, in short windows that end by themselves."""
    candidates = {key: each for key, each in known.items() if each.state is State.CANDIDATE}
    running = {key: each.watch for key, each in candidates.items() if each.watch is not None}
    chosen = [each for each in in_order(candidates, total) if each.watch is None and is_worth_it(each, total)][
        : max(0, COUNTED_AT_ONCE - len(running))
    ]
    left = means.budget
    watches: dict[str, Watch] = dict(running)
    for each in chosen:
        one = price(means.prices, Kind.COUNT, each.function)
        hits = COUNTING_SHARE * means.budget * ADMISSION_NS / SECOND / COUNTED_AT_ONCE / one
        watches[each.function.key] = Watch(
            function=each.function.key,
            kind=Kind.COUNT,
            hits_per_second=1.0,
            burst_hits=int(min(max(hits, 100), 1000)),
        )
    if watches:
        left -= COUNTING_SHARE * means.budget * min(1.0, len(watches) / COUNTED_AT_ONCE)
    return Plan(watches=watches, left=left, cash=means.cash)


def _checks(finished: Sequence[Knowledge], so_far: Plan, means: Means, settings: Settings) -> Plan:
    """Keep cheap finished functions on, observe those whose check is due, within the share kept for it."""
    kept = settings.verification * means.budget
    most_on = round(0.5 * means.places * max(0.0, 1 - 2 * means.pressure))  # each brings windows all the time
    watches = dict(so_far.watches)
    spent = 0.0
    for each in sorted(finished, key=lambda one: (_full_cost(one, means), one.function.key)):
        cost = _full_cost(each, means)
        if cost > CHEAP * means.budget or spent + cost > 0.5 * kept or len(watches) >= most_on:
            break
        found = _request(each, cost, means, settings)
        if found is not None:
            watches[each.function.key] = found
            spent += cost
    due = [each for each in finished if each.function.key not in watches and _is_due(each, means.now_ns, settings)]
    cash = so_far.cash
    for place, each in enumerate(sorted(due, key=lambda one: (one.checked_ns or 0, one.function.key))):
        if len(watches) >= means.places:
            break
        room = kept - spent
        want = worthwhile(each.function, kind_for(each), each.rate or 0.0, means.prices, settings)
        found = _request(each, min(want, room if place == len(due) - 1 else 0.5 * room), means, settings)
        begin = 0.0 if found is None else _first_cost(each, found, means, settings)
        if found is not None and begin <= max(0.0, cash):
            watches[each.function.key] = found
            spent += predicted(each, found, means, settings)
            cash -= begin
    return replace(so_far, watches=watches, left=so_far.left - spent, cash=cash)


def _lessons(known: Mapping[str, Knowledge], total: Total, so_far: Plan, means: Means, settings: Settings) -> Plan:
    """Give the rest of the budget to what can be learned, half of what is left to each in turn."""
    states = (State.WAITING, State.TIMING, State.EXPLAINING)
    pupils = [each for each in known.values() if each.state in states]
    again = [each for each in known.values() if each.state in FINISHED and each.function.key not in so_far.watches]
    pupils += [each for each in again if utility(each, means.now_ns, means.running) >= REVISIT]
    pupils.sort(key=lambda each: _priority(each, total, means, settings))
    watches, waiting, left, cash = dict(so_far.watches), dict(so_far.waiting), so_far.left, so_far.cash
    most = min(means.places, len(watches) + means.lessons)
    for place, each in enumerate(pupils):
        key = each.function.key
        grant = _grant(each, left, len(pupils) - place, means, settings)
        found = _request(each, grant, means, settings) if len(watches) < most else None
        begin = 0.0 if found is None else _first_cost(each, found, means, settings)
        if found is not None and begin <= max(0.0, cash):
            watches[key] = found
            left -= predicted(each, found, means, settings)
            cash -= begin
        elif each.state not in FINISHED:
            waiting[key] = _why(each, len(watches), most, means)
            # what it is saving for must not be spent on something of less use
            cash -= begin
    return Plan(watches=watches, waiting=waiting, left=left, cash=cash)


def _grant(each: Knowledge, left: float, others: int, means: Means, settings: Settings) -> float:
    """Return what a function gets of what is left, ns of cost per second.

    A lesson begun gets all that brings its windows faster, so that it ends soon. A new one begins once enough
    is left; where watching all the time costs next to nothing it begins at once, since it needs but patience.
    """
    if left <= 0:
        return 0.0
    if each.rate is None:
        return 0.5 * left / others
    want = worthwhile(each.function, kind_for(each), each.rate or 0.0, means.prices, settings)
    if each.state in FINISHED and not each.violations:
        want *= 0.25
    if _is_begun(each, settings):
        return min(want, BEGUN * left)
    if left < BEGINNING * means.budget and _full_cost(each, means) > CHEAP * means.budget and each.watch is None:
        return 0.0
    return min(want, max(0.5 * left, left / others))


def _is_begun(each: Knowledge, settings: Settings) -> bool:
    """Tell whether windows of a function are there that need but a few more; one that never settles stands back."""
    if each.state is State.EXPLAINING:
        return True
    patience = settings.mining.recent + settings.mining.chain_observations
    return each.state in (State.TIMING, State.WAITING) and 0 < each.tried <= patience


def _first_cost(each: Knowledge, watch: Watch, means: Means, settings: Settings) -> float:
    """Return what a request costs at once: an on-phase, unless the function is watched in this way already."""
    now = each.watch
    if watch.on_ns == 0 or (now is not None and now.kind is watch.kind and now.on_ns > 0):
        return 0.0
    call_ns = price(means.prices, watch.kind, each.function)
    return phase(each.rate or 0.0, call_ns, price(means.prices, Kind.COUNT, each.function), settings).cost_ns


def _priority(each: Knowledge, total: Total, means: Means, settings: Settings) -> tuple[object, ...]:
    kind, rate = kind_for(each), each.rate or 0.0
    window = min(rate * settings.window_ns / SECOND, settings.window_calls)
    cost = max(window, 1.0) * price(means.prices, kind, each.function)
    worth = variation(each) if each.state in FINISHED else own_share(each, total) * rate
    # what is on stays on unless something is clearly better, and a lesson begun is finished before another
    staying = (1.5 if each.watch is not None else 1.0) * (1 + 9 * _progress(each, settings))
    return (
        not each.hinted,
        each.where.loop_bottom,
        -round(utility(each, means.now_ns, means.running), 3),
        each.state in FINISHED,
        -(worth * staying / cost),
        each.function.key,
    )


def _progress(each: Knowledge, settings: Settings) -> float:
    """Return how much of what a function needs is there, in [0, 1]."""
    if each.state is State.EXPLAINING:
        return 0.5 + 0.5 * min(1.0, len(each.paths) / settings.mining.recent)
    if each.state is State.TIMING and each.chain is not None:
        return 0.5 * min(1.0, each.chain.chain / settings.mining.chain_observations)
    return 0.0


def _request(each: Knowledge, grant: float, means: Means, settings: Settings) -> Watch | None:
    rate = each.rate or 0.0
    if means.slow_links and rate > SLOW_LINK_RATE:
        return None
    kind = kind_for(each)
    duty = not means.slow_links
    found = watch_for(each.function, kind, rate, grant=grant, prices=means.prices, settings=settings, duty=duty)
    if found is not None and each.rate is None:
        found = replace(found, burst_hits=min(found.burst_hits, UNKNOWN_BURST))
    if found is None and grant > 0 and each.watch is not None and each.watch.kind is kind and each.watch.on_ns:
        # in a dry spell a window that has begun is stretched, not thrown away
        return replace(each.watch, period_ns=settings.limit_ns)
    return found


def _why(each: Knowledge, used: int, most: int, means: Means) -> Reason:
    rate = each.rate or 0.0
    if means.slow_links and rate > SLOW_LINK_RATE:
        return reasons.too_fast(rate, SLOW_LINK_RATE)
    if used >= most:
        return reasons.no_slot(most)
    return reasons.no_budget(rate, _full_cost(each, means), means.budget)


def _full_cost(each: Knowledge, means: Means) -> float:
    """Return what it costs to have the function on all the time, ns per second."""
    return (each.rate or 0.0) * price(means.prices, kind_for(each), each.function)


def predicted(each: Knowledge, watch: Watch, means: Means, settings: Settings) -> float:
    """Return the mean cost of a watch, ns per second."""
    rate = each.rate or 0.0
    call_ns = price(means.prices, watch.kind, each.function)
    if watch.on_ns == 0:
        return cost_rate(means.prices, watch, rate, each.function)
    hit_ns = price(means.prices, Kind.COUNT, each.function)
    one = phase(rate, call_ns, hit_ns, replace(settings, window_calls=watch.window_calls))
    return one.cost_ns * SECOND / watch.period_ns


def _is_due(each: Knowledge, now_ns: int, settings: Settings) -> bool:
    return now_ns - (each.checked_ns or 0) >= settings.verify_every_ns


def same_enough(old: Watch | None, new: Watch | None) -> bool:
    """Tell whether a change of plan is too small to break the window that is running."""
    if old is None or new is None:
        return old is new
    if (old.kind, old.on_ns == 0, old.window_calls, old.window_ns) != (
        new.kind,
        new.on_ns == 0,
        new.window_calls,
        new.window_ns,
    ):
        return False
    if new.kind is Kind.COUNT:
        return True
    if not 0.5 <= new.timed_share / old.timed_share <= 2:
        return False
    if new.on_ns == 0:
        return 0.4 * old.hits_per_second <= new.hits_per_second <= 2.5 * old.hits_per_second
    return 0.5 * old.period_ns <= new.period_ns <= 1.8 * old.period_ns
