"""The pure decision: what happened in, what to do out. No clock, disk, kernel or thread.

``decide`` is the whole interface; recordings replay through it, tests simulate against it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import PurePath
from typing import Any

from specmine.mining.observation import Function, Reason
from specmine.probes.batch import Activity, Batch, Lifetime, Sampling, Started, Unwatch, Watch

from . import beside, flow, reasons
from .allocation import Means, Plan, plan, same_enough
from .beside import Beside
from .budget import Purse, filled, spendable
from .events import Action, Arrived, Begun, Event, Mark, Mine, Mined, Publish, Reloaded, Restored, Stopping, Surveyed
from .finding import (
    FIRST_LOOK_NS,
    HALF_LIFE_NS,
    WORTH_SHARE,
    Total,
    is_worth_it,
    next_burst_ns,
    sampling_hertz,
    share,
    total_of,
)
from .inheriting import Estate
from .knowledge import FINISHED, Knowledge, State, Where, estate_of, with_activity, with_watch
from .names import matches
from .resume import restored
from .settings import MS, SECOND, Settings

PLAN_EVERY_NS, PLAN_IN_DEBT_NS, PLAN_UNDER_PRESSURE_NS = SECOND, 250 * MS, 10 * SECOND
"""How often plans are made if nothing moved: usually, with an overrun to pay back, with no CPU time of our own."""
EXPLAIN_EVERY_NS = 5 * SECOND
"""How often the reasons of functions that nothing is done about are renewed."""
WORKER_WARM_NS = 25 * SECOND
"""So soon after a job the worker still lives; to start it costs a CPU second."""
WORKER_WAIT_NS = 120 * SECOND
"""Under pressure jobs gather for up to so long before the worker is started for them."""
PUBLISH_EVERY_NS = SECOND
SHORTEST_LOOK_NS = 20 * MS
LIMITED_RATE = 10_000.0
"""Calls a second supposed of a function that emptied its bucket in less time than that."""
ADMITTED_AT_ONCE = 4
"""So many functions named by the user are timed before their calls were counted."""
_EXPLAINABLE = frozenset({State.EXPLAINING, *FINISHED})
MOST_KNOWN = 5000
"""Functions remembered; the coldest candidates are forgotten first."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ControllerState:
    """Everything the daemon knows; replaced at each event, never changed."""

    settings: Settings = field(default_factory=Settings)
    started: Started | None = None
    now_ns: int = 0
    purse: Purse = field(default_factory=Purse)
    beside: Beside = field(default_factory=Beside)
    functions: Mapping[str, Function] = field(default_factory=dict)
    """All that the source described, callers included."""
    known: Mapping[str, Knowledge] = field(default_factory=dict)
    runtime: Where = field(default_factory=Where)
    """What sampling said about code made at run time, which no file holds."""
    lifetimes: Mapping[str, Lifetime] = field(default_factory=dict)
    batch: Batch | None = None
    """The last one, for its running totals."""
    bystander_hits: int = 0
    hertz: int = 0
    """Present rate of sampling."""
    burst_ns: int = 0
    """Start of the last burst of sampling."""
    next_job: int = 1
    worker_ns: int = 0
    """CPU time that the worker's jobs took."""
    worked_ns: int = 0
    """When the worker was last given a job or had finished one."""
    planned_ns: int = 0
    reasoned_ns: int = 0
    published_ns: int = 0
    faded_ns: int = 0
    environment: Mapping[str, Any] = field(default_factory=dict)
    """What is known of the host: a ``specmine.environment/1``."""
    marks: tuple[Mark, ...] = ()
    """When experiments ran on it, the newest."""
    stopped: str = ""
    """Why the loop ended, '' while it runs."""

    @property
    def running(self) -> tuple[Lifetime, ...]:
        """Lifetimes that have not ended."""
        return tuple(each for each in self.lifetimes.values() if each.processes)

    @property
    def began_ns(self) -> int:
        """When the source started."""
        return self.started.now_ns if self.started else 0


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
        beside=beside.begun(started.now_ns, event.settings),
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
        hinted = bool(settings.watch) and matches(each.function, settings.watch)
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
    _without_admission(known, batch.now_ns)
    for refusal in batch.refusals:
        if refusal.function in known:
            known[refusal.function] = flow.refused(known[refusal.function], refusal, batch.now_ns)
    for activity in batch.activity:
        if activity.function in known:
            known[activity.function] = _counted(known[activity.function], activity, batch.now_ns)
    for seen in batch.observations:
        if seen.function in known:
            known[seen.function] = flow.observed(known[seen.function], seen, state.settings)
    for key, each in known.items():
        if each.watch is not None and each.state is State.CANDIDATE:
            known[key] = flow.counted(each, batch.now_ns)
        elif each.state is State.UNSTABLE and batch.now_ns - each.since_ns >= flow.PARKED_NS:
            known[key] = each.moved(State.WAITING, None, batch.now_ns)
    _climb(known, before, state, batch.now_ns)
    return _act(replace(state, known=known), before)


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
        elif state.settings.watch and matches(function, state.settings.watch):
            known[function.key] = _fresh(function, state.settings, batch.now_ns, estate)
    for finding in batch.findings:
        found = functions.get(finding.function)
        if found is not None and not state.settings.watch:
            each = known.get(found.key) or _fresh(found, state.settings, batch.now_ns, estate)
            known[found.key] = replace(each, where=each.where.seen(finding))
    runtime, faded_ns = state.runtime, state.faded_ns
    for finding in batch.runtime:
        runtime = runtime.seen(finding)
    if batch.now_ns - faded_ns >= HALF_LIFE_NS:
        faded_ns = batch.now_ns
        known = {key: replace(each, where=each.where.faded(0.5)) for key, each in known.items()}
        runtime = runtime.faded(0.5)
    return replace(
        state,
        now_ns=batch.now_ns,
        purse=filled(state.purse, batch, state.settings),
        beside=beside.used(state.beside, batch.spent.beside_ns + state.worker_ns, batch.now_ns, state.settings),
        functions=functions,
        known=_bounded(known),
        runtime=runtime,
        lifetimes={**state.lifetimes, **{each.id: each for each in batch.lifetimes}},
        batch=batch,
        started=replace(state.started, prices=batch.prices) if state.started and batch.prices else state.started,
        bystander_hits=state.bystander_hits + batch.bystander_hits,
        faded_ns=faded_ns,
    )


