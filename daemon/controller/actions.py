"""From what is known to what is done: requests for the source, jobs for the worker, news."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath

from specmine.daemon.config.settings import MS, SECOND
from specmine.model.batch import Sampling, Unwatch, Watch
from specmine.model.function import Reason

from . import reasons, transitions
from .budget import spendable
from .call_counts import with_watch
from .events import Action, Mine, Publish
from .function import Knowledge, changed
from .hotness import (
    FIRST_LOOK_NS,
    WORTH_SHARE,
    Total,
    is_worth_it,
    next_burst_ns,
    sampling_hertz,
    share,
    total_of,
)
from .phase import FINISHED, State
from .scheduler import Means, Plan, plan, same_enough
from .state import ControllerState

PLAN_EVERY_NS, PLAN_IN_DEBT_NS, PLAN_UNDER_PRESSURE_NS = SECOND, 250 * MS, 10 * SECOND
"""How often plans are made if nothing moved: usually, with an overrun to pay back, with no CPU time of our own."""
EXPLAIN_EVERY_NS = 5 * SECOND
"""How often the reasons of functions that nothing is done about are renewed."""
WORKER_WARM_NS = 25 * SECOND
"""So soon after a job the worker still lives; to start it costs a CPU second."""
WORKER_WAIT_NS = 120 * SECOND
"""Under pressure jobs gather for up to so long before the worker is started for them."""
PUBLISH_EVERY_NS = SECOND
_EXPLAINABLE = frozenset({State.EXPLAINING, *FINISHED})


def act(state: ControllerState, before: Mapping[str, Knowledge]) -> tuple[ControllerState, tuple[Action, ...]]:
    """Turn what is known now into requests, jobs and news."""
    news = changed(state.known, before)
    moved = any(
        key not in before or before[key].state is not state.known[key].state
        for key in news
        if state.known[key].state is not State.CANDIDATE
    )
    checked = any(
        key in before and before[key].checked_ns != state.known[key].checked_ns and state.known[key].watch is not None
        for key in news
    )
    # given up since the last plan: the next one would find nothing to change, and the probes would stay
    actions: list[Action] = [
        Unwatch(function=key)
        for key in news
        if key in before and before[key].watch is not None and state.known[key].watch is None
    ]
    state = _sample(state, actions)
    every_ns = PLAN_EVERY_NS if checked else _plan_every_ns(state)
    if moved or state.now_ns - state.planned_ns >= every_ns:
        state = _plan(state, actions)
        news = sorted(state.known)
    state = _mine(state, news, actions)
    if moved or state.now_ns - state.published_ns >= PUBLISH_EVERY_NS:
        actions.append(Publish(why="moved" if moved else ""))
        state = replace(state, published_ns=state.now_ns)
    return state, tuple(actions)


def _sample(state: ControllerState, actions: list[Action]) -> ControllerState:
    if state.started is None:
        return state
    now_ns, burst_ns = state.now_ns, state.burst_ns
    if now_ns >= next_burst_ns(burst_ns, state.agent_cost.pressure):
        burst_ns = now_ns
    found = any(each.state is not State.CANDIDATE for each in state.known.values())
    looking_ns = state.began_ns if found else now_ns
    hertz = sampling_hertz(now_ns, looking_ns, burst_ns, state.started.prices, state.settings)
    if hertz != state.hertz:
        actions.append(Sampling(hertz=hertz))
    return replace(state, hertz=hertz, burst_ns=burst_ns)


def _plan_every_ns(state: ControllerState) -> int:
    if state.purse.balance_ns < 0:
        return PLAN_IN_DEBT_NS
    return round(PLAN_EVERY_NS + state.agent_cost.pressure * (PLAN_UNDER_PRESSURE_NS - PLAN_EVERY_NS))


def _means_of(state: ControllerState) -> Means:
    """Return what there is to allocate now: the budget less what sampling takes of it."""
    if state.started is None:
        raise ValueError("nothing can be planned before the source has started")
    sampling = state.hertz * state.started.prices.sample_ns * state.purse.cpu_rate / SECOND
    return Means(
        budget=max(spendable(state.purse) - sampling, 0.01 * state.purse.rate),
        income=state.purse.rate,
        cash=state.purse.balance_ns,
        prices=state.started.prices,
        slow_links=state.started.host.get("link") == "perf",
        pressure=state.agent_cost.pressure,
        running=state.running,
        runtime=state.runtime,
        now_ns=state.now_ns,
    )


def _plan(state: ControllerState, actions: list[Action]) -> ControllerState:
    looking = state.now_ns - state.began_ns < FIRST_LOOK_NS and not state.settings.watch
    if looking and all(each.state is State.CANDIDATE for each in state.known.values()):
        return state
    made = plan(state.known, _means_of(state), state.settings)
    total = total_of(state.known.values(), state.runtime)
    due = state.now_ns - state.reasoned_ns >= EXPLAIN_EVERY_NS
    known = dict(state.known)
    for key in sorted(known):
        each = known[key]
        if due or each.reason is None or each.state is not State.CANDIDATE or each.watch is not made.watches.get(key):
            known[key] = _carry_out(each, made, total, state, actions)
    reasoned_ns = state.now_ns if due else state.reasoned_ns
    return replace(state, known=known, planned_ns=state.now_ns, reasoned_ns=reasoned_ns)


def _carry_out(each: Knowledge, made: Plan, total: Total, state: ControllerState, actions: list[Action]) -> Knowledge:
    key, now_ns = each.function.key, state.now_ns
    new = made.watches.get(key)
    if not same_enough(each.watch, new):
        actions.append(new if new is not None else Unwatch(function=key))
        each = with_watch(each, new, now_ns)
    if each.state is State.CANDIDATE:
        return each.moved(each.state, _why_candidate(each, new, total), now_ns)
    if each.state is State.WAITING and new is not None:
        return transitions.described(each.moved(State.TIMING, None, now_ns), state.settings)
    if each.state is State.TIMING and new is None:
        return each.moved(State.WAITING, made.waiting.get(key, each.reason), now_ns)
    if each.state is State.WAITING or (each.state is State.EXPLAINING and new is None and each.job is None):
        return each.moved(each.state, made.waiting.get(key, each.reason), now_ns)
    return transitions.described(each, state.settings)


def _why_candidate(each: Knowledge, watch: Watch | None, total: Total) -> Reason:
    if watch is not None:
        return reasons.counting()
    part = share(each, total)
    return reasons.queued(part) if is_worth_it(each, total) else reasons.cold(part, WORTH_SHARE)


def _mine(state: ControllerState, keys: Sequence[str], actions: list[Action]) -> ControllerState:
    """Give the worker what is ready for it among these functions."""
    idle_ns = state.now_ns - state.worked_ns
    if WORKER_WARM_NS <= idle_ns < state.agent_cost.pressure * WORKER_WAIT_NS:
        return state
    modules: tuple[str, ...] | None = None
    known, next_job = dict(state.known), state.next_job
    for key in keys:
        each = known[key]
        if each.job is not None or not each.paths or each.state not in _EXPLAINABLE:
            continue
        if modules is None:
            modules = tuple(sorted({PurePath(life.executable).name for life in state.lifetimes.values()}))
        job = transitions.job_for(each, state.settings, modules, state.now_ns)
        if job is not None:
            actions.append(Mine(job=next_job, inputs=job))
            known[key] = transitions.described(replace(each, job=next_job), state.settings)
            next_job += 1
    if next_job == state.next_job:
        return state
    return replace(state, known=known, next_job=next_job, worked_ns=state.now_ns)
