"""The pure decision: what happened in, what to do out. No clock, disk, kernel or thread.

``decide`` is the whole interface; recordings replay through it, tests simulate against it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from specmine.model.batch import Batch, Sampling, Started
from specmine.model.globs import matches

from . import explanation, reasons, transitions
from .actions import act
from .allocation import agent_cost
from .allocation.account import BudgetAccount, with_batch
from .allocation.learning import is_judged
from .call_counts import with_activity
from .candidates import admit_asked, admit_named, admit_while_asked, bounded, candidate, climb, descend, statements_of
from .checkpoint import restored
from .events import (
    Acknowledged,
    Action,
    Answered,
    Arrived,
    Asked,
    Assigned,
    Begun,
    Event,
    Mined,
    Publish,
    Reloaded,
    Restored,
    Stated,
    Stopping,
    Surveyed,
)
from .function import FunctionState
from .hotness import HALF_LIFE_NS, LEAST_CPU_NS, total_of
from .phase import FINISHED, State
from .problems.acknowledgement import all_acknowledged
from .problems.causes import with_causes
from .problems.idle_time import idle_shares, loop_shares
from .problems.inheritance import with_successors
from .problems.learned_during import with_learned_during
from .problems.restoration import with_violations
from .problems.sampled_growth import renewed_by_samples
from .problems.unmapped import swept, with_builds
from .sampling.burst import Burst, with_samples
from .sampling.history import with_burst
from .sampling.profile import Profile
from .sampling.rhythm import LATE_NS, hertz_in_search, rhythm
from .sampling.surprise import judged
from .sharing.adoption import waiting, with_statements
from .sharing.orders import told
from .state import ControllerState, with_lifetimes
from .violations.cpu_shortage import began, with_looks
from .violations.host_detection import with_spreads, with_window
from .wait_requests import with_question, with_waits

FADED_SAMPLES = 0.1
"""A function that nobody follows is forgotten once its samples have faded to fewer."""


def decide(  # noqa: PLR0911  one for each kind of event
    state: ControllerState, event: Event
) -> tuple[ControllerState, tuple[Action, ...]]:
    """Return the state after an event, and what is to be done now.

    Parameters
    ----------
    state : ControllerState
        The state before; ``ControllerState()`` before the first event, which is Begun.
    event : Event
        What happened, with its time.

    Returns
    -------
    ControllerState, tuple of Action
        Requests for the source, jobs for the worker, and whether there is news to publish, in this order.
    """
    match event:
        case Begun():
            return _begin(event)
        case Restored():
            return _restore(state, event)
        case Arrived():
            return _arrive(state, event.batch)
        case Mined():
            return _mined(state, event)
        case Reloaded():
            return _reload(state, event)
        case Acknowledged():
            return _acknowledge(state, event)
        case Assigned() | Stated():
            return _ordered(state, event)
        case Asked():
            return act(with_question(state, event.functions, event.now_ns), state.functions)
        case Answered(cpu_ns=cpu_ns):
            return replace(state, answered_ns=cpu_ns), ()
        case Surveyed() | Stopping():
            return _noted(state, event)


def _begin(event: Begun) -> tuple[ControllerState, tuple[Action, ...]]:
    started = event.started
    hertz = hertz_in_search(started.prices, event.settings)
    state = ControllerState(
        settings=event.settings,
        started=started,
        now_ns=started.now_ns,
        account=BudgetAccount(began_ns=started.now_ns, now_ns=started.now_ns, rate=float(event.settings.floor_ns)),
        agent_cost=agent_cost.begun(started.now_ns, event.settings),
        burst_ns=started.now_ns,
        burst_end_ns=started.now_ns + rhythm(0.0, hertz, 0.0).length_ns,
        lifetimes={lifetime.id: lifetime for lifetime in started.lifetimes},
        hertz=hertz,
        planned_ns=started.now_ns,
        published_ns=started.now_ns,
        faded_ns=started.now_ns,
    )
    return state, ((Sampling(hertz=hertz),) if hertz else ())


def _restore(state: ControllerState, event: Restored) -> tuple[ControllerState, tuple[Action, ...]]:
    settings = state.settings
    mining = settings.mining
    offset = state.utc_offset_ns if event.utc_offset_ns is None else event.utc_offset_ns
    functions = restored(event.functions, event.records, event.observations, event.now_ns, mining, offset)
    functions = with_violations(functions, event.violations, {each.key: each for each in event.functions}, settings)
    statements = statements_of(functions, state.orders.statements)
    for key, function in functions.items():
        hinted = matches(function.function, settings.watch)
        functions[key] = replace(
            function,
            identity=replace(function.identity, hinted=hinted),
            provisional=statements.of(function.function) if function.state not in FINISHED else None,
        )
        if matches(function.function, settings.ignore):
            functions[key] = functions[key].moved(State.EXCLUDED, reasons.excluded(), event.now_ns)
    catalog = {function.key: function for function in event.functions}
    state = replace(state, functions=functions, catalog=catalog, now_ns=event.now_ns, detection=event.detection)
    return state, (Publish(why="restored"),)


def _arrive(state: ControllerState, batch: Batch) -> tuple[ControllerState, tuple[Action, ...]]:
    before, now_ns = state.functions, batch.now_ns
    state = _absorbed(state, batch)
    functions = dict(state.functions)
    admit_named(functions, now_ns)
    admit_while_asked(functions, state)
    for refusal in batch.refusals:
        if refusal.function in functions:
            functions[refusal.function] = transitions.refused(functions[refusal.function], refusal, now_ns)
    for activity in batch.activity:
        if activity.function in functions:
            function = functions[activity.function]
            counting = function.state is State.CANDIDATE
            probe = with_activity(function.probe, activity, now_ns, counting=counting)
            functions[activity.function] = replace(function, probe=probe)
    host = state.detection
    for observation in batch.observations:
        if observation.function in functions:
            function = functions[observation.function].observed_in(state.lifetimes.get(observation.lifetime))
            renewed = transitions.observed(
                function,
                observation,
                state.settings,
                utc_offset_ns=state.utc_offset_ns,
                threshold=host.threshold,
                usual=host.usual,
                idle_share=state.idle.get(observation.function, 0.0),
            )
            host = with_window(host, observation, function.violations.detector, renewed.violations.detector)
            functions[observation.function] = renewed
    _let_time_pass(functions, now_ns)
    for waits in batch.waits:
        if waits.function in functions:
            functions[waits.function] = with_waits(functions[waits.function], waits)
    climb(functions, before, state, now_ns)
    descend(functions, before, state)
    if batch.observations or batch.waits:
        host = with_spreads(host, (function.violations.detector for function in functions.values()), now_ns)
        with_successors(functions, state)
        with_learned_during(functions, state.settings, now_ns)
        with_causes(functions, before, state, host.disturbed)
        state = replace(state, surprise=state.surprise.with_windows(each.function for each in batch.observations))
    return act(swept(replace(state, functions=functions, detection=host)), before)


def _let_time_pass(functions: dict[str, FunctionState], now_ns: int) -> None:
    """End first looks that have lasted long enough; try again what was given up for a while."""
    for key, function in functions.items():
        phase = function.phase  # not by properties: this looks at all functions at each turn
        if phase.state is State.CANDIDATE and function.probe.watch is not None:
            functions[key] = transitions.counted(function, now_ns)
        elif phase.state is State.UNSTABLE and now_ns - phase.since_ns >= transitions.PARKED_NS:
            functions[key] = function.moved(State.WAITING, None, now_ns)
        elif phase.again_ns and now_ns >= phase.again_ns:
            functions[key] = transitions.tried_again(function, now_ns)


def _renewed(started: Started | None, batch: Batch) -> Started | None:
    """Return what was found at the start with what has changed since."""
    if started is None:
        return None
    if batch.prices is not None:
        started = replace(started, prices=batch.prices)
    if batch.utc_offset_ns is not None:
        started = replace(started, host={**started.host, "utc_offset_ns": str(batch.utc_offset_ns)})
    return started


def _absorbed(state: ControllerState, batch: Batch) -> ControllerState:
    """Take up what needs no decision: costs, descriptions of functions, time profiles."""
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
        state.surprise, burst, state.functions, state.now_ns, known=known, idle=state.idle, disturbed=disturbed
    )
    news = surprise.at(state.now_ns) - state.surprise.at(state.now_ns)
    samples = with_burst(state.samples, burst, state.catalog, disturbed=disturbed)
    planned_ns = 0 if news else state.planned_ns
    state = replace(_with_idle_time(state), burst=Burst(), surprise=surprise, samples=samples, planned_ns=planned_ns)
    return replace(state, functions=renewed_by_samples(state.functions, state)) if disturbed else state


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


def _mined(state: ControllerState, event: Mined) -> tuple[ControllerState, tuple[Action, ...]]:
    before, functions = state.functions, dict(state.functions)
    for key, function in before.items():
        if function.explanation.job != event.job:
            continue
        if event.result is not None:
            functions[key] = explanation.explained(function, event.result, event.now_ns, state.settings)
        else:
            functions[key] = explanation.failed(function, event.failure, event.now_ns, state.settings)
    climb(functions, before, state, event.now_ns)
    descend(functions, before, state)
    state = replace(state, worked_ns=event.now_ns, worker_ns=state.worker_ns + event.cpu_ns)
    return act(replace(state, now_ns=event.now_ns, functions=functions), before)


def _noted(state: ControllerState, event: Surveyed | Stopping) -> tuple[ControllerState, tuple[Action, ...]]:
    """Take up what changes no decision."""
    if isinstance(event, Stopping):
        return replace(state, now_ns=event.now_ns, stopped=event.why), (Publish(why=event.why),)
    surveyed = replace(state, now_ns=event.now_ns, environment=event.environment, marks=event.marks)
    return surveyed, (Publish(why="surveyed"),)


def _acknowledge(state: ControllerState, event: Acknowledged) -> tuple[ControllerState, tuple[Action, ...]]:
    before = state.functions
    functions = all_acknowledged(before, event.ids, event.by, event.comment, event.now_ns, state.settings)
    return act(replace(state, now_ns=event.now_ns, functions=functions), before)


def _ordered(state: ControllerState, event: Assigned | Stated) -> tuple[ControllerState, tuple[Action, ...]]:
    """Take up what the fleet asks for or states: wishes, so nothing here allows what was not allowed before."""
    before = state.functions
    state = replace(state, now_ns=event.now_ns)
    if isinstance(event, Stated):
        orders = with_statements(state.orders, event.statements)
        functions = {**before, **waiting(before, event.statements)}
    else:
        told_ns = min(event.told_ns, event.now_ns)
        orders = told(state.orders, before, event.duties, event.left, told_ns=told_ns, own=state.settings.own_places)
        functions = dict(before)
    state = replace(state, orders=orders, planned_ns=0)
    admit_asked(functions, state)
    return act(replace(state, functions=functions), before)


def _reload(state: ControllerState, event: Reloaded) -> tuple[ControllerState, tuple[Action, ...]]:
    functions = {}
    for key, function in state.functions.items():
        hinted = matches(function.function, event.settings.watch)
        renewed = replace(function, identity=replace(function.identity, hinted=hinted))
        if matches(function.function, event.settings.ignore):
            renewed = renewed.moved(State.EXCLUDED, reasons.excluded(), event.now_ns)
        elif function.state is State.EXCLUDED and not function.phase.refused:
            renewed = renewed.moved(State.CANDIDATE, None, event.now_ns)
        functions[key] = renewed
    before = state.functions
    state = replace(state, now_ns=event.now_ns, settings=event.settings, functions=functions, planned_ns=0)
    return act(state, before)