def _fresh(function: Function, settings: Settings, now_ns: int, estate: Callable[[], Estate]) -> Knowledge:
    hinted = bool(settings.watch) and matches(function, settings.watch)
    fresh = Knowledge(function=function, since_ns=now_ns, hinted=hinted, inherited=estate().of(function))
    if matches(function, settings.ignore):
        return fresh.moved(State.EXCLUDED, reasons.excluded(), now_ns)
    return fresh


def _without_admission(known: dict[str, Knowledge], now_ns: int) -> None:
    """Time the few functions that the user named at once: the kernel's bucket bounds what is not known yet."""
    fresh = [key for key, each in known.items() if each.hinted and each.state is State.CANDIDATE]
    if len(fresh) <= ADMITTED_AT_ONCE:
        for key in fresh:
            if known[key].rate is None and known[key].watch is None:
                known[key] = known[key].moved(State.WAITING, reasons.queued(0.0), now_ns)


def _bounded(known: dict[str, Knowledge]) -> dict[str, Knowledge]:
    if len(known) <= MOST_KNOWN:
        return known
    idle = [each for each in known.values() if each.state is State.CANDIDATE and each.watch is None]
    idle.sort(key=lambda each: (each.where.inclusive_ns, each.function.key))
    forgotten = {each.function.key for each in idle[: len(known) - MOST_KNOWN]}
    return {key: each for key, each in known.items() if key not in forgotten}


def _counted(known: Knowledge, activity: Activity, now_ns: int) -> Knowledge:
    known = with_activity(known, activity)
    watch = known.watch
    if not activity.limited or watch is None or watch.on_ns:
        return known
    # the bucket ran empty somewhere inside the time counted: the rate is higher than it looks
    seen = 1.5 * (known.rate or 0.0) if known.recent_ns >= SHORTEST_LOOK_NS else LIMITED_RATE
    known = replace(known, rate=seen)
    return known if known.state is State.CANDIDATE else with_watch(known, None, now_ns)


def _climb(known: dict[str, Knowledge], before: Mapping[str, Knowledge], state: ControllerState, now_ns: int) -> None:
    """Make the callers of functions that have just been finished candidates."""
    if state.settings.watch:
        return
    estate = cache(lambda: estate_of(known))
    for key in _changed(known, before):
        each = known[key]
        if each.state not in FINISHED:
            continue
        if key in before and before[key].state in FINISHED and before[key].where is each.where:
            continue
        for caller, _ in each.where.callers:
            if caller in known:
                if not known[caller].climbed:
                    known[caller] = replace(known[caller], climbed=each.function.name)
            elif caller in state.functions:
                fresh = _fresh(state.functions[caller], state.settings, now_ns, estate)
                known[caller] = replace(fresh, climbed=each.function.name)


def _changed(known: Mapping[str, Knowledge], before: Mapping[str, Knowledge]) -> list[str]:
    """Return the functions about which something is new, in order."""
    return sorted(key for key, each in known.items() if before.get(key) is not each)


