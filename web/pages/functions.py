"""All functions, a row each: state, calls a second, durations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any

from specmine.analysis.charts.axis import LogAxis, axis_over
from specmine.analysis.charts.distribution import axis_head, small_distribution
from specmine.analysis.charts.drawing import Drawing
from specmine.analysis.charts.trend import spark
from specmine.analysis.documents import is_recorded, place_of
from specmine.analysis.histogram_bins import histogram_bins
from specmine.analysis.wording.call_rate import call_rate
from specmine.analysis.wording.function_order import SORTS
from specmine.analysis.wording.levels import asserted, normal_range, present, seconds, uncertainty_of
from specmine.analysis.wording.states import change_of, counted, group_of
from specmine.analysis.wording.states import words as state_words
from specmine.analysis.wording.typesetting import or_dash
from specmine.model.text import age, count, share
from specmine.web import words
from specmine.web.documents import Documents, Entry

from .frame import frame

ROWS = 100
"""Rows on a page."""
KINDS = {"slower": "slow", "faster": "fast"}
"""Colours of what is not as asserted."""
HOURS = 6
"""The trend of a row is of so long at most."""
COLUMNS = (("name", "Function", ""), ("state", "State", ""), ("calls", "Calls/s", "r h1"), ("median", "Median", "r"),
           ("p99", "p99", "r"), ("time", "Share of time", "r h1"))  # fmt: skip


class Overview:
    """What a list needs of all functions of a specification: found once, since there may be thousands."""

    def __init__(self, specification: Mapping[str, Any], entries: Sequence[Entry]) -> None:
        """Begin; nothing is found before it is needed."""
        self.specification = specification
        self.entries = entries
        self._ordered: dict[str, list[Entry]] = {}
        self._rows: dict[tuple[int, LogAxis], dict[str, Any]] = {}

    def row(self, entry: Entry, axis: LogAxis) -> dict[str, Any]:
        """Return what a row says; what was drawn once is kept as long as the specification."""
        key = id(entry), axis
        if key not in self._rows:
            self._rows[key] = row(entry, axis)
        return self._rows[key]

    def ordered(self, sort: str) -> list[Entry]:
        """Return all functions in an order."""
        if sort not in self._ordered:
            self._ordered[sort] = sorted(self.entries, key=SORTS[sort])
        return self._ordered[sort]

    @cached_property
    def counted(self) -> str:
        """How many functions are in which group, in words."""
        return counted(self.entries)

    @cached_property
    def programs(self) -> list[str]:
        """The names of programs."""
        return sorted({str(each.get("program") or each.get("module") or "") for each in self.entries})

    @cached_property
    def headings(self) -> dict[int, str]:
        """The heading under which a function is listed, by the identity of its entry."""
        return {id(each): _heading(each) for each in self.entries}

    @cached_property
    def states(self) -> list[str]:
        """The groups of functions that there are."""
        return sorted({group_of(each) for each in self.entries})


def page(
    documents: Documents,
    query: Mapping[str, str],
    trends: Callable[[Sequence[str]], Mapping[str, Any]],
    overview: Overview | None = None,
) -> dict[str, Any]:
    """Return the values of the template ``functions.html``.

    Parameters
    ----------
    documents : Documents
    query : mapping
        ``program``, ``state``, ``q`` (part of a name), ``sort``, ``page``; what is not known is as if not given.
    trends : callable
        Returns ``specmine.trends/1`` of functions, {} where there are no windows.
    overview : Overview, optional
        What an earlier page found of the same documents.
    """
    overview = overview or Overview(documents.specification, documents.functions)
    sort = query.get("sort", "")
    sort = sort if sort in SORTS else "state"
    ordered = [each for each in overview.ordered(sort) if _matches(each, query)]
    last = max(1, -(-len(ordered) // ROWS))
    number = min(last, max(1, int(query["page"]) if query.get("page", "").isdecimal() else 1))
    shown = ordered[(number - 1) * ROWS : number * ROWS]
    axis = _axis(shown)
    known = trends([str(each["key"]) for each in shown if each.get("key") and present(each)])
    length_s = span_s(known)
    kept = {key: query.get(key, "") for key in ("program", "state", "q")}

    def link(**changed: object) -> str:
        return words.address("/functions", **{**kept, "sort": "" if sort == "state" else sort, **changed})

    return {
        **frame(documents, "/functions", "Functions"),
        "rows": _with_heads(
            [overview.row(each, axis) | {"trend": _trend(each, known, length_s)} for each in shown],
            Counter(overview.headings[id(each)] for each in ordered),
            sort,
        ),
        "trends": bool(length_s),
        "span": age(length_s),
        "all": len(overview.entries),
        "found": len(ordered),
        "counted": overview.counted,
        "columns": [
            {"name": text, "class": kind, "link": link(sort="" if name == "state" else name), "current": name == sort,
             "order": "ascending" if name == "name" else "descending"}
            for name, text, kind in COLUMNS
        ],
        "axis": axis_head(axis),
        "programs": overview.programs,
        "states": overview.states,
        "chosen": kept,
        "sort": sort,
        "page": number,
        "pages_found": last,
        "before": link(page=number - 1) if number > 1 else "",
        "after": link(page=number + 1) if number < last else "",
    }  # fmt: skip


def row(entry: Entry, axis: LogAxis) -> dict[str, Any]:
    """Return what a row says."""
    shown, known_to = present(entry), uncertainty_of(entry)
    group = group_of(entry)
    bins = histogram_bins(entry.get("histogram"), float(entry.get("bias_seconds") or 0.0))
    return {
        "entry": entry,
        "address": words.function_address(entry),
        "program": _program(entry),
        "state": state_words(entry),
        "kind": KINDS.get(change_of(entry), "" if group == "holds" else "mute"),
        "rate": call_rate(entry) or "–",
        "median": or_dash(seconds(shown, "p50", known_to)),
        "tail": or_dash(seconds(shown, "p99", known_to)),
        "time": "–" if is_recorded(entry) or not entry.get("time_share") else share(entry["time_share"]),
        "picture": small_distribution(bins, axis, _seconds(shown, "p50"), _seconds(shown, "p99")),
    }


def span_s(known: Mapping[str, Any]) -> float:
    """Return the length of the time that the trends show, s; 0 without any."""
    if not any((known.get("functions") or {}).values()):
        return 0.0
    begin, end = (datetime.fromisoformat(str(known[name])) for name in ("begin", "end"))
    return max(1.0, (end - begin).total_seconds())


def _trend(entry: Entry, known: Mapping[str, Any], length_s: float) -> Drawing:
    points = (known.get("functions") or {}).get(str(entry.get("key"))) or []
    if not points:
        return Drawing()
    normal = asserted(entry).get("p50") if normal_range(asserted(entry), "p50") else None
    band = (float(normal["low"]), float(normal["high"])) if normal else None
    values = [(min(1.0, float(at) / length_s), float(seconds)) for at, seconds in points]
    axis = axis_over([*(seconds for _, seconds in values), *(band or ())], least_ratio=2.0)
    return spark(values, axis, band, KINDS.get(change_of(entry), ""))


def _with_heads(rows: list[dict[str, Any]], groups: Mapping[str, int], sort: str) -> list[dict[str, Any]]:
    """Return the rows; where they are in the order of states, the first of each group has a heading for all of it."""
    before = ""
    for each in rows if sort == "state" else ():
        group = _heading(each["entry"])
        if group != before:
            each["head"] = f"{group[0].upper()}{group[1:]} · {count(groups[group])}"
        before = group
    return rows


def _heading(entry: Entry) -> str:
    change = change_of(entry)
    return f"{change} than normal" if change else group_of(entry)


def _program(entry: Entry) -> str:
    """Return the program, and the library that the function is from."""
    program, place = str(entry.get("program") or ""), place_of(entry)
    return program if not place or place == program else f"{program}, {place}" if program else place


def _matches(entry: Entry, query: Mapping[str, str]) -> bool:
    program, state, part = (query.get(key, "") for key in ("program", "state", "q"))
    return (
        (not program or program in (entry.get("program"), entry.get("module")))
        and (not state or state == group_of(entry))
        and (not part or part.lower() in str(entry.get("function", "")).lower())
    )


def _axis(entries: Sequence[Entry]) -> LogAxis:
    values = [value for each in entries for name in ("p50", "p99") if (value := _seconds(present(each), name))]
    return axis_over([each / 3 for each in values] + [each * 3 for each in values])


def _seconds(quantiles: Mapping[str, Any], name: str) -> float | None:
    each = quantiles.get(name)
    return float(each["seconds"]) if each else None
