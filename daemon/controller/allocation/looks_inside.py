"""Whose calls are looked into: a function and its callees are timed in the same on-phases. Pure.

What callees take is known only of calls during which they were timed too. Where the budget lets functions be timed for
a part of the time, the on-phases of a function and of its callees seldom meet by themselves. So from time to time they
are planned together: for one function at a time, and for a fixed share of the budget.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from specmine.daemon.config.settings import SECOND, Settings
from specmine.daemon.controller.function import FunctionState
from specmine.daemon.controller.hotness import is_idle
from specmine.daemon.controller.phase import FINISHED, State
from specmine.mining.detection.values import LEAST_CALLS
from specmine.mining.inside.call_kinds import is_known
from specmine.model.batch import Watch
from specmine.model.observation import Kind, Observation
from specmine.model.probe_kind import PROBE_KINDS

from .function_request import call_cost, crowding_of, kind_for
from .means import Means, Plan
from .request import LEAST_WINDOW, REACTION_NS, SHORTEST_ON_NS, SPARE_CALLS, price, shortest_period_ns

LOOKING_INSIDE = 1 / 6
"""Share of the budget at most."""
TURN_NS = 180 * SECOND
"""How long a function has its turn, unless enough is known before."""
CALLEES = 4
"""Callees that are timed with it: those that take most time in its calls."""
WINDOWS = 2
"""Newest windows of either kind that tell whose probes were hit inside calls."""
CONTENDERS = 8
"""Functions that take turns: those that come first, of whose callees not enough is known."""
UNEXPLAINED_TURNS = 3
"""Of so many turns all but one go to functions that nothing explains, if there are any."""
LONGEST_NS = 5 * SECOND
"""Length of an on-phase at most."""
LATER = 2.0
"""It ends so much later where calls come less often than they did; else its bucket ends it."""
FEWEST_CALLS = 20
"""Calls in an on-phase without which it is not worth its price."""
AMPLE = 3.0
"""The buckets of callees allow so many times the calls that are expected: an empty one would tell nothing. They are
detached with the function, so the calls are not paid for."""
AMPLE_CALLS = 200
"""So many calls more: rates were counted earlier."""
SPARED_NS = 30 * SECOND
"""On-phases are so far apart with no CPU time of our own left: each brings some windows, at 5 ms each."""
MOST_BACKLOG = 0.5
"""With a greater ``Means.backlog`` none is looked into: others wait for their first levels."""
DEBT_S = 3.0
"""What has begun goes on until the debt is what so many seconds bring: an on-phase may cost as much."""


def with_looks(functions: Iterable[FunctionState], so_far: Plan, means: Means, settings: Settings) -> Plan:
    """Have a function and its callees timed together, if the calls of one are to be looked into now.

    It is finished, or being explained: these on-phases bring call paths as well.
    """
    if means.slow_links or means.cash < -DEBT_S * means.income or means.backlog > MOST_BACKLOG:
        return so_far
    known = {one.key: one for one in functions if one.probe.rate and one.state in (State.EXPLAINING, *FINISHED)}
    callees = _callees(known)
    for function in _in_turn(_contenders(known, callees, so_far, means), means.now_ns):
        beside = [known[each] for each in callees[function.key] if _may_follow(known[each], so_far, means)]
        made = _together(function, beside, means, settings)
        if made is None or len(so_far.watches.keys() | made.keys()) > means.slots:
            continue
        cost_ns = _cost_ns(function, beside, _length_s(function, beside, means, settings), means)
        first_ns = 0.0 if _is_looked_into(function) else cost_ns
        if first_ns > max(0.0, so_far.cash):
            return so_far  # nothing is kept for it: functions without levels come first
        left = so_far.left - cost_ns * SECOND / made[function.key].period_ns
        return replace(so_far, watches={**so_far.watches, **made}, left=left, cash=so_far.cash - first_ns)
    return so_far


def _callees(known: dict[str, FunctionState]) -> dict[str, list[str]]:
    """Return the direct callees of each function, those that take most time in it first.

    Samples find them; where functions are named by the user nothing is sampled, and windows tell whose probes were hit.
    """
    found: dict[str, dict[str, float]] = {}
    finished = {key: one for key, one in known.items() if one.state in FINISHED}
    for key, function in finished.items():
        for caller, time_ns in function.profile.callers:
            if caller in known and caller != key:
                found.setdefault(caller, {})[key] = time_ns
    frames = {one.function.frame: one for one in finished.values()}
    for key, function in known.items():
        hit = {frame for one in _newest(function) for part in one.inside for frame in (*part.timed, *part.partly)}
        for callee in (frames[frame] for frame in sorted(hit) if frame in frames):
            if callee.key != key:  # its time in all of its calls: the order is of those that samples did not find
                seconds = (callee.probe.rate or 0.0) * callee.history.summary.mean_ns / SECOND
                found.setdefault(key, {}).setdefault(callee.key, min(seconds, 1.0))
    return {
        caller: sorted(each, key=lambda callee: (-each[callee], callee))[:CALLEES] for caller, each in found.items()
    }


def _newest(function: FunctionState) -> tuple[Observation, ...]:
    history = function.history
    return (*history.timing[-WINDOWS:], *history.paths[-WINDOWS:])


def _contenders(
    known: dict[str, FunctionState], callees: dict[str, list[str]], so_far: Plan, means: Means
) -> list[tuple[bool, FunctionState]]:
    """Return the functions that come first, and whether nothing explains them: of their callees not enough is known."""
    order = []
    for key, each in callees.items():
        function, watch = known[key], so_far.watches.get(key)
        always_on = watch is not None and watch.on_ns == 0  # so are its callees, or they are called far more often
        if always_on or is_idle(function) or _is_suspected(function, means):
            continue
        order.append((not _may_be_explained(function, each), -function.profile.inclusive_ns, key))
    found: list[tuple[bool, FunctionState]] = []
    for explained, _, key in sorted(order):
        if len(found) < CONTENDERS and not _is_told(known[key], [known[each] for each in callees[key]]):
            found.append((not explained, known[key]))
    return found


def _in_turn(contenders: Sequence[tuple[bool, FunctionState]], now_ns: int) -> Iterable[FunctionState]:
    """Return the functions in the order in which they are tried now; the one whose turn it is goes on."""
    turn = number = now_ns // TURN_NS
    pool = [function for _, function in contenders]
    first = [function for unexplained, function in contenders if unexplained]
    if first and turn % UNEXPLAINED_TURNS:
        pool, number = first, turn - turn // UNEXPLAINED_TURNS - 1  # turns of this kind so far
    elif first:
        number = turn // UNEXPLAINED_TURNS
    pool = sorted(pool, key=lambda one: one.key)
    at = number % len(pool) if pool else 0
    rotated = pool[at:] + pool[:at]
    return sorted(rotated, key=lambda one: not (_is_looked_into(one) and one.probe.watched_since_ns // TURN_NS == turn))


def _is_looked_into(function: FunctionState) -> bool:
    return function.probe.watch is not None and function.probe.watch.looks_inside


def _is_suspected(function: FunctionState, means: Means) -> bool:
    """Tell whether windows of its own are wanted, as often as can be."""
    return bool(function.violations.urgency) or function.key in means.surprising


def _may_be_explained(function: FunctionState, callees: Sequence[str]) -> bool:
    """Tell whether nothing explains a function, and not all of these callees were known if that was tried."""
    tried = function.explanation
    if function.state is State.EXPLAINING:
        return True
    return function.state is State.UNEXPLAINED and tried.result is not None and len(callees) > tried.callees


def _is_told(function: FunctionState, callees: Sequence[FunctionState]) -> bool:
    """Tell whether enough retained windows tell what these callees took in the function's calls."""
    history = function.history
    return is_known((*history.timing, *history.paths), [each.function.frame for each in callees])


