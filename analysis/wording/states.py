"""What people read about where a function stands: one or two plain words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from specmine.analysis.documents import Entry, is_recorded
from specmine.model.text import age, count, escaped, plural

FINISHED = ("single", "explained", "unexplained")
"""States in which something is asserted."""
STATES = (
    "explained", "single", "unexplained", "explaining", "timing", "waiting", "candidate", "unstable", "refused",
    "excluded",
)  # fmt: skip
"""All states of the JSON, most finished first."""
FEW_CALLS = 200
"""A window of fewer calls decides nothing."""
VIOLATED = "violated"
NOT_CALLED = "no call yet"
"""Its calls are awaited: one that began before it was watched, as that of ``main`` did, is not seen."""
OLD_S = 300.0
"""A newest window that is older is no present: its age is shown with what it says."""
LISTED = frozenset({VIOLATED, "holds", "known", "not decided", "too few calls", "learning", "unstable"})
"""Groups whose functions are always listed."""
_WAITING = {
    "budget": "waits for budget",
    "slots": "waits for budget",
    "too-fast": "waits for budget",
    "slow": "too few calls",
    "cold": "takes little time",
    "one-path": "waits",
    "unnamed": "left out",
}
_SETTLED = {"unstable": "unstable", "refused": "cannot be timed", "excluded": "left out"}
_ORDER = (
    VIOLATED, "holds", "known", "not decided", "too few calls", "learning", "unstable", "waits for budget", "waits",
    NOT_CALLED, "takes little time", "cannot be timed", "left out",
)  # fmt: skip
"""Groups in the order in which they are listed and counted."""
UNDECIDED = ("known", "not decided", "too few calls")
"""Groups of functions with an assertion of which the newest calls do not say whether it holds."""
_PLURAL = {
    "holds": "hold",
    "waits for budget": "wait for budget",
    "waits": "wait",
    "takes little time": "take little time",
    NOT_CALLED: "without a call yet",
}


def group_of(entry: Entry) -> str:
    """Return the group of functions that one belongs to: holds, violated, learning, waits for budget ..."""
    state, code = str(entry.get("state")), _code(entry)
    if state in FINISHED:
        return _asserted_group(entry)
    if state in ("timing", "explaining"):
        if entry.get("calls_counted") == 0 and not entry.get("timed"):
            return NOT_CALLED
        return "too few calls" if code == "slow" else "learning"
    return _SETTLED.get(state) or _WAITING.get(code, "waits")


def words(entry: Entry) -> str:
    """Return where a function stands: ``holds``, ``2.1x slower``, ``learning, 4 of 5``, ``holds, seen 19m ago``."""
    seen = entry.get("newest_window_age_seconds")
    old = f", seen {age(seen)} ago" if isinstance(seen, int | float) and seen >= OLD_S else ""
    return _words(entry) + old


def _words(entry: Entry) -> str:
    group = group_of(entry)
    if group == VIOLATED:
        return worst_change(entry) or VIOLATED
    if _code(entry) == "learned-while-slower":
        return "learned while slow"
    if group == "learning":
        found = re.match(r"(\d+) of (\d+)\b", str((entry.get("reason") or {}).get("text", "")))
        if found:
            return f"learning, {found[1]} of {found[2]}"
        return "learning callers" if entry.get("state") == "explaining" else group
    return group


def worst_change(entry: Entry) -> str:
    """Return what the open violation says that matters most: one that is slower first, then the largest factor."""
    found = open_violations(entry)
    if not found:
        return ""
    worst = max(found, key=lambda each: (each.get("direction") == "slower", _size(each)))
    return escaped(str(worst.get("change") or f"{_size(worst):.2g}x {worst.get('direction')}"))


def open_violations(entry: Entry) -> list[Entry]:
    """Return the violations of a function that are open."""
    return [each for each in entry.get("violations") or [] if each.get("state") == "open"]


def change_of(entry: Entry) -> str:
    """Return ``slower`` where an open violation says so, ``faster`` where all do; '' without one."""
    directions = [str(each.get("direction")) for each in open_violations(entry)]
    return "slower" if "slower" in directions else "faster" if "faster" in directions else ""


def steps_done(entry: Entry) -> tuple[int, int]:
    """Return how many of the steps to an assertion are done, and of how many."""
    if entry.get("state") in FINISHED or entry.get("state") == "explaining":
        return 5, 5
    found = re.match(r"(\d+) of (\d+)\b", str((entry.get("reason") or {}).get("text", "")))
    return (min(int(found[1]), int(found[2])), int(found[2])) if found else (0, 5)


def counted(entries: Sequence[Entry]) -> str:
    """Return how many functions are in which group: ``21 functions: 16 hold, 4 violated, 1 learning.``"""
    groups = Counter(map(group_of, entries))
    parts = [f"{count(groups[each])} {_PLURAL.get(each, each)}" if groups[each] > 1 else f"1 {each}"
             for each in _ORDER if groups[each]]  # fmt: skip
    return f"{plural(len(entries), 'function')}: {', '.join(parts)}." if parts else "No function is known yet."


def rank_of(entry: Entry) -> int:
    """Return the place of a function's group: what is wrong first, then what holds."""
    return _ORDER.index(group_of(entry))


def _asserted_group(entry: Entry) -> str:
    verdict: Any = entry.get("verdict")
    if open_violations(entry) or verdict == VIOLATED:
        return VIOLATED
    if verdict == "holds":
        return "holds"
    if is_recorded(entry) or not entry.get("checked"):
        return "known"
    most = max((int(each.get("calls") or 0) for each in entry.get("checks") or ()), default=0)
    return "too few calls" if most < FEW_CALLS else "not decided"


def _code(entry: Entry) -> str:
    return str((entry.get("reason") or {}).get("code", ""))


def _size(violation: Entry) -> float:
    factor = float(violation.get("factor") or 1.0)
    return 1 / factor if 0 < factor < 1 else factor
