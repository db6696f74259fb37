"""How durations went over the last hours, and what is normal beside what is now: from the windows of a store."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from specmine.mining.assertions.behaviour_windows import calls_of_formula, windows_of_formula
from specmine.mining.assertions.expression import Formula, from_records, shared_names
from specmine.mining.levels.estimate import WINDOW_CALLS, plain_level
from specmine.mining.levels.window import windows_of
from specmine.model.batch import Lifetime, boot_of
from specmine.model.histogram import Histogram
from specmine.model.json_codec import encode
from specmine.model.observation import Observation
from specmine.model.violation import Violation, ViolationState
from specmine.store import Build, Host, Store, StoredViolation

from .levels import quantiles
from .timestamps import rfc3339

SCHEMA = "specmine.trend/1"
POINTS = 120
"""Parts of the time asked for: a point each, if a window lies in it."""
NOW_NS = 600 * 10**9
"""Windows that ended within so long are now, unless a change began at another time."""
MOST_WINDOWS = 1_000
"""Of each function and kind."""
SHORT_POINTS, SHORT_WINDOWS = 24, 90
"""Of a small picture: parts of the time, and windows of each function and kind."""
BEHAVIOUR_WINDOWS = 60
"""Newest windows of the normal time, and of now, whose calls are told by behaviour."""
MOST_STARTS = 20
MOST_BUILDS = 20
"""Keys of one function."""
MOST_TRENDS = 40
"""Functions that are asked for at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Dated:
    """A window with its times in UTC, ns."""

    begin: int
    end: int
    window: Observation

    @property
    def middle(self) -> int:
        """The middle of the window."""
        return (self.begin + self.end) // 2


def stated_formulas(document: Mapping[str, Any] | None, functions: Sequence[str]) -> dict[str, Formula]:
    """Return the behaviours that a specification states of a function: expression to formula, {} for a single one."""
    found: dict[str, Formula] = {}
    for entry in (document or {}).get("functions") or ():
        parts = entry.get("behaviours") or ()
        if entry.get("key") in functions and len(parts) > 1:
            found |= {str(each["expression"]): from_records(each["formula"]) for each in parts}
    return found


def trend_of(
    store: Store,
    functions: Sequence[str],
    now_utc_ns: int | None,
    length_ns: int,
    behaviours: Mapping[str, Formula] = MappingProxyType({}),
) -> dict[str, Any]:
    """Return ``specmine.trend/1`` of one function, which may have several keys: one of each build.

    Normal are the windows before the change that stands open, now those since; without one, the last ten minutes are
    now. What recovered is left out. What was acknowledged is the new normal, and nothing before it counts.

    Parameters
    ----------
    store : Store
    functions : sequence of str
        Keys of the function.
    now_utc_ns : int, optional
        By default the end of the newest window.
    length_ns : int
        How far back to look.
    behaviours : mapping
        Expression to formula: the calls of each are told, too.

    Returns
    -------
    dict
        ``points``: quantiles in s of each part of the time; ``starts``: when processes of which build were first seen;
        ``normal`` and ``now``: ``calls``, ``quantiles`` and ``histogram`` as ``[[bucket, calls], ...]``, and the same
        of each of the ``behaviours``.
    """
    offsets = {each.boot_id: each.utc_offset_ns for each in store.read(Host)}
    read = [each for key in functions for each in store.read(Observation, newest=MOST_WINDOWS, function=key)]
    every = sorted((_dated(each, offsets) for each in read), key=lambda each: (each.end, each.begin))
    if now_utc_ns is None:
        now_utc_ns = max((each.end for each in every), default=0)
    begin = now_utc_ns - length_ns
    shown = [each for each in every if begin <= each.middle and each.end <= now_utc_ns]
    changes = [each.violation for key in functions for each in store.read(StoredViolation, function=key)]
    normal, now = _divided(every, changes, now_utc_ns)
    return {
        "schema": SCHEMA,
        "begin": rfc3339(begin),
        "end": rfc3339(now_utc_ns),
        "points": _points(shown, begin, length_ns),
        "starts": _starts(store, shown, offsets, begin, now_utc_ns),
        "normal": _sum(normal, behaviours),
        "now": _sum(now, behaviours),
    }


def trends_of(store: Store, functions: Sequence[str], now_utc_ns: int | None, length_ns: int) -> dict[str, Any]:
    """Return ``specmine.trends/1``: the medians of many functions, for a small picture of each.

    Parameters
    ----------
    store : Store
    functions : sequence of str
        Keys.
    now_utc_ns : int, optional
        By default the end of the newest window.
    length_ns : int
        How far back to look at most; it begins with the oldest window, if that is later.

    Returns
    -------
    dict
        ``begin``, ``end``; ``functions``: key to ``[[seconds after begin, median in s], ...]``.
    """
    offsets = {each.boot_id: each.utc_offset_ns for each in store.read(Host)}
    read = {
        key: [_dated(each, offsets) for each in store.read(Observation, newest=SHORT_WINDOWS, function=key)]
        for key in functions
    }
    if now_utc_ns is None:
        now_utc_ns = max((each.end for windows in read.values() for each in windows), default=0)
    first = min((each.begin for windows in read.values() for each in windows), default=now_utc_ns)
    begin = max(now_utc_ns - length_ns, first)
    length_ns = max(1, now_utc_ns - begin)
    return {
        "schema": "specmine.trends/1",
        "begin": rfc3339(begin),
        "end": rfc3339(now_utc_ns),
        "functions": {key: _medians(windows, begin, now_utc_ns, length_ns) for key, windows in read.items()},
    }


