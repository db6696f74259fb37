"""The host in one vector: what the kernel tells, and what experiments derived, each with its validity and age. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specmine.experiments.results.document import of_this_host
from specmine.experiments.types import Host
from specmine.model.host_environment import Cause, Environment, Known, cause_of

__all__ = ["Cause", "Environment", "cause_of", "environment_of"]

_VALUES = {
    "slice_seconds": "timeslice",
    "cores": "cores",
    "pair_capacity": "smt",
    "noise_ratio": "noise",
    "steal_ratio": "steal",
    "sleep_overshoot_seconds": "timers",
    "virtualization_overhead": "virtualization-constant",
}
"""Properties that are the value of an experiment."""
_EVIDENCE = {
    "quota_seconds": "quota",
    "period_seconds": "quota",
    "tick_cost_seconds": "noise",
    "hypervisor_slice_seconds": "steal",
}
"""Properties that stand in the evidence of one."""
_NAMES = {"tick_cost_seconds": "lost_a_tick_seconds"}


def environment_of(entries: Mapping[str, Any], host: Host) -> Environment:
    """Return the vector from a journal's entries; what no longer holds for the host has no value, and says why."""
    found: dict[str, Any] = {}
    known: dict[str, Known] = {}
    for name, experiment in (_VALUES | _EVIDENCE).items():
        result, known[name] = _held(entries.get(experiment), host)
        if result is not None:
            place = result if name in _VALUES else result["evidence"]
            value = place.get("value" if name in _VALUES else _NAMES.get(name, name))
            found[name] = value
            if name in _VALUES and result.get("interval"):
                low, high = result["interval"]
                known[name] = Known(valid=True, time=known[name].time, interval=(low, high))
    # the drift is known also where no overhead can be stated
    last = (entries.get("virtualization-constant") or {}).get("last") or {"evidence": {}}
    drift = None if last["evidence"] and of_this_host(last, host) else last["evidence"].get("drift", {}).get("integer")
    if not all(check["ok"] for check in last.get("checks", ()) if check["name"] == "speed_kept"):
        drift = None  # the CPU had another speed a moment later
    known["drift"] = Known(valid=drift is not None, time=last.get("time"), reason=None if drift else "never-measured")
    return Environment(
        kernel=host.kernel,
        cpu_model=host.cpu_model,
        cpus=len(host.cpus),
        hertz=host.hertz,
        virtual=host.virtual,
        drift=drift,
        properties=known,
        **found,
    )


def _held(entry: Mapping[str, Any] | None, host: Host) -> tuple[Mapping[str, Any] | None, Known]:
    """Return the last valid result if it still holds, and how far it is to be believed."""
    if not entry:
        return None, Known(valid=False, reason="never-measured")
    result = entry.get("valid")
    if not result:
        last = entry["last"]
        return None, Known(valid=False, time=last["time"], reason=(last["reason"] or {}).get("code"))
    if of_this_host(result, host):
        return None, Known(valid=False, time=result["time"], reason="stale")
    # no value can be the answer: this host has no limit
    return result, Known(valid=True, time=result["time"], reason=(result["reason"] or {}).get("code"))
