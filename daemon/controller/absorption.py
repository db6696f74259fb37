"""What a batch tells that needs no decision: costs, descriptions of functions, lifetimes, what sampling found."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from specmine.model.batch import Batch, Started
from specmine.model.globs import matches
from specmine.model.violation import ViolationState

from .allocation import agent_cost
from .allocation.account import with_batch
from .allocation.learning import is_judged
from .candidates import bounded, candidate, statements_of
from .hotness import HALF_LIFE_NS, LEAST_CPU_NS, total_of
from .problems.idle_time import idle_shares, loop_shares
from .problems.sampled_growth import renewed_by_samples
from .problems.unmapped import with_builds
from .sampling.burst import Burst, with_samples
from .sampling.history import with_burst
from .sampling.profile import Profile
from .sampling.rhythm import LATE_NS
from .sampling.surprise import TIMED_NS, judged
from .state import ControllerState, with_lifetimes
from .violations.cpu_shortage import began, with_looks
from .violations.function_violations import FunctionViolations

FADED_SAMPLES = 0.1
"""A function that nobody follows is forgotten once its samples have faded to fewer."""


def absorbed(state: ControllerState, batch: Batch) -> ControllerState:
    """Return the state with what a batch tells of costs, functions and time profiles."""
    agent_ns = batch.spent.agent_ns + state.worker_ns
    passed_ns = batch.now_ns - state.now_ns
    described = {function.key: function for function in batch.functions}
    catalog = {**state.catalog, **described} if described else state.catalog
    state = replace(
        state,
        now_ns=batch.now_ns,
        account=with_batch(state.account, batch, state.settings),
        agent_cost=_agent_cost(state, agent_ns, batch),
        catalog=catalog,
        burst_ns=batch.now_ns if _is_deployed(state, batch) else state.burst_ns,
        lifetimes=with_lifetimes(state.lifetimes, batch.lifetimes),
        mapped=with_builds(state.mapped, batch),
        planned_ns=0 if batch.mapped else state.planned_ns,
        batch=batch,
        started=_renewed(state.started, batch),
        bystander_hits=state.bystander_hits + batch.bystander_hits,
    )
    return _surprised(_faded(_profiled(_supplied(state, batch), batch)), passed_ns)


def _renewed(started: Started | None, batch: Batch) -> Started | None:
    """Return what was found at the start with what has changed since."""
    if started is None:
        return None
    if batch.prices is not None:
        started = replace(started, prices=batch.prices)
    if batch.utc_offset_ns is not None:
        started = replace(started, host={**started.host, "utc_offset_ns": str(batch.utc_offset_ns)})
    return started


def _agent_cost(state: ControllerState, agent_ns: int, batch: Batch) -> agent_cost.AgentCost:
    if state.batch is None:
        return agent_cost.begun(state.began_ns, state.settings, agent_ns, batch.spent.loading_ns)
    return agent_cost.used(
        state.agent_cost,
        agent_ns,
        batch.now_ns,
        state.settings,
        loading_ns=batch.spent.loading_ns,
        answered_ns=state.answered_ns,
    )


def _is_deployed(state: ControllerState, batch: Batch) -> bool:
    """Tell whether a build runs that none did before: its functions are found by sampling, and soon."""
    builds = {each.build_id for each in state.lifetimes.values()}
    return any(each.processes and each.build_id not in builds for each in batch.lifetimes)


def _profiled(state: ControllerState, batch: Batch) -> ControllerState:
    """Add functions that the source described or sampling found, and what sampling found of each."""
    functions, runtime, unfollowed = dict(state.functions), state.runtime, dict(state.unfollowed)
    statements = cache(lambda: statements_of(state.functions, state.orders.statements))
    for described in batch.functions:
        if described.key in functions:
            identity = replace(functions[described.key].identity, function=described)
            functions[described.key] = replace(functions[described.key], identity=identity)
        elif matches(described, state.settings.watch):
            functions[described.key] = candidate(described, state.settings, batch.now_ns, statements)
    for sample in batch.hot_samples:
        sampled = state.catalog.get(sample.function)
        if sampled is not None and state.settings.watch and sampled.key not in functions:
            unfollowed[sampled.key] = unfollowed.get(sampled.key, Profile()).with_sample(sample)
        elif sampled is not None:
            function = functions.get(sampled.key) or candidate(sampled, state.settings, batch.now_ns, statements)
            functions[sampled.key] = replace(function, profile=function.profile.with_sample(sample))
    for sample in batch.runtime:
        runtime = runtime.with_sample(sample)
    return replace(state, functions=bounded(functions), runtime=runtime, unfollowed=unfollowed)


def _supplied(state: ControllerState, batch: Batch) -> ControllerState:
    """Add what keeps programs from CPU time; once that is more than usual some functions are timed at once."""
    if not batch.cpu_shortages:
        return state
    shortages = with_looks(state.shortages, batch.cpu_shortages, state.now_ns)
    planned_ns = 0 if began(shortages, state.shortages) else state.planned_ns
    return replace(state, shortages=shortages, planned_ns=planned_ns)


def _surprised(state: ControllerState, passed_ns: int) -> ControllerState:
    """Add what sampling found to the burst; once it is over, see of which functions there was more than usual."""
    if state.batch is None or state.started is None:
        return state
    burst = with_samples(state.burst, state.batch, state.hertz, passed_ns)
    if not state.idle and state.batch.hot_samples:  # what is looked at first depends on it
        state = _with_idle_time(state)
    if not burst.seconds or state.hertz or state.now_ns - burst.ended_ns < LATE_NS:
        return replace(state, burst=burst)
    disturbed = any(each.violations.standing for each in state.functions.values())
    known = {key for key, each in state.functions.items() if is_judged(each)}
    surprise = judged(
        state.surprise,
        burst,
        state.functions,
        state.now_ns,
        known=known,
        idle=state.idle,
        disturbed=disturbed,
        recovered=recovered(state),
    )
    news = surprise.at(state.now_ns) - state.surprise.at(state.now_ns)
    samples = with_burst(state.samples, burst, state.catalog, disturbed=disturbed)
    planned_ns = 0 if news else state.planned_ns
    state = replace(_with_idle_time(state), burst=Burst(), surprise=surprise, samples=samples, planned_ns=planned_ns)
    return replace(state, functions=renewed_by_samples(state.functions, state)) if disturbed else state


def recovered(state: ControllerState) -> frozenset[str]:
    """Return the functions that surprised, were found slower, and are as usual again."""
    return frozenset(
        key
        for key, until_ns in state.surprise.until_ns.items()
        if key in state.functions and _has_recovered(state.functions[key].violations, until_ns - TIMED_NS)
    )


def _has_recovered(violations: FunctionViolations, since_ns: int) -> bool:
    """Tell whether a violation recovered since then and none is open."""
    ended = (one.closed_ns or 0 for one in violations.closed if one.state is ViolationState.RECOVERED)
    return not violations.standing and max(ended, default=0) > since_ns


def _with_idle_time(state: ControllerState) -> ControllerState:
    idle = idle_shares(state.functions)
    return replace(state, idle=idle, loop_waits=loop_shares(state.functions, idle))


def _faded(state: ControllerState) -> ControllerState:
    if state.now_ns - state.faded_ns < HALF_LIFE_NS:
        return state
    if total_of(state.functions.values(), state.elsewhere).cpu_ns < LEAST_CPU_NS:
        return replace(state, faded_ns=state.now_ns)
    functions = {
        key: replace(function, profile=function.profile.faded(0.5)) for key, function in state.functions.items()
    }
    unfollowed = {key: one.faded(0.5) for key, one in state.unfollowed.items() if one.samples >= FADED_SAMPLES}
    state = replace(state, functions=functions, unfollowed=unfollowed)
    return replace(state, runtime=state.runtime.faded(0.5), faded_ns=state.now_ns)
