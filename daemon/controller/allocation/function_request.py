"""What a function asks for, by its state: the kind of probes, the request that fits a grant, what that costs."""

from __future__ import annotations

from dataclasses import replace

from specmine.daemon.config.settings import SECOND, Settings
from specmine.daemon.controller.function import FunctionState
from specmine.daemon.controller.phase import FINISHED, State
from specmine.mining.detection.values import LEAST_CALLS
from specmine.model.batch import Prices, Watch
from specmine.model.observation import Kind
from specmine.model.probe_kind import PROBE_KINDS

from .means import Means
from .request import SPARE_CALLS, CallCosts, cost_rate, on_phase, price, watch_for, worthwhile

SLOW_LINK_RATE = 5000.0
"""Calls a second above which a function gets no perf-event link: it would stay on for too long."""
PAID_HITS = 100
"""Hits from which it is known what a timed call costs with all hits around it."""
DEAREST = 8.0
"""The most that is assumed of it: the places that a call returns to are learned with the first ones."""
UNKNOWN_BURST = 400
"""Hits at once of a function whose rate is not known."""
OVERRUN_NS, OVERRUN_MEMORY_NS = 10 * SECOND, 600 * SECOND
"""A function whose hits cost more than so much time brings, after its bucket was empty and before its probes were off,
gets none for so long: it may be called less often then."""
CHEAP = 0.02
"""A finished function that costs less than this share of the budget stays on: its counts remain exact."""
WHOLE_WINDOW = 1 << 20
"""Calls of a window of a finished function that is on all the time: it lasts as long as windows do."""
URGENT_NS = 5 * SECOND
"""Windows of functions that are suspected to have changed come this often, before all else."""


def kind_for(function: FunctionState) -> Kind:
    """Return what to collect: call paths once there are classes to explain by them, durations before."""
    explained = function.state in FINISHED and function.explanation.result is not None
    by_path = explained or function.state is State.EXPLAINING or function.identity.asked is Kind.PATH
    return Kind.PATH if by_path and function.phase.refusal(Kind.PATH) is None else Kind.TIME


def sized(function: FunctionState, settings: Settings) -> Settings:
    """Return the settings with the size of windows that the state of a function asks for."""
    calls = window_calls(function, settings)
    if calls == settings.window_calls:
        return settings
    return replace(settings, window_calls=calls, minimum_calls=min(settings.minimum_calls, calls))


def window_calls(function: FunctionState, settings: Settings) -> int:
    """Return how many calls a window of the function holds by its state."""
    return min(settings.window_calls, settings.check_calls) if function.state in FINISHED else settings.window_calls


def costs_of(function: FunctionState, kind: Kind, means: Means) -> CallCosts:
    """Return what its calls cost, as far as is known."""
    return CallCosts(
        function=function.function,
        kind=kind,
        rate=function.probe.rate or 0.0,
        prices=prices_of(function, means),
        dearness=dearness_of(function, means),
        crowding=crowding_of(function),
        passing_ns=passing_cost(function, means),
    )


def request(function: FunctionState, grant: float, means: Means, settings: Settings) -> Watch | None:
    """Return the watch that fits a grant, None if none does."""
    rate, now = function.probe.rate or 0.0, function.probe.watch
    if means.slow_links and rate > SLOW_LINK_RATE:
        return None
    if grant <= 0 < rate:
        return None
    if _overruns(function, means):
        return None
    kind, settings = kind_for(function), sized(function, settings)
    watch = watch_for(costs_of(function, kind, means), grant, settings, duty=not means.slow_links)
    watch = replace(watch, program=function.home(means.running)) if watch is not None else None
    if watch is not None and function.probe.rate is None:
        watch = replace(watch, burst_hits=min(watch.burst_hits, UNKNOWN_BURST))
    if watch is not None and function.state in FINISHED and watch.on_ns:
        # should the on-phase bring no more calls than these, they are looked at: the next one may be far away
        watch = replace(watch, minimum_calls=min(watch.minimum_calls, LEAST_CALLS))
    if watch is not None and function.state in FINISHED and watch.on_ns == 0:
        # its windows cost us more than its calls cost the program: few long ones tell as much as many short ones
        length_ns = min(settings.window_ns, URGENT_NS) if function.violations.urgency else settings.window_ns
        watch = replace(watch, window_calls=WHOLE_WINDOW, window_ns=length_ns)
    if watch is None and grant > 0 and now is not None and now.kind is kind and now.on_ns:
        # in a dry spell a window that has begun is stretched, not thrown away
        return replace(now, period_ns=settings.limit_ns)
    return watch


def _overruns(function: FunctionState, means: Means) -> bool:
    """Tell whether hits come so fast that those until the probes are off cost far more than a window."""
    probe = function.probe
    lately = probe.overrun_ns and means.now_ns - probe.overrun_at_ns < OVERRUN_MEMORY_NS
    return bool(lately) and probe.overrun_ns > means.lasting * OVERRUN_NS / SECOND


