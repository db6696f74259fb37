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

    def offset_on_disk(self, boot_id: str, now_ns: int, utc_offset_ns: int) -> int:
        """Return what the dates in this store are ahead of the monotonic clock of a boot.

        That is the boot's offset to UTC, unless the clock was set since. Of the same boot the offset of then counts.
        If the newest window would end in the future, it ends now.

        Parameters
        ----------
        boot_id : str
            The boot of now.
        now_ns : int
            On its monotonic clock.
        utc_offset_ns : int
            What to add to that clock to get UTC, ns.
        """
        known = {host.boot_id: host.utc_offset_ns for host in self.hosts}
        if boot_id in known:
            return known[boot_id]
        ends = (window.end_ns + known.get(boot_of(window.lifetime), utc_offset_ns) for window in self.observations)
        return max(utc_offset_ns, max(ends, default=0) - now_ns)

    def observations_at(self, utc_offset_ns: int) -> tuple[Observation, ...]:
        """Return the observations, times on the monotonic clock of the boot with this offset to UTC."""
        shifts = {host.boot_id: host.utc_offset_ns - utc_offset_ns for host in self.hosts}
        return tuple(_moved(window, shifts.get(boot_of(window.lifetime), 0)) for window in self.observations)


def _moved(observation: Observation, shift_ns: int) -> Observation:
    if shift_ns == 0:
        return observation
    return replace(observation, start_ns=observation.start_ns + shift_ns, end_ns=observation.end_ns + shift_ns)