def _mined(state: ControllerState, event: Mined) -> tuple[ControllerState, tuple[Action, ...]]:
    before, known = state.known, dict(state.known)
    for key, each in state.known.items():
        if each.job != event.job:
            continue
        if event.result is not None:
            known[key] = flow.explained(each, event.result, event.now_ns, state.settings)
        else:
            known[key] = flow.failed(each, event.failure, event.now_ns, state.settings)
    _climb(known, before, state, event.now_ns)
    state = replace(state, worked_ns=event.now_ns, worker_ns=state.worker_ns + event.cpu_ns)
    return _act(replace(state, now_ns=event.now_ns, known=known), before)


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
        hinted = bool(event.settings.watch) and matches(each.function, event.settings.watch)
        changed = replace(each, hinted=hinted)
        if ignored:
            changed = changed.moved(State.EXCLUDED, reasons.excluded(), event.now_ns)
        elif each.state is State.EXCLUDED and not each.refused:
            changed = changed.moved(State.CANDIDATE, None, event.now_ns)
        known[key] = changed
    before = state.known
    return _act(replace(state, now_ns=event.now_ns, settings=event.settings, known=known, planned_ns=0), before)


def _act(state: ControllerState, before: Mapping[str, Knowledge]) -> tuple[ControllerState, tuple[Action, ...]]:
    """Turn what is known now into requests, jobs and news."""
    changed = _changed(state.known, before)
    moved = any(
        key not in before or before[key].state is not state.known[key].state
        for key in changed
        if state.known[key].state is not State.CANDIDATE
    )
    checked = any(
        key in before and before[key].checked_ns != state.known[key].checked_ns and state.known[key].watch is not None
        for key in changed
    )
    # given up since the last plan: the next one would find nothing to change, and the probes would stay
    actions: list[Action] = [
        Unwatch(function=key)
        for key in changed
        if key in before and before[key].watch is not None and state.known[key].watch is None
    ]
    state = _sample(state, actions)
    every_ns = PLAN_EVERY_NS if checked else _plan_every_ns(state)
    if moved or state.now_ns - state.planned_ns >= every_ns:
        state = _plan(state, actions)
        changed = sorted(state.known)
    state = _mine(state, changed, actions)
    if moved or state.now_ns - state.published_ns >= PUBLISH_EVERY_NS:
        actions.append(Publish(why="moved" if moved else ""))
        state = replace(state, published_ns=state.now_ns)
    return state, tuple(actions)


def _sample(state: ControllerState, actions: list[Action]) -> ControllerState:
    if state.started is None:
        return state
    now_ns, burst_ns = state.now_ns, state.burst_ns
    if now_ns >= next_burst_ns(burst_ns, state.beside.pressure):
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
    return round(PLAN_EVERY_NS + state.beside.pressure * (PLAN_UNDER_PRESSURE_NS - PLAN_EVERY_NS))


def means_of(state: ControllerState) -> Means:
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
        pressure=state.beside.pressure,
        running=state.running,
        runtime=state.runtime,
        now_ns=state.now_ns,
    )


def _plan(state: ControllerState, actions: list[Action]) -> ControllerState:
    looking = state.now_ns - state.began_ns < FIRST_LOOK_NS and not state.settings.watch
    if looking and all(each.state is State.CANDIDATE for each in state.known.values()):
        return state
    made = plan(state.known, means_of(state), state.settings)
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
        return flow.described(each.moved(State.TIMING, None, now_ns), state.settings)
    if each.state is State.TIMING and new is None:
        return each.moved(State.WAITING, made.waiting.get(key, each.reason), now_ns)
    if each.state is State.WAITING or (each.state is State.EXPLAINING and new is None and each.job is None):
        return each.moved(each.state, made.waiting.get(key, each.reason), now_ns)
    return flow.described(each, state.settings)


def _why_candidate(each: Knowledge, watch: Watch | None, total: Total) -> Reason:
    if watch is not None:
        return reasons.counting()
    part = share(each, total)
    return reasons.queued(part) if is_worth_it(each, total) else reasons.cold(part, WORTH_SHARE)


def _mine(state: ControllerState, keys: Sequence[str], actions: list[Action]) -> ControllerState:
    """Give the worker what is ready for it among these functions."""
    idle_ns = state.now_ns - state.worked_ns
    if WORKER_WARM_NS <= idle_ns < state.beside.pressure * WORKER_WAIT_NS:
        return state
    modules: tuple[str, ...] | None = None
    known, next_job = dict(state.known), state.next_job
    for key in keys:
        each = known[key]
        if each.job is not None or not each.paths or each.state not in _EXPLAINABLE:
            continue
        if modules is None:
            modules = tuple(sorted({PurePath(life.executable).name for life in state.lifetimes.values()}))
        job = flow.job_for(each, state.settings, modules, state.now_ns)
        if job is not None:
            actions.append(Mine(job=next_job, inputs=job))
            known[key] = flow.described(replace(each, job=next_job), state.settings)
            next_job += 1
    if next_job == state.next_job:
        return state
    return replace(state, known=known, next_job=next_job, worked_ns=state.now_ns)
