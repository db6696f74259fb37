"""What ``specmine experiment`` reads and writes: parameters, durations, results as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specmine.model.errors import InputError
from specmine.model.units import parse_duration

if TYPE_CHECKING:
    from specmine.experiments.results.prediction import Contention, Distribution
    from specmine.experiments.types import Experiment, Host


def listing(experiments: Mapping[str, Experiment]) -> list[dict[str, Any]]:
    """Return the experiments as JSON."""
    return [
        {
            "name": each.name,
            "summary": each.summary,
            "unit": each.unit,
            "cpus": each.cpus,
            "cpu_seconds": each.cost,
            "every_hours": each.hours if each.hours > 0 else None,
            "daemon": each.hours >= 0,
            "parameters": dict(each.parameters),
        }
        for each in experiments.values()
    ]


def known(name: str) -> str:
    """Return the name of an experiment.

    Raises
    ------
    InputError
        If there is none of this name.
    """
    from specmine.experiments.library import EXPERIMENTS  # noqa: PLC0415

    if name in EXPERIMENTS:
        return name
    raise InputError(f"there is no experiment {name!r}", remedy=f"known: {', '.join(EXPERIMENTS)}")


def parameters(names: Sequence[str], settings: Sequence[str]) -> dict[str, Any]:
    """Return parameters from ``KEY=VALUE``, each of the kind that its default has.

    Raises
    ------
    InputError
        If no experiment named has such a parameter, or the value is not one.
    """
    from specmine.experiments.library import EXPERIMENTS  # noqa: PLC0415

    defaults = {key: value for name in names for key, value in EXPERIMENTS[name].parameters.items()}
    found = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals or key not in defaults:
            names = ", ".join(defaults) or "none"
            raise InputError(f"no parameter {setting!r}", remedy=f"--set KEY=VALUE; parameters of these: {names}")
        found[key] = _parameter(key, text, defaults[key])
    return found


def _parameter(key: str, text: str, default: Any) -> Any:
    try:
        if isinstance(default, dict):
            return _reference(Path(text))
        if isinstance(default, int):
            return int(text) if text.isdigit() else parse_duration(text)
    except ValueError as error:
        raise InputError(f"{key}: {error}") from error
    if key == "disk" and not Path(text).is_dir():
        raise InputError(f"disk: {text} is no folder")
    return text


def _reference(path: Path) -> dict[str, Any]:
    """Return the times of fixed work from the JSON of ``virtualization-constant`` on another machine."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        evidence = document["evidence"]
        return {
            "seconds": {str(name): float(each) for name, each in evidence["seconds"].items()},
            "work": evidence["work"],
        }
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"reference: {path} is no result of virtualization-constant ({error})") from error


def shown(entry: Mapping[str, Any], host: Host, now_s: float) -> dict[str, Any]:
    """Return the result of an entry to show: the last valid one, marked where it no longer holds, else the last."""
    from specmine.experiments.results.document import stale_reason  # noqa: PLC0415

    result = dict(entry["valid"] or entry["last"])
    result["age_seconds"] = round(now_s - datetime.fromisoformat(result["time"]).timestamp(), 1)
    result["skipped"] = entry["skipped"]
    result["last_try"] = {
        "time": entry["last"]["time"],
        "valid": entry["last"]["valid"],
        "reason": entry["last"]["reason"],
    }
    stale = stale_reason(result, host)
    if result["valid"] and stale:
        result |= {"valid": False, "reason": {"code": "stale", "text": stale, "remedy": "run it again"}}
    return result


def unmeasured(name: str, host: Host) -> dict[str, Any]:
    """Return what there is to show of an experiment that has not run here: its form, without a value."""
    from specmine.experiments.library import EXPERIMENTS  # noqa: PLC0415
    from specmine.experiments.results.document import skipped  # noqa: PLC0415
    from specmine.model.function import Reason  # noqa: PLC0415

    reason = Reason(
        code="never-measured", text="it has not run on this host yet", remedy=f"specmine experiment run {name}"
    )
    result = skipped(EXPERIMENTS[name], reason, host, utc_ns=0, now_ns=0)
    return {**result, "time": None, "age_seconds": None, "skipped": None, "last_try": None}


def value_of(entries: Mapping[str, Any], name: str, host: Host) -> float | None:
    """Return the value of an experiment if it holds on this host."""
    from specmine.experiments.results.document import stale_reason  # noqa: PLC0415

    entry = entries.get(name)
    if not entry or not entry["valid"] or stale_reason(entry["valid"], host):
        return None
    value = entry["valid"]["value"]
    return float(value) if isinstance(value, int | float) else None


def measured(path: Path, function: str | None) -> Distribution:
    """Return durations from CSV, or times on CPU (where not known: durations) from the JSON of ``specmine show``.

    Raises
    ------
    InputError
        If the file holds none.
    """
    from specmine.experiments.results.prediction import distribution  # noqa: PLC0415

    try:
        with path.open("rb") as file:
            is_document = file.read(64).lstrip()[:1] == b"{"
        found = _of_document(json.loads(path.read_bytes()), function) if is_document else _of_csv(path, function)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"no durations in {path}: {error}") from error
    if not found[0]:
        raise InputError(f"no durations of {function or 'any function'} in {path}")
    return distribution(*found)


def _of_csv(path: Path, function: str | None) -> tuple[list[float], list[float]]:
    from specmine.analysis.lifetimes.from_csv import TIMED, read_calls  # noqa: PLC0415

    lifetimes = read_calls(path, required=TIMED).by_lifetime(warmup=False)
    durations = [1e-9 * ns for each in lifetimes if function in (None, each.function) for ns in each.sample.lower]
    return durations, [1.0] * len(durations)


def _of_document(document: Mapping[str, Any], function: str | None) -> tuple[list[float], list[float]]:
    from specmine.analysis.histogram_bins import histogram_bins  # noqa: PLC0415

    listed = document.get("functions", [document])
    chosen = [each for each in listed if function in (None, each["function"])]
    if len(chosen) != 1:
        raise ValueError(f"{len(chosen)} functions match, name one with --function")
    entry = chosen[0]
    # waiting is not what the calls need: time on CPU is the same whatever else ran
    own = (entry.get("on_cpu") or {}).get("histogram") or entry.get("histogram")
    bins = histogram_bins(own, float(entry.get("bias_seconds") or 0.0))
    return [(low + high) / 2 for low, high, _ in bins], [calls for _, _, calls in bins]


def prediction_document(alone: Distribution, forecast: Distribution, how: Contention) -> dict[str, Any]:
    """Return a prediction as JSON."""
    return {
        "schema": "specmine.prediction/1",
        "beside": {"rivals": how.competitors, "cores": how.cores, "slice_seconds": how.slice_s},
        "alone": _summary(alone),
        "predicted": _summary(forecast),
        "delayed_share": float(f"{forecast.above(float(alone.seconds[-1]) + how.slice_s / 2):.6g}"),
    }


def _summary(each: Distribution) -> dict[str, float]:
    values = {"mean": each.mean, "median": each.quantile(0.5), "p95": each.quantile(0.95), "p99": each.quantile(0.99)}
    return {f"{name}_seconds": float(f"{value:.6g}") for name, value in values.items()}
