"""The only loop: it steps what source, worker and user bring into events, and decisions into requests.

Everything it reacts to is an event with its time, so a list of its steps can be replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from specmine.daemon.config.settings import MS, Settings
from specmine.daemon.controller.decide import decide
from specmine.daemon.controller.events import (
    Acknowledged,
    Action,
    Answered,
    Arrived,
    Asked,
    Assigned,
    Begun,
    Event,
    Mine,
    Mined,
    Publish,
    Reloaded,
    Restored,
    Stated,
    Stopping,
    Surveyed,
)
from specmine.daemon.controller.hotness import is_doubted
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.worker.process import Worker
from specmine.model.batch import FollowWaits, Sampling, Source, Unwatch, Watch
from specmine.model.clock import Clock

POLL_EVERY_NS = 50 * MS
"""How often the source is asked at most ..."""
REST_NS, REST_PART, SEARCHING_NS = 300 * MS, 1 / 15, 15_000 * MS
"""... and unless a watched process needs it at once: what links and names report meanwhile is taken in together. Not
in the first seconds, nor so long where windows are short."""
SPARED = 3.0
"""With no CPU time of our own left so many times the usual time is added from turn to turn: each costs more than half
of what a window does, whatever comes in it. While something is awaited it is added once."""
IDLE_POLL_NS, WINDOW_PART = 500 * MS, 0.05
"""... and at least: hits are counted in the kernel meanwhile. Twice as often where windows are short: they must not end
late by more than this part of their length while there is CPU time of our own."""
LONGEST_IDLE_NS, FRESH_NS = 3_000 * MS, 5_000 * MS
"""Where what we may use is overspent both grow with the square of the stretch, up to this: turns give way before checks
do. Not while something is awaited; a program that began so lately may be."""
LAST_JOBS_NS = 10_000 * MS
"""How long the end of the loop waits for jobs that are running."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Step:
    """One event, the state after it, and the actions that followed."""

    number: int
    event: Event
    state: ControllerState
    actions: tuple[Action, ...]

    @property
    def published(self) -> bool:
        """True if what the user sees has changed."""
        return any(isinstance(action, Publish) for action in self.actions)


Listener = Callable[[Step], None]
"""Called after each step, in the loop's thread: recorder, store, metrics, progress. Must not block."""
Message = Reloaded | Acknowledged | Asked | Answered | Surveyed | Assigned | Stated | Stopping
Inbox = Callable[[int], Iterable[Message]]
"""Called once a turn with the time; returns what the user wants (a new configuration, an end), and news of the host and
of its fleet."""


def run(
    source: Source,
    settings: Settings,
    clock: Clock,
    worker: Worker,
    *,
    listeners: Sequence[Listener] = (),
    restored: Callable[[int], Restored] | None = None,
    inbox: Inbox = lambda now_ns: (),
    deadline_ns: int | None = None,
) -> ControllerState:
    """Mine until the programs end, the deadline passes or the inbox asks to stop; return the state then.

    The source is started here and closed in every case, before the last jobs are waited for.

    Parameters
    ----------
    source, clock, worker
        The three seams; tests put fakes in their place.
    settings : Settings
    listeners : sequence of callable
    restored : callable, optional
        Called with the time once the source has started; returns what a store held.
    inbox : callable, optional
    deadline_ns : int, optional
        Length of the mining, counted from the start of the source.

    Raises
    ------
    ProbeError
        If the source cannot start; whatever a listener or the source raises, after the source was closed.
    """
    steps = _Steps(source, worker, listeners)
    try:
        started = source.start()
        steps.take(Begun(started=started, settings=settings))
        if restored is not None:
            steps.take(restored(clock.now_ns()))
        end_ns = None if deadline_ns is None else started.now_ns + deadline_ns
        why = ""
        while not why:
            began_ns = clock.now_ns()
            why = _step(steps, source, worker, inbox, began_ns)
            if not why and end_ns is not None and clock.now_ns() >= end_ns:
                why = "deadline"
            if not why:
                _sleep(steps, source, clock, began_ns, end_ns)
    except BaseException:
        worker.close()
        raise
    finally:
        source.close()
    _last_jobs(steps, worker, clock)
    steps.take(Stopping(now_ns=clock.now_ns(), why=why))
    worker.close()
    return steps.state