def _may_follow(callee: FunctionState, so_far: Plan, means: Means) -> bool:
    """Tell whether on-phases of its own are not needed, and it is not on anyway."""
    watch = so_far.watches.get(callee.key)
    return not _is_suspected(callee, means) and (watch is None or watch.on_ns > 0)


def _together(
    function: FunctionState, callees: Sequence[FunctionState], means: Means, settings: Settings
) -> dict[str, Watch] | None:
    """Return the requests for a function and its callees, None if their on-phases would be too short or too rare."""
    length_s = _length_s(function, callees, means, settings)
    if (function.probe.rate or 0.0) * length_s < FEWEST_CALLS:
        return None
    cost_ns = _cost_ns(function, callees, length_s, means)
    on_ns = max(round(LATER * length_s * SECOND), SHORTEST_ON_NS)
    paid_ns = cost_ns * SECOND / (LOOKING_INSIDE * means.income)
    spared_ns = means.pressure * SPARED_NS
    period_ns = round(max(paid_ns, spared_ns, shortest_period_ns(settings), 1.25 * on_ns))
    # its bucket ends the on-phase in time: the daemon sees that the time is over a third of a second later
    calls = min(SPARE_CALLS * _window_calls(settings), (function.probe.rate or 0.0) * length_s)
    window = Watch(
        function=function.key,
        kind=kind_for(function),
        window_calls=_window_calls(settings),
        window_ns=settings.window_ns,
        minimum_calls=_least_calls(function, settings),
        limit_ns=settings.limit_ns,
        on_ns=on_ns,
        period_ns=period_ns,
        program=function.home(means.running),
        inside_of=function.key,
    )
    made = {function.key: _with_bucket(window, function, calls)}
    for callee in callees:
        # the daemon ends it with the function; its own end is there in case that one is gone
        watch = replace(
            window,
            function=callee.key,
            kind=kind_for(callee),
            window_calls=settings.window_calls,
            minimum_calls=_least_calls(callee, settings),
            on_ns=2 * on_ns,
            program=callee.home(means.running),
        )
        expected = AMPLE * (callee.probe.rate or 0.0) * length_s
        made[callee.key] = _with_bucket(watch, callee, expected + AMPLE_CALLS)
    return made


