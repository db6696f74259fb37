"""What specmine's own processes may use: the limit holds over any ten minutes after the first."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from specmine.model.text import share

FIRST_S = 600.0
"""After a start more is allowed for so long: loading, and the first functions."""


def up_s(status: Mapping[str, Any]) -> float | None:
    """Return for how long the daemon has run, s; None where it is not known."""
    begun, now = status.get("started"), status.get("updated")
    if not isinstance(begun, str) or not isinstance(now, str):
        return None
    return (datetime.fromisoformat(now) - datetime.fromisoformat(begun)).total_seconds()


def is_starting(status: Mapping[str, Any]) -> bool:
    """Return whether the first ten minutes are not over."""
    seconds = up_s(status)
    return seconds is not None and seconds < FIRST_S


def own_limit(status: Mapping[str, Any]) -> str:
    """Return ``limit 1 %``; in the first ten minutes also what loading took, later what answers took if it is much."""
    own = (status.get("budget") or {}).get("agent") or {}
    limit = f"limit {share(float(own.get('promised_ratio') or 0.0))}"
    if not is_starting(status):
        spent, answers = float(own.get("spent_seconds") or 0.0), float(own.get("answers_seconds") or 0.0)
        much = spent and answers > spent / 3
        return f"{limit}; {share(answers / spent)} of it for answers to requests" if much else limit
    loading = own.get("start_seconds")
    told = f", {float(loading):.1f} s of it to load" if loading else ""
    return f"{limit} after the first 10 min{told}"
