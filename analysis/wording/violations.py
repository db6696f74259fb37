"""Which violations still stand, and which of them somebody has to look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Entry = Mapping[str, Any]
"""One violation of ``specmine.violations/1``."""


def is_open(entry: Entry) -> bool:
    """Return whether a violation still stands."""
    return entry.get("state") == "open"


def is_problem(entry: Entry) -> bool:
    """Return whether an open violation means that calls are slower."""
    return is_open(entry) and entry.get("direction") == "slower"


def has_open_cause(entry: Entry, entries: Sequence[Entry]) -> bool:
    """Return whether another violation that still stands explains this one: its function is a line of the other's."""
    key = (entry.get("because") or {}).get("key")
    return any(is_open(other) and other.get("key") == key for other in entries) if key else False


def with_consequences(found: Sequence[Entry], entries: Sequence[Entry]) -> list[Entry]:
    """Return violations with those that stand only through them: one problem is acknowledged as one."""
    chosen = list(found)
    for cause in chosen:  # grows meanwhile: a consequence may explain another one
        ids = {str(each.get("id")) for each in chosen}
        chosen += [
            each
            for each in entries
            if is_open(each)
            and (each.get("because") or {}).get("key") == cause.get("key")
            and str(each.get("id")) not in ids
        ]
    return chosen


def is_of_data(entry: Entry) -> bool:
    """Return whether calls work longer though as many come by the same callers: the data or the configuration."""
    cause = entry.get("cause") or {}
    load = (cause.get("evidence") or {}).get("load") or {"changed": True}
    return cause.get("kind") == "load" and entry.get("what") != "path" and not load["changed"]


def growth_of(entry: Entry) -> str:
    """Return what has most of the difference, by timed calls and by samples, in sentences; '' if that is not known."""
    cause = entry.get("cause") or {}
    growth, more = cause.get("growth"), cause.get("more_samples")
    told = []
    if isinstance(growth, dict):
        told.append(f"{'Callee' if growth.get('kind') == 'callee' else 'Waits'}: {growth.get('text')}.")
    if isinstance(more, dict):
        told.append(str(more.get("text")))
    return " ".join(told)
