"""The pure decision: what happened in, what to do out. No clock, disk, kernel or thread.

``decide`` is the whole interface; recordings replay through it, tests simulate against it.
"""

from __future__ import annotations

from dataclasses import replace

from specmine.model.batch import Sampling
from specmine.model.globs import matches

from . import explanation, reasons
from .actions import act
from .allocation import agent_cost
from .allocation.account import BudgetAccount
from .arrival import arrived
from .candidates import admit_asked, climb, descend, statements_of
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
from .function import changed
from .phase import FINISHED, State
from .problems.acknowledgement import all_acknowledged
from .problems.restoration import with_violations
from .sampling.rhythm import hertz_in_search, rhythm
from .sharing.adoption import waiting, with_statements
from .sharing.orders import told
from .state import ControllerState
from .wait_requests import with_question


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
            return arrived(state, event.batch)
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


def _mined(state: ControllerState, event: Mined) -> tuple[ControllerState, tuple[Action, ...]]:
    before, functions = state.functions, dict(state.functions)
    for key, function in before.items():
        if function.explanation.job != event.job:
            continue
        if event.result is not None:
            functions[key] = explanation.explained(function, event.result, event.now_ns, state.settings)
        else:
            functions[key] = explanation.failed(function, event.failure, event.now_ns, state.settings)
    news = changed(functions, before)
    climb(functions, news, before, state, event.now_ns)
    descend(functions, news, before, state)
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
