"""What a store holds, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from specmine.model.batch import Lifetime
from specmine.model.function import Function
from specmine.model.observation import Observation

from .host_environments import Marked, Vector, marks_during, vector_at

JsonObject = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """One boot of a host."""

    boot_id: str
    hostname: str
    utc_offset_ns: int
    """What to add to CLOCK_MONOTONIC of this boot to get UTC, ns."""
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """One build of a program, with the label that the user gave it."""

    build_id: str
    executable: str
    label: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a check said: about the assertion or comparison ``subject`` of a function."""

    function: str
    subject: str
    verdict: str
    utc_ns: int
    evidence: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """All that a store holds about the functions, oldest observation first."""

    hosts: tuple[Host, ...] = ()
    builds: tuple[Build, ...] = ()
    lifetimes: tuple[Lifetime, ...] = ()
    functions: tuple[Function, ...] = ()
    observations: tuple[Observation, ...] = ()
    states: Mapping[str, JsonObject] = field(default_factory=dict)
    """Function key to what the controller knows about it."""
    documents: Mapping[str, JsonObject] = field(default_factory=dict)
    environments: tuple[Vector, ...] = ()
    marks: tuple[Marked, ...] = ()

    def environment_of(self, observation: Observation) -> JsonObject | None:
        """Return what was known of the host when an observation was made, a ``specmine.environment/1``."""
        boot_id = boot_of(observation.lifetime)
        offset = next((each.utc_offset_ns for each in self.hosts if each.boot_id == boot_id), 0)
        return vector_at(self.environments, boot_id, observation.end_ns + offset)

    def experiments_during(self, observation: Observation) -> tuple[str, ...]:
        """Return the experiments that ran on the host in an observation's window."""
        return marks_during(self.marks, boot_of(observation.lifetime), observation.start_ns, observation.end_ns)

    def observations_at(self, utc_offset_ns: int) -> tuple[Observation, ...]:
        """Return the observations, times on the monotonic clock of the boot with this offset to UTC."""
        shifts = {each.boot_id: each.utc_offset_ns - utc_offset_ns for each in self.hosts}
        return tuple(_moved(each, shifts.get(boot_of(each.lifetime), 0)) for each in self.observations)


def boot_of(lifetime: str) -> str:
    """Return the boot id that a lifetime's id begins with."""
    return lifetime.split(":", maxsplit=1)[0]


def _moved(observation: Observation, shift_ns: int) -> Observation:
    if shift_ns == 0:
        return observation
    return replace(observation, start_ns=observation.start_ns + shift_ns, end_ns=observation.end_ns + shift_ns)