def _sleep(steps: _Steps, source: Source, clock: Clock, began_ns: int, end_ns: int | None) -> None:
    """Sleep until something is due or happens."""
    batch = steps.state.batch
    due_ns = began_ns if steps.asked else batch.due_ns if batch is not None else 0
    latest = began_ns + _idle_ns(steps.state)
    soonest, rested = began_ns + POLL_EVERY_NS, began_ns + _rest_ns(steps.state)
    if steps.state.hertz and began_ns < steps.state.burst_end_ns:
        over_ns = max(soonest, steps.state.burst_end_ns)
        rested, latest = min(rested, over_ns), min(latest, over_ns)
    if batch is not None and batch.safety_ns:
        safety_ns = max(soonest, batch.safety_ns)
        rested, latest = min(rested, safety_ns), min(latest, safety_ns)
    if end_ns is not None:
        soonest, rested, latest = min(soonest, end_ns), min(rested, end_ns), min(latest, end_ns)
    # each time of waking up costs as much as a look at the kernel's counters: most turns have one or two
    clock.sleep_until_ns(rested, source.fileno(urgent=True) if soonest < rested else -1)
    if clock.now_ns() < rested:
        clock.sleep_until_ns(soonest)
        return
    if rested < (latest := max(rested, min(latest, due_ns or latest))):
        clock.sleep_until_ns(latest, source.fileno())


def _idle_ns(state: ControllerState) -> int:
    """Return how long the source may be left alone."""
    idle_ns = max(IDLE_POLL_NS // 2, min(IDLE_POLL_NS, round(WINDOW_PART * state.settings.window_ns)))
    return _stretched(idle_ns, state)


def _stretched(usual_ns: int, state: ControllerState) -> int:
    cost = state.agent_cost
    if cost.pressure <= 0:
        return usual_ns
    spared = 1.0 if _is_awaited(state) else SPARED * cost.stretch**2
    return min(round(usual_ns * (1 + cost.pressure * spared)), max(usual_ns, LONGEST_IDLE_NS))


def _is_awaited(state: ControllerState) -> bool:
    """Tell whether turns must come soon: a program began, a change is suspected, or samples say that there may be one.

    One that is open may last for days, and needs no more windows than come anyway.
    """
    if any(each.processes and state.now_ns - each.start_ns < FRESH_NS for each in state.lifetimes.values()):
        return True
    return bool(state.surprise.at(state.now_ns)) or is_doubted(state.functions.values())


def _rest_ns(state: ControllerState) -> int:
    """Return how long the source is left alone at least unless it is urgent."""
    if state.now_ns - state.began_ns < SEARCHING_NS:
        return POLL_EVERY_NS
    longest_ns = _stretched(round(REST_PART * state.settings.window_ns), state)
    return max(POLL_EVERY_NS, min(_stretched(REST_NS, state), longest_ns))


def _step(steps: _Steps, source: Source, worker: Worker, inbox: Inbox, now_ns: int) -> str:
    """Take what every side brings; return why to stop, '' to go on."""
    for message in inbox(now_ns):
        if isinstance(message, Stopping):
            return message.why
        steps.take(message)
    for number, result, failure in worker.collect(now_ns):
        steps.take(Mined(now_ns=now_ns, job=number, result=result, failure=failure, cpu_ns=worker.used_ns()))
    batch = source.poll(now_ns)
    steps.asked = False
    steps.take(Arrived(batch=batch))
    return "ended" if batch.ended else ""


def _last_jobs(steps: _Steps, worker: Worker, clock: Clock) -> None:
    """Wait for running jobs, so that what they were given is not lost."""
    until_ns = clock.now_ns() + LAST_JOBS_NS
    while clock.now_ns() < until_ns and _has_jobs(steps.state):
        now_ns = clock.now_ns()
        for number, result, failure in worker.collect(now_ns):
            mined = Mined(now_ns=now_ns, job=number, result=result, failure=failure, cpu_ns=worker.used_ns())
            steps.take(mined, ended=True)
        clock.sleep_until_ns(now_ns + POLL_EVERY_NS)


def _has_jobs(state: ControllerState) -> bool:
    return any(function.explanation.job is not None for function in state.functions.values())


class _Steps:
    """Carries out each event in order: decide, request, call the listeners."""

    def __init__(self, source: Source, worker: Worker, listeners: Sequence[Listener]) -> None:
        self.state = ControllerState()
        self._source, self._worker, self._listeners = source, worker, listeners
        self._number = 0
        self.asked = False
        """True if the source was asked for something since its last batch."""

    def take(self, event: Event, *, ended: bool = False) -> None:
        """Take one event through; once the source has ended its requests are only recorded."""
        self.state, actions = decide(self.state, event)
        step = Step(number=self._number, event=event, state=self.state, actions=actions)
        self._number += 1
        for action in actions:
            match action:
                case Watch() | Unwatch() | Sampling() | FollowWaits():
                    if not ended:
                        self._source.apply(action)
                        self.asked = True
                case Mine():
                    self._worker.submit(action.job, action.inputs)
                case Publish():
                    pass
        for listener in self._listeners:
            listener(step)
