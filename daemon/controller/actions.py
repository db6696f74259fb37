"""From what is known to what is done: requests for the source, jobs for the worker, news, and reasons."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath

from specmine.daemon.config.settings import MS, SECOND, Settings
from specmine.model.batch import FollowWaits, Sampling, Unwatch, Watch
from specmine.model.function import Reason

from . import reasons
from .allocation.account import BudgetAccount, spendable, usual_rate
from .allocation.function_request import same_enough
from .allocation.means import Means, Plan
from .allocation.scheduler import plan
from .call_counts import with_watch
from .events import Action, Mine, Publish
from .explanation import job_for
from .function import FunctionState, changed
from .history import enough
from .hotness import (
    FIRST_LOOK_NS,
    WORTH_SHARE,
    Total,
    is_doubted,
    is_worth_it,
    share,
    total_of,
    waits_for_work,
)
from .phase import FINISHED, State
from .problems.causes import is_to_be_explained
from .problems.short_of_cpu import first_to_show
from .problems.unmapped import away
from .sampling.rhythm import hertz_in_bursts, hertz_in_search, is_searching, rhythm, waits_in_bursts
from .sharing.orders import fitted, left_out, shared
from .state import ControllerState
from .wait_requests import followed

PLAN_EVERY_NS, PLAN_IN_DEBT_NS, PLAN_UNDER_PRESSURE_NS = SECOND, 500 * MS, 10 * SECOND
"""How often plans are made if no function moved: usually, soon after an overrun (the time in which it is paid back, if
that is longer), and with no CPU time of our own."""
PLAN_MOVED_NS = 2 * SECOND
"""How long what moved waits for the next plan with no CPU time of our own, unless something is newly suspected."""
PLAN_CHECKS_NS = 3 * SECOND
"""How often plans are made for checks that are due: with no CPU time of our own else 10 to 40 s pass without a window,
and then several come at once."""
FOLLOWED_PART = 0.25
"""Share of the overhead budget that looks at where calls wait may take."""
REASON_EVERY_NS = 5 * SECOND
"""How often the reasons of functions that nothing is done about are renewed."""
WORKER_WARM_NS = 25 * SECOND
"""So soon after a job the worker still lives; to start it costs a CPU second."""
WORKER_WAIT_NS = 120 * SECOND
"""Under pressure jobs gather for up to so long before the worker is started for them."""
PUBLISH_EVERY_NS = SECOND
_EXPLAINABLE = frozenset({State.EXPLAINING, *FINISHED})


def act(state: ControllerState, before: Mapping[str, FunctionState]) -> tuple[ControllerState, tuple[Action, ...]]:
    """Turn what is known now into requests, jobs and news."""
    news = changed(state.functions, before)
    pairs = [(before.get(key), state.functions[key]) for key in news]
    moved = any(_has_moved(old, new) for old, new in pairs)
    suspected = any(_is_newly_suspected(old, new) for old, new in pairs)
    # unwatched since the last plan: the next one would find nothing to change, and the probes would stay
    actions: list[Action] = [Unwatch(function=new.key) for old, new in pairs if _is_unwatched(old, new)]
    state = _sample(state, actions)
    made: Plan | None = None
    state = _with_due_plan(state, pairs, moved=moved)
    if suspected or _is_plan_due(state):
        state, made = _plan(state, actions)
        news = sorted(state.functions)
    state = _with_reasons(_follow(_mine(state, news, actions), actions), before, news, made)
    moved = moved or suspected or any(_is_turned(old, new) for old, new in pairs)
    if moved or state.now_ns - state.published_ns >= PUBLISH_EVERY_NS:
        actions.append(Publish(why="moved" if moved else ""))
        state = replace(state, published_ns=state.now_ns)
    return state, tuple(actions)


def _has_moved(old: FunctionState | None, new: FunctionState) -> bool:
    return new.state is not State.CANDIDATE and (old is None or old.state is not new.state)


def _is_newly_suspected(old: FunctionState | None, new: FunctionState) -> bool:
    if waits_for_work(new):
        return False
    return new.violations.urgency > 0 and (old is None or not old.violations.urgency)


def _is_turned(old: FunctionState | None, new: FunctionState) -> bool:
    """Tell whether a violation opened or closed."""
    before = () if old is None else old.violations.open
    return old is not None and {one.id for one in before} != {one.id for one in new.violations.open}


def _is_unwatched(old: FunctionState | None, new: FunctionState) -> bool:
    return old is not None and old.probe.watch is not None and new.probe.watch is None


def _is_checked(old: FunctionState | None, new: FunctionState) -> bool:
    if old is None or new.probe.watch is None:
        return False
    return old.verification.checked_ns != new.verification.checked_ns


def _sample(state: ControllerState, actions: list[Action]) -> ControllerState:
    if state.started is None:
        return state
    now_ns, burst_ns, end_ns = state.now_ns, state.burst_ns, state.burst_end_ns
    prices, settings = state.started.prices, state.settings
    hertz = hertz_in_bursts(prices, settings, state.account.cpu_rate)
    pressure = state.agent_cost.pressure
    bursts = rhythm(state.account.cpu_rate, hertz, 0.0 if pressure and is_to_be_explained(state) else pressure)
    if now_ns >= burst_ns + bursts.apart_ns:
        burst_ns = now_ns
    if burst_ns == now_ns:
        end_ns = now_ns + bursts.length_ns
    found = any(function.state is not State.CANDIDATE for function in state.functions.values())
    if is_searching(now_ns, state.began_ns if found else now_ns, settings):
        hertz = hertz_in_search(prices, settings)
    elif now_ns >= end_ns:
        hertz = 0
    elif state.hertz:
        hertz = state.hertz  # one rate in a whole burst
    if hertz != state.hertz:
        waits = waits_in_bursts(prices, state.account.rate)
        actions.append(Sampling(hertz=hertz, waits=waits) if hertz else Sampling(hertz=0))
    return replace(state, hertz=hertz, burst_ns=burst_ns, burst_end_ns=end_ns)


def _with_due_plan(
    state: ControllerState, pairs: Sequence[tuple[FunctionState | None, FunctionState]], *, moved: bool
) -> ControllerState:
    """Note by when functions that moved, or were checked, need a plan."""
    later_ns = round(state.agent_cost.pressure * _stretch(state) * PLAN_MOVED_NS)
    if moved:
        due_ns = state.planned_ns + later_ns
    elif any(_is_checked(old, new) for old, new in pairs):
        due_ns = state.planned_ns + PLAN_EVERY_NS + later_ns
    else:
        return state
    return replace(state, plan_by_ns=min(state.plan_by_ns or due_ns, due_ns))


def _stretch(state: ControllerState) -> float:
    """Return how much further apart plans are: not while a change is suspected."""
    stretch = state.agent_cost.stretch
    return 1.0 if stretch > 1 and is_doubted(state.functions.values()) else stretch


def _is_plan_due(state: ControllerState) -> bool:
    if state.plan_by_ns and state.now_ns >= state.plan_by_ns:
        return True
    since_ns = state.now_ns - state.planned_ns
    if 0 < state.check_ns <= state.now_ns and since_ns >= PLAN_CHECKS_NS:
        return True
    pressure = state.agent_cost.pressure
    every_ns = round(_stretch(state) * (PLAN_EVERY_NS + pressure * (PLAN_UNDER_PRESSURE_NS - PLAN_EVERY_NS)))
    return since_ns >= min(every_ns, max(PLAN_IN_DEBT_NS, _debt_lasts_ns(state.account)))


def _debt_lasts_ns(account: BudgetAccount) -> float:
    """Return how long a debt takes to be paid back; infinite without one."""
    return -account.balance_ns * SECOND / max(account.rate, 1.0) if account.balance_ns < 0 else math.inf


def _without(functions: Mapping[str, FunctionState], left: Collection[str]) -> Mapping[str, FunctionState]:
    return {key: each for key, each in functions.items() if key not in left} if left else functions


def _means_of(state: ControllerState, left: Collection[str] = ()) -> Means:
    """Return what there is to allocate now: the budget less what sampling takes of it."""
    if state.started is None:
        raise ValueError("nothing can be planned before the source has started")
    sampling = state.hertz * state.started.prices.sample_ns * state.account.cpu_rate / SECOND
    return Means(
        budget=max(spendable(state.account) - sampling, 0.01 * state.account.rate),
        income=state.account.rate,
        usual_income=usual_rate(state.account, state.settings),
        cash=state.account.balance_ns,
        cpu_rate=state.account.cpu_rate,
        surprising=state.surprise.at(state.now_ns) | first_to_show(state.shortages, state.functions, state.now_ns),
        loop_waits=state.loop_waits,
        prices=state.started.prices,
        slow_links=state.started.host.get("link") == "perf",
        pressure=state.agent_cost.pressure,
        stretch=state.agent_cost.stretch,
        running=state.running,
        runtime=state.elsewhere_and(left),
        now_ns=state.now_ns,
    )


def _plan(state: ControllerState, actions: list[Action]) -> tuple[ControllerState, Plan | None]:
    """Plan and request what differs from what is on; None while the first sampling goes on."""
    searching = state.now_ns - state.began_ns < FIRST_LOOK_NS and not state.settings.watch
    if searching and all(function.state is State.CANDIDATE for function in state.functions.values()):
        return state, None
    pressure = state.agent_cost.pressure
    left = left_out(state.orders, state.functions, state.settings, state.now_ns, state.began_ns, pressure=pressure)
    settings = shared(state.orders, state.settings, state.now_ns, pressure=pressure)
    unmapped = away(state)
    made = plan(_without(_named(state), left | unmapped), _means_of(state, left | unmapped), settings)
    watches = fitted(state.orders, made.watches, state.functions, state.settings, state.now_ns)
    waiting = {**made.waiting, **dict.fromkeys(left, reasons.shared()), **dict.fromkeys(unmapped, reasons.unmapped())}
    made = replace(made, watches=watches, waiting=waiting)
    functions = dict(state.functions)
    for key in sorted(key for key, each in functions.items() if key in watches or _may_move(each)):
        functions[key] = _watched(functions[key], watches.get(key), state.now_ns, actions)
    return replace(state, functions=functions, planned_ns=state.now_ns, plan_by_ns=0, check_ns=made.check_ns), made


def _named(state: ControllerState) -> Mapping[str, FunctionState]:
    """Return the functions that may be measured: where the user named some, those, and what is violated already."""
    if not state.settings.watch:
        return state.functions
    return {key: each for key, each in state.functions.items() if not _is_unnamed(each, state.settings)}


def _is_unnamed(function: FunctionState, settings: Settings) -> bool:
    return bool(settings.watch) and not function.identity.hinted and not function.violations.open


def _may_move(function: FunctionState) -> bool:
    """Tell whether a plan that leaves a function out may change it; most are candidates without probes."""
    return function.probe.watch is not None or function.phase.state is not State.CANDIDATE


def _watched(function: FunctionState, watch: Watch | None, now_ns: int, actions: list[Action]) -> FunctionState:
    """Request a watch of a function if it differs from the present one, and move the function on accordingly."""
    if not same_enough(function.probe.watch, watch):
        actions.append(watch if watch is not None else Unwatch(function=function.key))
        function = replace(function, probe=with_watch(function.probe, watch, now_ns))
    if function.state is State.WAITING and watch is not None:
        return function.moved(State.TIMING, None, now_ns)
    if function.state is State.TIMING and watch is None:
        return function.moved(State.WAITING, None, now_ns)
    return function


def _mine(state: ControllerState, keys: Sequence[str], actions: list[Action]) -> ControllerState:
    """Give the worker what is ready for it among these functions."""
    idle_ns = state.now_ns - state.worked_ns
    if WORKER_WARM_NS <= idle_ns < state.agent_cost.pressure * WORKER_WAIT_NS:
        return state
    modules: tuple[str, ...] | None = None
    functions, next_job = dict(state.functions), state.next_job
    for key in keys:
        function = functions[key]
        if function.state not in _EXPLAINABLE or not function.history.paths or function.explanation.job is not None:
            continue
        if modules is None:
            modules = tuple(sorted({PurePath(lifetime.executable).name for lifetime in state.lifetimes.values()}))
        job = job_for(function, state.settings, modules, state.now_ns)
        if job is not None:
            actions.append(Mine(job=next_job, inputs=job))
            functions[key] = replace(function, explanation=replace(function.explanation, job=next_job))
            next_job += 1
    if next_job == state.next_job:
        return state
    return replace(state, functions=functions, next_job=next_job, worked_ns=state.now_ns)


def _follow(state: ControllerState, actions: list[Action]) -> ControllerState:
    """Request that waits are followed, if of other functions than before."""
    wanted = followed(state)
    if wanted == state.followed:
        return state
    actions.append(FollowWaits(functions=wanted, cost_ns=FOLLOWED_PART * state.account.rate if wanted else 0.0))
    return replace(state, followed=wanted)


def _with_reasons(
    state: ControllerState, before: Mapping[str, FunctionState], keys: Sequence[str], made: Plan | None
) -> ControllerState:
    """Renew the reasons of functions that are not finished: of all after a plan, else of those that were observed."""
    functions = dict(state.functions)
    total = total_of(functions.values(), state.elsewhere) if made else None
    due = made is not None and state.now_ns - state.reasoned_ns >= REASON_EVERY_NS
    candidate = State.CANDIDATE
    for key in keys:
        old, function = before.get(key), functions[key]
        if function.phase.state is candidate:
            if function is old and function.phase.reason is not None and not due:
                continue  # as most are
            watch = function.probe.watch
            if total and (due or function.reason is None or old is None or watch is not old.probe.watch):
                reason = made.waiting.get(key) if made is not None else None
                if _is_unnamed(function, state.settings):
                    reason = reasons.unnamed()
                reason = reason or _why_candidate(function, total)
                functions[key] = function.moved(function.state, reason, state.now_ns)
        elif (due or not _goes_on_waiting(old, function)) and (made or old is None or _is_observed(old, function)):
            reason = _why_learning(function, made, state.settings)
            functions[key] = function.moved(function.state, reason, state.now_ns)
    return replace(state, functions=functions, reasoned_ns=state.now_ns if due else state.reasoned_ns)


def _goes_on_waiting(old: FunctionState | None, new: FunctionState) -> bool:
    return old is not None and old.state is new.state is State.WAITING and new.reason is not None


def _is_observed(old: FunctionState, new: FunctionState) -> bool:
    return old.history is not new.history or old.explanation is not new.explanation or old.state is not new.state


def _why_candidate(function: FunctionState, total: Total) -> Reason:
    if function.probe.watch is not None:
        return reasons.counting()
    part = share(function, total)
    return reasons.queued(part) if is_worth_it(function, total) else reasons.cold(part, WORTH_SHARE)


def _why_learning(function: FunctionState, made: Plan | None, settings: Settings) -> Reason | None:
    """Return what a function that is being learned still needs; the reason of any other stays."""
    mining, rate = settings.mining, function.probe.rate
    unwatched = function.probe.watch is None and function.explanation.job is None
    if made is not None and (function.state is State.WAITING or (function.state is State.EXPLAINING and unwatched)):
        return made.waiting.get(function.key, function.reason)
    if function.state is State.TIMING:
        chain = function.inference.chain
        number = min(chain.chain, mining.chain_observations) if chain else 0
        return reasons.learning(number, mining.chain_observations, "agreeing observations", rate, settings)
    if function.state is not State.EXPLAINING:
        return function.reason
    if function.explanation.job is not None:
        return reasons.mining()
    number = enough(function.history.paths, mining.minimum_calls)
    return reasons.learning(number, mining.recent, "observations with call paths", rate, settings)
