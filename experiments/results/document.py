"""A result as the contract writes it: ``specmine.experiment/1``. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from specmine.experiments.types import Check, Experiment, Finding, Host
from specmine.model.function import Reason

SCHEMA = "specmine.experiment/1"
HOST_KEYS = ("boot_id", "kernel", "cpu_model", "cpus", "quota")
"""What a value depends on: where one of them differs it is no longer a value of this host."""
Document = dict[str, Any]


def document(
    experiment: Experiment,
    finding: Finding,
    host: Host,
    *,
    utc_ns: int,
    window_ns: tuple[int, int],
    cpu_ns: int,
    cpus: tuple[int, ...] = (),
    confinement: str = "",
    forced: bool = False,
    parameters: Mapping[str, Any] | None = None,
) -> Document:
    """Return the JSON of one result.

    It has a value only if nothing contradicts it. A failed check, or a reason without a certain answer, removes the
    value, which is then shown as ``evidence.unsure_value``.
    """
    failed = [check for check in finding.checks if not check.ok]
    reason = finding.reason or _of_checks(failed)
    valid = reason is None or finding.conclusive
    evidence = dict(finding.evidence)
    value = finding.value
    if not valid and value is not None:
        evidence["unsure_value"], value = value, None
    return {
        "schema": SCHEMA,
        "name": experiment.name,
        "value": value,
        "unit": experiment.unit,
        "interval": list(finding.interval) if finding.interval and value is not None else None,
        "valid": valid,
        "reason": None if reason is None else {"code": reason.code, "text": reason.text, "remedy": reason.remedy},
        "ground_truth": finding.ground_truth,
        "samples": finding.samples,
        "checks": [{**asdict(check), "ok": check.ok} for check in finding.checks],
        "evidence": json_value(evidence),
        "parameters": json_value(dict(parameters or {})),
        "time": rfc3339(utc_ns),
        "duration_seconds": round((window_ns[1] - window_ns[0]) / 1e9, 3),
        "cpu_seconds": round(cpu_ns / 1e9, 4),
        "cpus": list(cpus),
        "window_ns": list(window_ns),
        "confinement": confinement,
        "forced": forced,
        "host": json_value({name: getattr(host, name) for name in HOST_KEYS}),
    }


def skipped(
    experiment: Experiment, reason: Reason, host: Host, *, utc_ns: int, now_ns: int, cpu_ns: int = 0
) -> Document:
    """Return the result of an experiment that did not run."""
    return document(experiment, Finding(reason=reason), host, utc_ns=utc_ns, window_ns=(now_ns, now_ns), cpu_ns=cpu_ns)


def stale_reason(result: Mapping[str, Any], host: Host) -> str:
    """Return why a stored result is no value of this host any more, '' if it is."""
    then, now = result.get("host", {}), json_value({name: getattr(host, name) for name in HOST_KEYS})
    names = {"boot_id": "boot", "kernel": "kernel", "cpu_model": "CPU", "cpus": "CPUs allowed", "quota": "CPU limit"}
    changed = [names[name] for name in HOST_KEYS if then.get(name) != now[name]]
    return f"measured under another {', '.join(changed)}" if changed else ""


def rfc3339(utc_ns: int) -> str:
    """Write a time as RFC 3339 in UTC, milliseconds."""
    moment = datetime.fromtimestamp(utc_ns / 1e9, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def json_value(value: Any) -> Any:
    """Return a value as JSON can hold it: lists for tuples, plain numbers, null for what is not a number."""
    if isinstance(value, Mapping):
        return {str(name): json_value(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(each) for each in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _of_checks(failed: list[Check]) -> Reason | None:
    if not failed:
        return None
    text = "; ".join(
        f"{each.name} is {each.value:.4g}, not within {each.low:.4g} to {each.high:.4g}" for each in failed
    )
    return Reason(code="check", text=text, remedy="try again when the host is quiet")
