"""Where the calls of a function waited, and for what, as a table."""

from __future__ import annotations

from specmine.analysis.documents import Entry
from specmine.analysis.wording.assertions import class_names, wrapped
from specmine.analysis.wording.waits import WaitRow, wait_rows, waits_head
from specmine.model.text import cells, cut, share

MOST_NAME, LEAST_NAME = 32, 10


def waits_table(entry: Entry, columns: int) -> list[str]:
    """Return where calls waited, of all calls and of each class; [] where that was not looked for."""
    head = waits_head(entry)
    if not head:
        return []
    lines = wrapped(f"  {head}", columns, hang="  ")
    every = wait_rows(entry.get("waits"))
    lines += _rows(every, columns)
    classes = entry.get("classes") or []
    told = [(name, wait_rows(each.get("waits"))) for name, each in zip(class_names(classes), classes, strict=True)]
    if len(told) > 1:
        for name, rows in told:
            if rows:
                lines += [f"  {name}:", *_rows(rows, columns)]
    return lines


def _rows(rows: list[WaitRow], columns: int) -> list[str]:
    if not rows:
        return []
    kind = max(cells(row.what) for row in rows)
    room = max(LEAST_NAME, columns - kind - 25)
    size = min(MOST_NAME, room, max(cells(row.place) for row in rows))
    lines = []
    for row in rows:
        named = f"    {row.what.ljust(kind)}  {cut(row.place, size).ljust(size)}"
        line = f"{named} {row.mean.rjust(7)} {share(row.share).rjust(7)}"
        notes = ", ".join(filter(None, (row.note, f"in {row.within}" if row.within else "")))
        fits = cells(line) + 2 + cells(notes) <= columns
        lines.append(f"{line}  {notes}".rstrip() if fits else line.rstrip())
        if notes and not fits:
            lines += wrapped(f"{' ' * 6}{notes}", columns)
    return lines