def _medians(windows: Sequence[_Dated], begin: int, end: int, length_ns: int) -> list[list[float]]:
    parts: dict[int, list[Observation]] = defaultdict(list)
    for each in windows:
        if begin <= each.middle <= end:
            parts[min(SHORT_POINTS - 1, (each.middle - begin) * SHORT_POINTS // length_ns)].append(each.window)
    found = []
    for part, members in sorted(parts.items()):
        timed = sum(each.timed for each in members)
        if timed < WINDOW_CALLS["p50"]:
            continue
        bias_ns = sum(each.bias_ns * each.timed for each in members) / timed
        median_ns = max(0.0, Histogram.sum(each.histogram for each in members).quantile(0.5) - bias_ns)
        found.append([(part + 0.5) / SHORT_POINTS * length_ns * 1e-9, median_ns * 1e-9])
    return found


def _dated(window: Observation, offsets: Mapping[str, int]) -> _Dated:
    offset = offsets.get(boot_of(window.lifetime), 0)
    return _Dated(begin=window.start_ns + offset, end=window.end_ns + offset, window=window)


def _points(windows: Sequence[_Dated], begin: int, length_ns: int) -> list[dict[str, Any]]:
    parts: dict[int, list[_Dated]] = defaultdict(list)
    for each in windows:
        parts[(each.middle - begin) * POINTS // length_ns].append(each)
    found = []
    for _, part in sorted(parts.items()):
        level = plain_level(windows_of(each.window for each in part), WINDOW_CALLS)
        if level.calls:
            stated = {name: each["seconds"] for name, each in quantiles(level).items()}
            found.append(
                {
                    "begin": rfc3339(max(begin, min(each.begin for each in part))),
                    "end": rfc3339(max(each.end for each in part)),
                    "calls": level.calls,
                    **{name: stated.get(name) for name in WINDOW_CALLS},
                }
            )
    return found


def _divided(
    windows: Sequence[_Dated], changes: Sequence[Violation], now_utc_ns: int
) -> tuple[list[Observation], list[Observation]]:
    """Return the windows of the normal time, and those of now."""
    standing = [each.since_ns for each in changes if each.state is ViolationState.OPEN]
    accepted = [each.since_ns for each in changes if each.state is ViolationState.ACKNOWLEDGED]
    over = [(each.since_ns, each.closed_ns or now_utc_ns) for each in changes if each.state is ViolationState.RECOVERED]
    change = min(standing, default=now_utc_ns - NOW_NS)
    first = max((each for each in accepted if each < change), default=0)
    normal = [
        each.window
        for each in windows
        if first <= each.begin
        and each.end <= change
        and not any(began < each.end and each.begin < ended for began, ended in over)
    ]
    return normal, [each.window for each in windows if change <= each.middle]


def _sum(windows: Sequence[Observation], behaviours: Mapping[str, Formula]) -> dict[str, Any]:
    level = plain_level(windows_of(windows))
    calls = sum(each.timed for each in windows)
    return {
        "calls": calls,
        "quantiles": quantiles(level),
        "histogram": encode(Histogram.sum(each.histogram for each in windows)),
        "bias_seconds": sum(each.bias_ns * each.timed for each in windows) * 1e-9 / calls if calls else 0.0,
        "behaviours": _by_behaviour(windows, behaviours),
    }


def _by_behaviour(windows: Sequence[Observation], behaviours: Mapping[str, Formula]) -> list[dict[str, Any]]:
    told = [each for each in windows if each.paths or each.inside][-BEHAVIOUR_WINDOWS:]
    shared = shared_names(part.path for each in told for part in each.paths) if behaviours else frozenset()
    found = []
    for expression, formula in behaviours.items():
        histogram = Histogram.sum(calls_of_formula(each, formula, shared) for each in told)
        level = plain_level(windows_of_formula(told, formula, shared))
        found.append(
            {
                "expression": expression,
                "calls": histogram.total,
                "quantiles": quantiles(level) if histogram.total else {},
                "histogram": encode(histogram),
            }
        )
    return found


def _starts(
    store: Store, windows: Sequence[_Dated], offsets: Mapping[str, int], begin: int, end: int
) -> list[dict[str, Any]]:
    """Return when the lifetimes were first seen that windows belong to, the newest if there are many."""
    ids = {each.window.lifetime for each in windows}
    labels = {each.build_id: each.label for each in store.read(Build)}
    found: list[dict[str, Any]] = []
    dated = [(one.start_ns + offsets.get(one.boot_id, 0), one) for one in store.read(Lifetime) if one.id in ids]
    for at, each in sorted(dated, key=lambda pair: (pair[0], pair[1].id)):
        if begin <= at <= end:
            label = labels.get(each.build_id) or None
            found.append({"at": rfc3339(at), "program": each.called, "build_id": each.build_id, "label": label})
    return found[-MOST_STARTS:]
