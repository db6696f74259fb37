"""Which slowdowns of a function would be found, and how soon: for one function, and counted for all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from specmine.analysis.documents import Entry
from specmine.model.text import age, count, plural

from .states import FINISHED, NOT_CALLED, group_of

LONGEST_S = 900.0
"""Later than this, twice the time counts as not found."""
_UNWATCHED = ("waits for budget", "waits", "takes little time", "learning", "unstable", NOT_CALLED)


def sentence(entry: Entry) -> str:
    """Return what would be found of a function; '' where the daemon did not say, as in a store."""
    if entry.get("state") not in FINISHED:
        watched = group_of(entry) not in _UNWATCHED
        return "" if watched else "A slowdown of it would not be found yet: nothing is asserted of it"
    known: Any = entry.get("detectable")
    if not isinstance(known, dict):
        return ""
    return _of_asserted(known) if _is_known(known) else _too_early(known)


def _too_early(known: Any) -> str:
    missing, apart_s = known["windows_needed"] - known["windows"], float(known.get("window_seconds") or 0.0)
    wait = f"; about {age(60 * max(1, round(missing * apart_s / 60)))} more" if apart_s else ""
    return (
        f"Which slowdown would be found is not known before {known['windows_needed']} windows: "
        f"{known['windows']} are there{wait}"
    )


def _of_asserted(known: Any) -> str:
    ratio, doubled = known.get("ratio"), known.get("doubled_seconds")
    if ratio is not None:
        told = f"A slowdown of {ratio:.2g}x would be found within {age(known['within_seconds'])} in half of the cases"
        if doubled is not None and doubled > known["within_seconds"]:
            return f"{told}, twice as slow within {age(doubled)}"
        return f"{told}, smaller ones later"
    if doubled is not None:
        return f"Twice as slow would be found within {age(doubled)} in half of the cases, smaller slowdowns later"
    return f"Twice as slow would not be found within {age(LONGEST_S)}: it has too few calls, or they vary too much"


def hides_twice_as_slow(entry: Entry) -> bool:
    """Return whether it is known that twice the time would not be found soon."""
    known: Any = entry.get("detectable")
    return isinstance(known, dict) and _is_known(known) and not known.get("doubled_seconds")


def counted(entries: Sequence[Entry]) -> str:
    """Return in how many of the functions with an assertion twice as slow would be found; '' where that is not told."""
    told = [each["detectable"] for each in entries if isinstance(each.get("detectable"), dict)]
    spans = [each.get("doubled_seconds") for each in told if _is_known(each)]
    early = len(told) - len(spans)
    if not spans:
        functions = f"of {plural(early, 'function')}: watched too briefly"
        return f"How soon twice as slow would be found is not known yet {functions}" if early else ""
    first = min(each["within_seconds"] for each in told)
    soon = sum(each is not None and each <= first for each in spans)
    later = sum(each is not None and each > first for each in spans)
    never = len(spans) - soon - later
    parts = [f"Twice as slow would be found within {age(first)} in {count(soon)} of {plural(len(told), 'function')}"]
    parts += [f"within {age(LONGEST_S)} in {count(later)} more"] if later else []
    parts += [f"later or not at all in {count(never)}"] if never else []
    parts += [f"not known yet of {count(early)}"] if early else []
    return ", ".join(parts)


def _is_known(known: Any) -> bool:
    return bool(known.get("windows", 0) >= known.get("windows_needed", 0))
