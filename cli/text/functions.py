"""The list of functions as text: one row each, what is wrong first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from specmine.analysis.documents import Entry, is_recorded, place_of
from specmine.analysis.wording.call_rate import call_rate
from specmine.analysis.wording.function_order import SORTS
from specmine.analysis.wording.levels import present, seconds, uncertainty_of
from specmine.analysis.wording.states import steps_done, words
from specmine.model.text import age, cells, cut, escaped, share, shortened
from specmine.model.text import title as title_of

from .sparkline import sparkline

LEAST_NAME, MOST_NAME = 26, 44
MOST_STATE = 30
_GAP = "  "


def table(
    entries: Sequence[Entry], columns: int, *, sort: str = "state", trends: Mapping[str, Any] | None = None
) -> list[str]:
    """Return the list: a head, then a row a function.

    Columns that do not fit go from the right; names are cut in the middle. The program and the build have columns only
    where they tell functions apart. ``trends`` is ``specmine.trends/1``, of which the last column is made.
    """
    ordered = sorted(entries, key=SORTS[sort])
    rows = [_cells(each) for each in ordered]
    optional = [("PROGRAM", [str(each.get("program") or each.get("module") or "") for each in ordered]),
                ("BUILD", [str(each.get("build") or each.get("build_id") or "")[:8] for each in ordered])]  # fmt: skip
    told = [(head, texts) for head, texts in optional if _tells(head, texts, ordered)]
    heads = ["FUNCTION", *(head for head, _ in told), "STATE", "CALLS/S", "MEDIAN", "P99", "TIME"]
    head, drawn = _trends(ordered, trends or {})
    if head:
        heads.append(head)
        rows = [[*row, line] for row, line in zip(rows, drawn, strict=True)]
    table = [[row[0], *(escaped(texts[at]) for _, texts in told), *row[1:]] for at, row in enumerate(rows)]
    left = 2 + len(told)
    return _drawn(heads, table, left, columns, last_left=bool(head))


def _trends(entries: Sequence[Entry], trends: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Return head and cells of the column of trends; '' without any."""
    known = trends.get("functions") or {}
    if not any(known.values()):
        return "", []
    span_s = (datetime.fromisoformat(str(trends["end"])) - datetime.fromisoformat(str(trends["begin"]))).total_seconds()
    return f"LAST {age(span_s).upper()}", [sparkline(known.get(str(each.get("key"))) or (), span_s) for each in entries]


def progress_table(entries: Sequence[Entry], columns: int, *, ascii_only: bool) -> list[str]:
    """Return the list while functions are learned: how long calls take so far, and how much is known of each."""
    full, empty = ("#", ".") if ascii_only else ("\N{FULL BLOCK}", "\N{LIGHT SHADE}")
    rows = []
    for each in entries:
        done, of = steps_done(each)
        name, _, calls, median, tail, _ = _cells(each)
        rows.append([name, calls, median, tail, full * done + empty * (of - done)])
    return _drawn(["FUNCTION", "CALLS/S", "MEDIAN", "P99", "KNOWN"], rows, 1, columns, last_left=True)


def _cells(entry: Entry) -> list[str]:
    shown = present(entry)
    share_of_time = None if is_recorded(entry) else entry.get("time_share") or None  # 0: nothing was sampled
    return [
        escaped(_name(entry)),
        words(entry),
        call_rate(entry) or "-",
        seconds(shown, "p50", uncertainty_of(entry)),
        seconds(shown, "p99", uncertainty_of(entry)),
        _or_dash(share_of_time, share),
    ]


def _name(entry: Entry) -> str:
    """Return the name, with the module where that is not the program's own."""
    place = place_of(entry)
    return title_of(shortened(str(entry.get("function", "?")), 40), "" if place == entry.get("program") else place)


def _tells(head: str, texts: Sequence[str], entries: Sequence[Entry]) -> bool:
    """Tell whether a column distinguishes functions: programs if there are several, builds of one function."""
    if head == "PROGRAM":
        return len({each.get("program") for each in entries}) > 1
    names = [(each.get("function"), each.get("module"), each.get("program")) for each in entries]
    return len(set(names)) < len(names) and len(set(texts)) > 1


def _drawn(
    heads: Sequence[str], rows: Sequence[Sequence[str]], left: int, columns: int, *, last_left: bool = False
) -> list[str]:
    """Return head and rows; the first ``left`` columns are aligned to the left, the others to the right."""
    limits = [MOST_NAME, *([MOST_STATE] * (left - 1))]
    sizes = [max(cells(row[at]) for row in (heads, *rows)) for at in range(len(heads))]
    sizes = [min(size, limits[at]) if at < left else size for at, size in enumerate(sizes)]
    kept = len(heads)
    while kept > left and sum(sizes[:kept]) + (kept - 1) * len(_GAP) - max(0, sizes[0] - LEAST_NAME) > columns:
        kept -= 1
    over = sum(sizes[:kept]) + (kept - 1) * len(_GAP) - columns
    sizes[0] = max(LEAST_NAME, sizes[0] - max(0, over))
    lines = []
    for row in (heads, *rows):
        parts = []
        for at, (cell, size) in enumerate(zip(row[:kept], sizes[:kept], strict=True)):
            text = cut(cell, size)
            room = " " * (size - cells(text))
            parts.append(text + room if at < left or (last_left and at == len(heads) - 1) else room + text)
        lines.append(_GAP.join(parts).rstrip())
    return lines


def _or_dash(value: Any, write: Any) -> str:
    return str(write(value)) if isinstance(value, int | float) else "-"
