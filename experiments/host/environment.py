"""The host's environment: what the kernel reports and what experiments derived, with validity and age. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from specmine.experiments.library import EXPERIMENTS
from specmine.experiments.results.document import stale_reason
from specmine.experiments.types import Host
from specmine.model.host.environment import Environment, Known


def environment_of(entries: Mapping[str, Any], host: Host) -> Environment:
    """Return the environment from a journal's entries; a property that is not valid any more has no value.

    Parameters
    ----------
    entries : mapping
        What the journal holds, by experiment.
    host : Host
        The facts of this host now.
    """
    values: dict[str, Any] = {}
    known: dict[str, Known] = {}
    for name, experiment in EXPERIMENTS.items():
        result, validity = _last_valid(entries.get(name), host)
        for field, place in experiment.environment.items():
            known[field] = validity
            if result is None:
                continue
            values[field] = result["value"] if place == "value" else result["evidence"].get(place)
            if place == "value" and result.get("interval"):
                low, high = result["interval"]
                known[field] = replace(validity, interval=(low, high))
    # the drift is known also where no overhead can be stated
    last = (entries.get("virtualization-constant") or {}).get("last") or {"evidence": {}}
    drift = None if last["evidence"] and stale_reason(last, host) else last["evidence"].get("drift", {}).get("integer")
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
        properties={field.name: known[field.name] for field in fields(Environment) if field.name in known},
        **values,
    )


def _last_valid(entry: Mapping[str, Any] | None, host: Host) -> tuple[Mapping[str, Any] | None, Known]:
    """Return the last valid result of an experiment if it still holds, and how far it is to be believed."""
    if not entry:
        return None, Known(valid=False, reason="never-measured")
    result = entry.get("valid")
    if not result:
        last = entry["last"]
        return None, Known(valid=False, time=last["time"], reason=(last["reason"] or {}).get("code"))
    if stale_reason(result, host):
        return None, Known(valid=False, time=result["time"], reason="stale")
    # no value can be the answer: this host has no limit
    return result, Known(valid=True, time=result["time"], reason=(result["reason"] or {}).get("code"))
