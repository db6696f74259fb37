"""One violation as a card: what, how much, since when, where, why, what else is slower with it, what to do."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from specmine.analysis.wording.levels import normal_range, seconds
from specmine.analysis.wording.violations import growth_of, is_open
from specmine.model.text import share
from specmine.web import words

Entry = Mapping[str, Any]
_QUANTILES = {"p50": "median", "p90": "p90", "p99": "p99", "mean": "mean"}
_CAUSES = {
    "callee": "A callee",
    "wait": "Waiting",
    "code": "Code",
    "load": "Load",
    "host": "Host",
    "unknown": "Not known",
}
_FACTS = {"wait": "waiting"}


def card(entry: Entry, now: datetime | None) -> dict[str, Any]:
    """Return what a card says."""
    cause = entry.get("cause") or {}
    kind = str(cause.get("kind") or "unknown")
    began = entry.get("build_started")
    return {
        "entry": entry,
        "open": is_open(entry),
        "kind": "slow" if entry.get("direction") == "slower" else "fast" if entry.get("direction") == "faster" else "",
        "since": words.moment(entry.get("since"), now),
        "ago": words.ago(entry.get("since"), now),
        "began": str(began["text"]) if began else "",
        "found": words.moment(entry.get("found"), now),
        "closed": words.moment(entry.get("closed"), now),
        "quantiles": quantiles(entry),
        "where": _where(entry),
        "cause_head": "Cause" if cause.get("proven") or kind == "unknown" else "Likely cause",
        "cause_kind": _CAUSES.get(kind, kind),
        "cause_text": " ".join(filter(None, (str(cause.get("text") or ""), growth_of(entry)))),
        "facts": [
            {
                "changed": bool(each.get("changed")),
                "what": _FACTS.get(str(each.get("what")), str(each.get("what"))),
                "text": str(each.get("text")),
            }
            for each in cause.get("facts") or ()
        ],
        "address": words.function_address(entry),
        "link": words.violation_address(entry),
    }


def quantiles(entry: Entry) -> list[dict[str, str]]:
    """Return observed beside normal, the quantile that the violation is about first."""
    observed, expected = entry.get("observed") or {}, entry.get("expected") or {}
    ordered = sorted(_QUANTILES, key=lambda name: (name != entry.get("quantile"), name))
    return [
        {
            "name": _QUANTILES[name],
            "now": seconds(observed, name),
            "normal": normal_range(expected, name) or seconds(expected, name),
        }
        for name in ordered
        if observed.get(name) and expected.get(name)
    ]


def _where(entry: Entry) -> dict[str, Any]:
    expression = str(entry.get("expression") or "true")
    lost = float(entry.get("time_share") or 0.0)
    return {
        "callers": list(entry.get("callers") or ()),
        "condition": "" if expression == "true" else expression,
        "cost": f"{share(lost)} of the program's time" if lost >= 0.005 else "",
    }
