"""What the controller reacts to and what it asks for; both are recorded, so that a replay can repeat them.

Events carry the time: the controller has no clock of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from specmine.daemon.config.settings import Settings
from specmine.daemon.worker.jobs import Job
from specmine.mining.assertions.explanation import Explanation
from specmine.mining.fleet.duty import Duty
from specmine.mining.fleet.statement import InheritedStatement
from specmine.model.batch import Batch, Request, Started
from specmine.model.function import Function
from specmine.model.observation import Observation
from specmine.model.violation import Violation

from .violations.host_detection import HostDetection


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """The source has started; always the first event."""

    started: Started
    settings: Settings


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Restored:
    """What a store held; comes right after Begun, with times already moved to this boot's clock."""

    now_ns: int
    functions: tuple[Function, ...] = ()
    records: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Function key to what ``function_record`` returned."""
    observations: tuple[Observation, ...] = ()
    """The newest of each function and kind, oldest first."""
    violations: tuple[Violation, ...] = ()
    """Those that are open, and the newest that closed, oldest first."""
    detection: HostDetection = field(default_factory=HostDetection)
    """What the detectors of all functions share."""
    utc_offset_ns: int | None = None
    """What the times in ``records`` are ahead of this boot's clock; None: as UTC is now. The clock may have been set
    since they were written."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Arrived:
    """A batch came from the source."""

    batch: Batch


@dataclass(frozen=True, slots=True, kw_only=True)
class Mined:
    """A job of the worker ended: with a result, or with the sentence that says why it has none."""

    now_ns: int
    job: int
    result: Explanation | None = None
    failure: str = ""
    cpu_ns: int = 0
    """CPU time that the worker took since its last job, its start included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reloaded:
    """The user changed the configuration."""

    now_ns: int
    settings: Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledged:
    """A person says that these violations are known: the present state is the yardstick from now on."""

    now_ns: int
    ids: tuple[str, ...]
    """Of the violations."""
    by: str = ""
    """Name of the user."""
    comment: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Somebody wants to know where the calls of these functions wait."""

    now_ns: int
    functions: tuple[str, ...]
    """Keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """Requests from outside were answered."""

    now_ns: int
    cpu_ns: int
    """CPU time that they took since the start of the daemon, scrapes and connections included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A window of time in which an experiment loaded CPUs of the host."""

    name: str
    start_ns: int
    """CLOCK_MONOTONIC."""
    end_ns: int
    cpus: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopping:
    """The loop ends after this event."""

    now_ns: int
    why: str
    """ended, deadline, signal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surveyed:
    """What is known of the host has changed, or is known for the first time."""

    now_ns: int
    environment: Mapping[str, Any]
    """A ``specmine.environment/1``."""
    marks: tuple[Mark, ...] = ()
    """The newest experiments of this boot: calls meanwhile are not as usual."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assigned:
    """The fleet was reached: what it asks this host to observe, and what other hosts observe."""

    now_ns: int
    told_ns: int
    """When it was reached."""
    duties: tuple[Duty, ...] = ()
    left: tuple[str, ...] = ()
    """Keys of the functions that other hosts observe."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stated:
    """Statements that the fleet mined from many hosts: they are checked here instead of learned from nothing."""

    now_ns: int
    statements: tuple[InheritedStatement, ...]


Event = (
    Begun
    | Restored
    | Arrived
    | Mined
    | Reloaded
    | Acknowledged
    | Asked
    | Answered
    | Surveyed
    | Assigned
    | Stated
    | Stopping
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Mine:
    """Action: run this job in the worker; its result comes back as Mined."""

    job: int
    inputs: Job


@dataclass(frozen=True, slots=True, kw_only=True)
class Publish:
    """Action: what the user sees has changed."""

    why: str = ""


Action = Request | Mine | Publish


def time_of(event: Event) -> int:
    """Return when the event happened, CLOCK_MONOTONIC ns."""
    if isinstance(event, Begun):
        return event.started.now_ns
    return event.batch.now_ns if isinstance(event, Arrived) else event.now_ns
