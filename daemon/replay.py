"""Records what the loop does, and replays it: each decision is made again and compared.

A recording holds the controller's events and actions, and a digest of each job. A replay decides and mines again,
and stops at the first difference.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from specmine.daemon.config.loader import load_config
from specmine.daemon.config.settings import Settings, settings_of
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
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.documents.specification import last_specification
from specmine.daemon.worker.jobs import Job, run_job
from specmine.model.errors import InputError
from specmine.model.json_codec import Json, decode, encode

from .loop import Listener, Step
from .recording import Recorder, read_recording

EVENTS: dict[str, type] = {
    "begun": Begun,
    "restored": Restored,
    "arrived": Arrived,
    "mined": Mined,
    "reloaded": Reloaded,
    "acknowledged": Acknowledged,
    "asked": Asked,
    "answered": Answered,
    "surveyed": Surveyed,
    "assigned": Assigned,
    "stated": Stated,
    "stopping": Stopping,
}
_NAMES = {kind: name for name, kind in EVENTS.items()}


class ReplayError(InputError):
    """A replay decided otherwise than the recording."""


def recorder(path: str | Path, version: str) -> tuple[Recorder, Listener]:
    """Open a recording; return it, to be closed, and the listener that fills it."""
    recording = Recorder(path, {"version": version})

    def listen(step: Step) -> None:
        recording.write(line_of(step))

    return recording, listen


def line_of(step: Step) -> dict[str, Json]:
    """Return the line of a recording that holds a step."""
    return {
        "number": step.number,
        "event": {"kind": _NAMES[type(step.event)], **_event_json(step.event)},
        "actions": [_action_json(action) for action in step.actions],
    }


def events(path: str | Path) -> Iterator[tuple[int, Event, list[Json]]]:
    """Return number, event and recorded actions of each step; InputError for a damaged recording."""
    _, lines = read_recording(path)
    for line in lines:
        try:
            data = dict(line["event"])
            yield int(line["number"]), decode(EVENTS[data.pop("kind")], data), list(line["actions"])
        except (LookupError, TypeError, ValueError, ArithmeticError) as error:
            raise InputError(
                f"{path}: event {line.get('number')} cannot be read: {error}",
                remedy="it was made by another version or is damaged",
            ) from error


def replay(
    path: str | Path,
    *,
    config: str | Path | None = None,
    settings: Settings | None = None,
    detail: bool = False,
    report: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Return the specification that a recording leads to.

    Parameters
    ----------
    path : path
        Recording of ``mine --record`` or ``record``.
    config : path, optional
        Configuration file to take ``settings`` from.
    settings : Settings, optional
        Decide under these instead of the recorded ones. Requests then have no effect on what is observed, so
        decisions are not compared: an open loop.
    detail : bool
        As in ``specification``.
    report : callable
        Gets one line if the recording was cut: what is whole is replayed.

    Raises
    ------
    ReplayError
        At the first decision or mining result that differs, with the number of its event.
    InputError
        If the file is not a recording or is damaged.
    """
    if config is not None:
        settings = settings_of(load_config(config))
    state = ControllerState()
    jobs: dict[int, Job] = {}
    number = 0
    try:
        for number, event, recorded in events(path):
            state = _step(state, jobs, number, event, recorded, settings)
        if state.started is None:
            raise InputError(f"{path} holds no event", remedy="the mining ended before it began")
        if not state.stopped:
            report(f"{path} is cut after event {number}: the mining went on; this is what it knew then")
        return last_specification(state, detail=detail)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        what = f"{type(error).__name__}: {error}"
        raise InputError(
            f"{path}: event {number} cannot be replayed ({what})", remedy="it holds impossible values, or report it"
        ) from error


def _step(
    state: ControllerState,
    jobs: dict[int, Job],
    number: int,
    event: Event,
    recorded: list[Json],
    settings: Settings | None,
) -> ControllerState:
    """Return the state after one event; compare what is decided with the recording, except under other settings."""
    if settings is not None:
        if isinstance(event, Mined | Reloaded):
            return state
        state, actions = decide(state, replace(event, settings=settings) if isinstance(event, Begun) else event)
        return _mined_inline(state, actions)
    if isinstance(event, Mined):
        _compare_result(number, event, jobs)
    state, actions = decide(state, event)
    jobs |= {action.job: action.inputs for action in actions if isinstance(action, Mine)}
    _compare_actions(number, recorded, [_action_json(action) for action in actions])
    return state


def _mined_inline(state: ControllerState, actions: tuple[Action, ...]) -> ControllerState:
    pending = [action for action in actions if isinstance(action, Mine)]
    while pending:
        job = pending.pop(0)
        state, more = decide(state, Mined(now_ns=state.now_ns, job=job.job, result=run_job(job.inputs)))
        pending += [action for action in more if isinstance(action, Mine)]
    return state


def _compare_result(number: int, event: Mined, jobs: dict[int, Job]) -> None:
    if event.result is None or event.job not in jobs:
        return  # the recording holds that a worker died or was stopped
    again = encode(run_job(jobs.pop(event.job)))
    if not _alike(again, encode(event.result)):
        raise ReplayError(f"event {number}: mining job {event.job} gives another result than the recording")


def _compare_actions(number: int, recorded: list[Json], again: list[Json]) -> None:
    if _alike(recorded, again):
        return
    for place in range(max(len(recorded), len(again))):
        was = recorded[place] if place < len(recorded) else "nothing"
        now = again[place] if place < len(again) else "nothing"
        if not _alike(was, now):
            raise ReplayError(
                f"event {number}: action {place + 1} is {json.dumps(now)}, recorded was {json.dumps(was)}"
            )


def _alike(was: Json, now: Json) -> bool:
    """Tell whether two values are the same, numbers to nine digits or 1e-12: further ones depend on the CPU."""
    if isinstance(was, dict) and isinstance(now, dict):
        return was.keys() == now.keys() and all(_alike(was[key], now[key]) for key in was)
    if isinstance(was, list | tuple) and isinstance(now, list | tuple):  # JSON knows no tuples
        return len(was) == len(now) and all(map(_alike, was, now))
    if isinstance(was, float) and isinstance(now, float):
        return math.isclose(was, now, rel_tol=1e-9, abs_tol=1e-12)
    return bool(was == now)


def _event_json(event: Event) -> dict[str, Json]:
    data: dict[str, Json] = encode(event)
    if isinstance(event, Begun | Reloaded):
        data["settings"] = encode(event.settings, full=True)  # a later version may have other defaults
    return data


def _action_json(action: Action) -> dict[str, Json]:
    if isinstance(action, Mine):
        return {"action": "mine", "job": action.job, "inputs": _digest(encode(action.inputs))}
    if isinstance(action, Publish):
        return {"action": "publish"}
    return {"action": type(action).__name__.lower(), **encode(action)}


def _digest(data: Json) -> str:
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