def first_cost(function: FunctionState, watch: Watch, means: Means, settings: Settings) -> float:
    """Return what a request costs at once: an on-phase, unless the function is watched in this way already."""
    now = function.probe.watch
    if watch.on_ns == 0 or (now is not None and now.kind is watch.kind and now.on_ns > 0):
        return 0.0
    phase = on_phase(costs_of(function, watch.kind, means), sized(function, settings))
    return min(phase.cost_ns, means.savable)


def most_useful(function: FunctionState, means: Means, settings: Settings) -> float:
    """Return the largest grant that still brings observations faster, ns of cost per second."""
    return worthwhile(costs_of(function, kind_for(function), means), sized(function, settings))


def call_cost(function: FunctionState, means: Means) -> float:
    """Return what a timed call of the function costs, ns."""
    return price(means.prices, kind_for(function), function.function) * dearness_of(function, means)


def window_cost(function: FunctionState, means: Means, settings: Settings) -> float:
    """Return what a window of the function costs, ns."""
    return SPARE_CALLS * window_calls(function, settings) * call_cost(function, means)


def full_cost(function: FunctionState, means: Means) -> float:
    """Return what it costs to have the function on all the time, ns per second."""
    return max((function.probe.rate or 0.0) * call_cost(function, means), passing_cost(function, means))


def passing_cost(function: FunctionState, means: Means) -> float:
    """Return what a second with its probes on costs where that is hits of other calls, ns; 0: it is those of its own.

    Others pass the places that its calls return to, also while nobody calls it any more.
    """
    own = (function.probe.rate or 0.0) * price(means.prices, Kind.TIME, function.function)
    return function.probe.on_cost if function.probe.on_cost > DEAREST * own else 0.0


def least_cost(function: FunctionState, means: Means) -> float:
    """Return what it costs at least to have the function on all the time, ns per second: few of its calls timed."""
    rate = function.probe.rate or 0.0
    own = rate * (prices_of(function, means).untimed_ns or price(means.prices, kind_for(function), function.function))
    return max(own, passing_cost(function, means))


def dearness_of(function: FunctionState, means: Means) -> float:
    """Return what a timed call was found to cost with all hits around it, relative to its price; 1: not known."""
    paid = function.probe.paid
    if paid.hits < PAID_HITS:
        return 1.0
    time_ns = price(means.prices, Kind.TIME, function.function)
    path_ns = price(means.prices, Kind.PATH, function.function) if paid.by_path else time_ns
    found = paid.cost_ns / max(time_ns, (paid.calls - paid.by_path) * time_ns + paid.by_path * path_ns)
    return min(max(1.0, found), DEAREST)


def prices_of(function: FunctionState, means: Means) -> Prices:
    """Return the prices with that of a call that is only counted as the function's hits were found to cost.

    A call after a long wait, as of a sleep, finds all caches cold: its hits cost many times the usual.
    """
    paid = function.probe.paid
    if paid.hits < PAID_HITS:
        return means.prices
    usual_ns = price(means.prices, Kind.TIME, function.function) / PROBE_KINDS[Kind.TIME].hits
    found = min(max(1.0, paid.cost_ns / paid.hits / usual_ns), DEAREST)
    if found <= 1.0:
        return means.prices
    return replace(means.prices, untimed_ns=means.prices.untimed_ns * found)


def crowding_of(function: FunctionState) -> float:
    """Return how many hits came for each that a timed call needs; 1: not known."""
    paid = function.probe.paid
    if paid.hits < PAID_HITS:
        return 1.0
    return min(max(1.0, paid.hits / max(1.0, paid.calls) / PROBE_KINDS[Kind.TIME].hits), DEAREST)


def predicted(function: FunctionState, watch: Watch, means: Means, settings: Settings) -> float:
    """Return the mean cost of a watch, ns per second."""
    costs = costs_of(function, watch.kind, means)
    if watch.on_ns == 0:
        return max(cost_rate(costs, watch.timed_share), costs.passing_ns)
    settings = replace(settings, window_calls=watch.window_calls)
    return on_phase(costs, settings).cost_ns * SECOND / watch.period_ns


def same_enough(old: Watch | None, new: Watch | None) -> bool:
    """Tell whether a change of plan is too small to break the window that is running."""
    if old is None or new is None:
        return old is new
    if (old.kind, old.on_ns == 0, old.window_calls, old.window_ns, old.program, old.inside_of) != (
        new.kind,
        new.on_ns == 0,
        new.window_calls,
        new.window_ns,
        new.program,
        new.inside_of,
    ):
        return False
    if new.inside_of and not 0.6 <= new.burst_hits / old.burst_hits <= 1.7:
        return False  # a callee whose bucket runs empty tells nothing of that on-phase
    if not 0.5 <= new.timed_share / old.timed_share <= 2:
        return False
    if new.on_ns == 0:
        return 0.4 * old.hits_per_second <= new.hits_per_second <= 2.5 * old.hits_per_second
    return 0.5 * old.period_ns <= new.period_ns <= 1.8 * old.period_ns
