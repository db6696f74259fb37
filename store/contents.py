"""What a store holds about the functions of its programs, read at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from specmine.model.batch import Lifetime, boot_of
from specmine.model.function import Function
from specmine.model.observation import Observation

from .table import JsonObject
from .tables.host_environments import EnvironmentVector, ExperimentWindow
from .tables.hosts import Host
from .tables.programs import Build
from .tables.violations import StoredViolation


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
    environments: tuple[EnvironmentVector, ...] = ()
    experiment_windows: tuple[ExperimentWindow, ...] = ()
    violations: tuple[StoredViolation, ...] = ()
    """Open or closed, oldest first."""

    def observations_at(self, utc_offset_ns: int) -> tuple[Observation, ...]:
        """Return the observations, times on the monotonic clock of the boot with this offset to UTC."""
        shifts = {host.boot_id: host.utc_offset_ns - utc_offset_ns for host in self.hosts}
        return tuple(_moved(window, shifts.get(boot_of(window.lifetime), 0)) for window in self.observations)


def _moved(observation: Observation, shift_ns: int) -> Observation:
    if shift_ns == 0:
        return observation
    return replace(observation, start_ns=observation.start_ns + shift_ns, end_ns=observation.end_ns + shift_ns)
