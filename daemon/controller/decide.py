"""The pure decision: what happened in, what to do out. No clock, disk, kernel or thread.

``decide`` is the whole interface; recordings replay through it, tests simulate against it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from specmine.model.batch import Batch, Sampling
from specmine.model.globs import matches

from . import agent_cost, reasons, transitions
from .actions import act
from .budget import Purse, filled
from .call_counts import with_activity
from .candidates import admit_named, bounded, climb, estate_of, fresh
from .checkpoint import restored
from .events import Action, Arrived, Begun, Event, Mined, Publish, Reloaded, Restored, Stopping, Surveyed
from .hotness import HALF_LIFE_NS, sampling_hertz
from .phase import FINISHED, State
from .state import ControllerState


def decide(state: ControllerState, event: Event) -> tuple[ControllerState, tuple[Action, ...]]:
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
        case Surveyed() | Stopping():
            return _told(state, event)


def _begin(event: Begun) -> tuple[ControllerState, tuple[Action, ...]]:
    started = event.started
    hertz = sampling_hertz(started.now_ns, started.now_ns, started.now_ns, started.prices, event.settings)
    state = ControllerState(
        settings=event.settings,
        started=started,
        now_ns=started.now_ns,
        purse=Purse(began_ns=started.now_ns, now_ns=started.now_ns, rate=float(event.settings.floor_ns)),
        agent_cost=agent_cost.begun(started.now_ns, event.settings),
        burst_ns=started.now_ns,
        lifetimes={each.id: each for each in started.lifetimes},
        hertz=hertz,
        planned_ns=started.now_ns,
        published_ns=started.now_ns,
        faded_ns=started.now_ns,
    )
    return state, ((Sampling(hertz=hertz),) if hertz else ())


def _restore(state: ControllerState, event: Restored) -> tuple[ControllerState, tuple[Action, ...]]:
    settings = state.settings
    known = restored(event.functions, event.records, event.observations, event.now_ns, settings.mining)
    estate = estate_of(known)
    for key, each in known.items():
        hinted = matches(each.function, settings.watch)
        left = estate.of(each.function) if each.state not in FINISHED else None
        known[key] = replace(each, hinted=hinted, inherited=left)
        if matches(each.function, settings.ignore):
            known[key] = known[key].moved(State.EXCLUDED, reasons.excluded(), event.now_ns)
    functions = {each.key: each for each in event.functions}
    state = replace(state, known=known, functions=functions, now_ns=event.now_ns)
    return state, (Publish(why="restored"),)


def _arrive(state: ControllerState, batch: Batch) -> tuple[ControllerState, tuple[Action, ...]]:
    before = state.known
    state = _absorbed(state, batch)
    known = dict(state.known)
    admit_named(known, batch.now_ns)
    for refusal in batch.refusals:
        if refusal.function in known:
            known[refusal.function] = transitions.refused(known[refusal.function], refusal, batch.now_ns)
    for activity in batch.activity:
        if activity.function in known:
            known[activity.function] = with_activity(known[activity.function], activity, batch.now_ns)
    for seen in batch.observations:
        if seen.function in known:
            known[seen.function] = transitions.observed(known[seen.function], seen, state.settings)
    for key, each in known.items():
        if each.watch is not None and each.state is State.CANDIDATE:
            known[key] = transitions.counted(each, batch.now_ns)
        elif each.state is State.UNSTABLE and batch.now_ns - each.since_ns >= transitions.PARKED_NS:
            known[key] = each.moved(State.WAITING, None, batch.now_ns)
    climb(known, before, state, batch.now_ns)
    return act(replace(state, known=known), before)


def _absorbed(state: ControllerState, batch: Batch) -> ControllerState:
    """Take in what needs no decision: money, descriptions, where time went."""
    functions = state.functions
    if batch.functions:
        functions = {**functions, **{each.key: each for each in batch.functions}}
    known = dict(state.known)
    estate = cache(lambda: estate_of(state.known))
    for function in batch.functions:
        if function.key in known:
            known[function.key] = replace(known[function.key], function=function)
        elif matches(function, state.settings.watch):
            known[function.key] = fresh(function, state.settings, batch.now_ns, estate)
    for sample in batch.hot_samples:
        found = functions.get(sample.function)
        if found is not None and not state.settings.watch:
            each = known.get(found.key) or fresh(found, state.settings, batch.now_ns, estate)
            known[found.key] = replace(each, where=each.where.seen(sample))
    runtime, faded_ns = state.runtime, state.faded_ns
    for sample in batch.runtime:
        runtime = runtime.seen(sample)
    if batch.now_ns - faded_ns >= HALF_LIFE_NS:
        faded_ns = batch.now_ns
        known = {key: replace(each, where=each.where.faded(0.5)) for key, each in known.items()}
        runtime = runtime.faded(0.5)
    return replace(
        state,
        now_ns=batch.now_ns,
        purse=filled(state.purse, batch, state.settings),
        agent_cost=agent_cost.used(
            state.agent_cost, batch.spent.agent_ns + state.worker_ns, batch.now_ns, state.settings
        ),
        functions=functions,
        known=bounded(known),
        runtime=runtime,
        lifetimes={**state.lifetimes, **{each.id: each for each in batch.lifetimes}},
        batch=batch,
        started=replace(state.started, prices=batch.prices) if state.started and batch.prices else state.started,
        bystander_hits=state.bystander_hits + batch.bystander_hits,
        faded_ns=faded_ns,
    )


def _mined(state: ControllerState, event: Mined) -> tuple[ControllerState, tuple[Action, ...]]:
    before, known = state.known, dict(state.known)
    for key, each in state.known.items():
        if each.job != event.job:
            continue
        if event.result is not None:
            known[key] = transitions.explained(each, event.result, event.now_ns, state.settings)
        else:
            known[key] = transitions.failed(each, event.failure, event.now_ns, state.settings)
    climb(known, before, state, event.now_ns)
    state = replace(state, worked_ns=event.now_ns, worker_ns=state.worker_ns + event.cpu_ns)
    return act(replace(state, now_ns=event.now_ns, known=known), before)


def _told(state: ControllerState, event: Surveyed | Stopping) -> tuple[ControllerState, tuple[Action, ...]]:
    """Take up what changes no decision."""
    if isinstance(event, Stopping):
        return replace(state, now_ns=event.now_ns, stopped=event.why), (Publish(why=event.why),)
    surveyed = replace(state, now_ns=event.now_ns, environment=event.environment, marks=event.marks)
    return surveyed, (Publish(why="surveyed"),)


def _reload(state: ControllerState, event: Reloaded) -> tuple[ControllerState, tuple[Action, ...]]:
    known = {}
    for key, each in state.known.items():
        ignored = matches(each.function, event.settings.ignore)
        hinted = matches(each.function, event.settings.watch)
        changed = replace(each, hinted=hinted)
        if ignored:
            changed = changed.moved(State.EXCLUDED, reasons.excluded(), event.now_ns)
        elif each.state is State.EXCLUDED and not each.refused:
            changed = changed.moved(State.CANDIDATE, None, event.now_ns)
        known[key] = changed
    before = state.known
    return act(replace(state, now_ns=event.now_ns, settings=event.settings, known=known, planned_ns=0), before)
