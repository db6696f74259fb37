"""The host: what watching costs, which programs are watched, what is not seen and why, what the host does to timing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specmine.analysis.charts.bars import limit_bar
from specmine.analysis.wording.detectable import counted as found_when
from specmine.analysis.wording.losses import words_of
from specmine.analysis.wording.own_cost import is_starting, own_limit
from specmine.analysis.wording.reasons import causes, remedy
from specmine.analysis.wording.states import FINISHED, NOT_CALLED, group_of
from specmine.analysis.wording.typesetting import typeset
from specmine.model.text import age, count, share
from specmine.web import words
from specmine.web.documents import Documents, Entry

from .frame import frame

_MOST_BLIND = 40
_PROPERTIES = {
    "steal_ratio": "CPU time stolen by other guests",
    "noise_ratio": "CPU time taken by the system's own work",
    "slice_seconds": "Timeslice of the scheduler",
    "quota_seconds": "CPU limit in each period",
    "period_seconds": "Period of the CPU limit",
    "hypervisor_slice_seconds": "Timeslice of the hypervisor",
    "sleep_overshoot_seconds": "Sleeps last longer by",
    "pair_capacity": "Two threads on one core, together",
    "virtualization_overhead": "What virtualisation costs",
}


def page(documents: Documents) -> dict[str, Any]:
    """Return the values of the template ``hosts.html``."""
    status = documents.status
    return {
        **frame(documents, "/hosts", f"Host {documents.host}".strip()),
        "status": status,
        "tiles": _tiles(documents),
        "programs": _programs(documents),
        "blind": _blind(documents),
        "found_when": found_when(documents.functions),
        "properties": _properties(documents),
        "notes": list(status.get("notes") or ()),
        "lost": {words_of(key, number): count(number) for key, number in (status.get("lost") or {}).items() if number},
        "probes_off": status.get("probes") == "off",
    }


def _tiles(documents: Documents) -> list[dict[str, Any]]:
    budget = documents.status.get("budget") or {}
    overhead, agent = budget.get("overhead") or {}, budget.get("agent") or {}
    tiles = []
    if overhead.get("spent_ratio") is not None:
        tiles.append(
            {
                "value": share(overhead["spent_ratio"]),
                "text": f"added to the programs' CPU time since the start; limit {share(overhead['promised_ratio'])}",
                "bar": limit_bar(overhead["spent_ratio"], overhead["promised_ratio"]),
            }
        )
    if agent.get("spent_ratio") is not None:
        starting = is_starting(documents.status)
        tiles.append(
            {
                "value": share(agent["spent_ratio"]),
                "text": f"of one CPU for specmine itself since the start; {own_limit(documents.status)}",
                "bar": "" if starting else limit_bar(agent["spent_ratio"], agent["promised_ratio"]),
            }
        )
    if documents.status.get("resident_bytes"):
        tiles.append(
            {
                "value": f"{documents.status['resident_bytes'] / 1e6:.0f} MB",
                "text": "memory of its processes",
                "bar": "",
            }
        )
    called = [each for each in documents.functions if group_of(each) != NOT_CALLED]
    busy = sum(float(each.get("time_share") or 0.0) for each in called)
    if busy:
        known = sum(float(each.get("time_share") or 0.0) for each in called if each.get("state") in FINISHED)
        tiles.append(
            {
                "value": share(known / busy),
                "text": "of the time that was sampled is in functions with a known normal",
                "bar": "",
            }
        )
    return tiles


def _programs(documents: Documents) -> list[dict[str, Any]]:
    watched: dict[str, int] = {}
    for each in documents.functions:
        if each.get("state") not in ("refused", "excluded", "candidate"):
            watched[str(each.get("program") or "")] = watched.get(str(each.get("program") or ""), 0) + 1
    builds: dict[str, list[str]] = {}
    for each in documents.status.get("lifetimes") or ():
        builds.setdefault(str(each.get("program")), []).append(str(each.get("build_id"))[:8])
    return [
        {
            "name": each["program"],
            "builds": ", ".join(dict.fromkeys(builds.get(str(each["program"]), ()))),
            "processes": count(each.get("processes") or 0),
            "last_call": words.ago(each.get("last_call"), documents.at) or "none",
            "functions": count(watched.get(str(each["program"]), 0)),
        }
        for each in documents.status.get("watched") or ()
    ]


def _blind(documents: Documents) -> dict[str, Any]:
    """Return functions without a known normal, those that take most time first."""
    unknown = [each for each in documents.functions if each.get("state") not in FINISHED]
    unknown.sort(key=lambda each: -float(each.get("time_share") or 0.0))
    return {"rows": [_blind_row(each) for each in unknown[:_MOST_BLIND]], "more": max(0, len(unknown) - _MOST_BLIND)}


def _blind_row(entry: Entry) -> dict[str, Any]:
    return {
        "entry": entry,
        "address": words.function_address(entry),
        "share": share(entry["time_share"]) if entry.get("time_share") else "–",
        "state": group_of(entry),
        "why": "; ".join(causes(entry)),
        "help": remedy(entry),
    }


def _properties(documents: Documents) -> list[dict[str, str]]:
    environment: Mapping[str, Any] = (
        documents.status.get("environment") or documents.specification.get("environment") or {}
    )
    measured = environment.get("properties") or {}
    rows = []
    for key, text in _PROPERTIES.items():
        value, how = environment.get(key), measured.get(key) or {}
        if value is None:
            continue
        shown = share(value) if key.endswith("_ratio") else _plain(key, float(value))
        rows.append({"name": text, "value": shown, "when": words.ago(how.get("time"), documents.at)})
    return rows


def _plain(key: str, value: float) -> str:
    if key.endswith("_seconds"):
        return age(value) if value >= 100 else typeset(f"{value * 1e3:.3g} ms")
    return f"{value:.3g}"
