"""The fleet as metrics, in Prometheus' text format: a file that node_exporter's textfile collector reads. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MOST_SERIES = 500
"""Of functions, builds, or hosts that stand out; those that matter most are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetMetric:
    """A family of series."""

    name: str
    kind: str
    help: str
    labels: tuple[str, ...] = ()


METRICS = tuple(
    FleetMetric(name=f"specmine_fleet_{name}", kind=kind, labels=labels, help=text)
    for name, kind, labels, text in (
        ("hosts", "gauge", ("state",), "Hosts that are active, silent for 15 minutes, quarantined or never seen."),
        ("inbox_pushes", "gauge", (), "Pushes that are not loaded yet."),
        ("inbox_oldest_seconds", "gauge", (), "Age of the oldest of them, 0 without one."),
        ("pushes_total", "counter", ("outcome",), "Pushes since the loader started, loaded or refused."),
        ("rows_total", "counter", (), "Rows loaded since the loader started."),
        ("functions", "gauge", (), "Functions that are known."),
        ("stated_functions", "gauge", (), "Functions of which many hosts together state something."),
        ("waiting_to_be_mined", "gauge", (), "Functions that wait for a process that mines."),
        ("assigned_duties", "gauge", ("purpose",), "Functions that hosts are asked to observe, added up, by purpose."),
        ("bytes", "gauge", (), "Size of the database."),
        ("level_bytes", "gauge", ("level",), "Size of a level."),
        ("outlier_hosts", "gauge", (), "Hosts that stand out."),
        ("outlier_host_factor_ratio", "gauge", ("host",), "How much longer calls take on a host that stands out."),
        ("changed_hosts", "gauge", (), "Hosts that became slower or faster than they were, and the others did not."),
        ("changed_host_factor_ratio", "gauge", ("host",), "How much longer calls take on such a host than before."),
        ("build_factor_ratio", "gauge", ("function", "module", "base", "new"),
         "How much longer a function takes with the new build, where that is sure."),
        ("between_hosts_ratio", "gauge", ("function", "module", "build"), "How far hosts differ in a function."),
        ("updated_timestamp_seconds", "gauge", (), "When this was written, by the database's clock."),
    )
)  # fmt: skip


def metrics_text(
    status: Mapping[str, Any], levels: Mapping[str, Any] | None, counted: Mapping[str, int], now_s: float
) -> str:
    """Return the file.

    Parameters
    ----------
    status : mapping
        ``specmine.fleet_status/1``.
    levels : mapping, optional
        ``specmine.fleet_levels/1``, if it is known.
    counted : mapping
        loaded, refused, rows: since the loader started.
    now_s : float
        UTC.
    """
    values: dict[str, Iterable[tuple[Sequence[str], float]]] = {
        "hosts": [((state,), number) for state, number in status["hosts"].items()],
        "inbox_pushes": [((), status["inbox"]["pushes"])],
        "inbox_oldest_seconds": [((), status["inbox"]["oldest_seconds"] or 0)],
        "pushes_total": [((outcome,), counted[outcome]) for outcome in ("loaded", "refused")],
        "rows_total": [((), counted["rows"])],
        "functions": [((), status["functions"])],
        "stated_functions": [((), status["sharing"]["stated"])],
        "waiting_to_be_mined": [((), status["sharing"]["waiting_to_be_mined"])],
        "assigned_duties": [((purpose,), number) for purpose, number in status["sharing"]["duties"].items()],
        "bytes": [((), status["bytes"])],
        "level_bytes": [((level,), each["bytes"]) for level, each in status["levels"].items()],
        "updated_timestamp_seconds": [((), now_s)],
        **(_of_levels(levels) if levels is not None else {}),
    }
    lines = []
    for each in METRICS:
        series = list(values.get(each.name.removeprefix("specmine_fleet_"), ()))[:MOST_SERIES]
        if series:
            lines += [f"# HELP {each.name} {each.help}", f"# TYPE {each.name} {each.kind}"]
            lines += [f"{each.name}{_labels(each.labels, given)} {float(value)!r}" for given, value in series]
    return "\n".join(lines) + "\n"


def _of_levels(levels: Mapping[str, Any]) -> dict[str, list[tuple[Sequence[str], float]]]:
    outliers, changed = levels["hosts_that_stand_out"], levels["hosts_that_changed"]
    names = ("function", "module", "base", "new")
    return {
        "outlier_hosts": [((), len(outliers))],
        "outlier_host_factor_ratio": [((each["host"],), each["factor"]) for each in outliers],
        "changed_hosts": [((), len(changed))],
        "changed_host_factor_ratio": [((each["host"],), each["factor"]) for each in changed],
        "build_factor_ratio": [
            ([each[name] for name in names], each["ratio"])
            for each in levels["builds"] if each["verdict"] in ("worse", "better")
        ],
        "between_hosts_ratio": [
            ([each[name] for name in ("function", "module", "build")], each["between_hosts_ratio"])
            for each in levels["functions"] if each["between_hosts_ratio"] is not None
        ],
    }  # fmt: skip


def _labels(names: Sequence[str], values: Sequence[str]) -> str:
    if not names:
        return ""
    pairs = (f'{name}="{_escaped(value)}"' for name, value in zip(names, values, strict=True))
    return f"{{{','.join(pairs)}}}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