def _least_calls(function: FunctionState, settings: Settings) -> int:
    """Return from how many calls on those of an on-phase are looked at.

    On-phases are up to half a minute apart. A window of four of them would show a change after two minutes.
    """
    return min(settings.minimum_calls, LEAST_CALLS) if function.state in FINISHED else settings.minimum_calls


def _with_bucket(watch: Watch, function: FunctionState, calls: float) -> Watch:
    burst = int(PROBE_KINDS[watch.kind].hits * crowding_of(function) * calls)
    return replace(watch, burst_hits=burst, hits_per_second=max(1.0, round(burst * SECOND / watch.period_ns, 1)))


def _window_calls(settings: Settings) -> int:
    return round(LEAST_WINDOW * settings.minimum_calls)


def _length_s(function: FunctionState, callees: Sequence[FunctionState], means: Means, settings: Settings) -> float:
    """Return how long an on-phase lasts: until a window of calls is there, or what may be spent on one is."""
    rate = function.probe.rate or 0.0
    wanted = SPARE_CALLS * _window_calls(settings) / max(rate, 1e-9)
    most_ns = min(LOOKING_INSIDE * means.income * settings.limit_ns / SECOND, means.savable)
    a_second = _cost_ns(function, callees, 1.0, means)
    return min(wanted, LONGEST_NS / SECOND, most_ns / max(a_second, 1.0))


def _cost_ns(function: FunctionState, callees: Sequence[FunctionState], length_s: float, means: Means) -> float:
    """Return what an on-phase of a function and its callees costs, ns."""
    cost = 0.0
    for one in (function, *callees):
        call_ns = call_cost(one, means)
        late_ns = REACTION_NS / SECOND * price(means.prices, Kind.COUNT, one.function)
        cost += (one.probe.rate or 0.0) * (length_s * call_ns + late_ns)
    return cost
