"""What happened inside a call, class by class, and the tree of what its spread consists of."""

from __future__ import annotations

from collections.abc import Sequence

from specmine.analysis.documents import Entry
from specmine.analysis.wording.assertions import class_names, wrapped
from specmine.analysis.wording.inside import OWN, not_timed, rows
from specmine.analysis.wording.spread_tree import Branch, branches, signed
from specmine.model.text import cells, count, cut, duration, escaped, share

MOST_NAME, MOST_BAR = 32, 20


def inside_table(entry: Entry, columns: int, *, ascii_only: bool) -> list[str]:
    """Return what the calls of each class consist of, [] where nothing inside them was timed."""
    classes = entry.get("classes") or []
    told = [(name, each, rows(each)) for name, each in zip(class_names(classes), classes, strict=True)]
    if not any(parts for _, _, parts in told):
        return []
    size = min(MOST_NAME, max(cells(row.name) for _, _, parts in told for row in parts))
    lines = []
    for name, each, parts in told:
        if not parts:
            lines.append(f"  {name}: not measured yet")
            continue
        mean = duration(float(each["inside_mean_seconds"]))
        lines.append(f"  {name}: mean {mean} of {count(each['inside_calls'])} calls")
        for row in parts:
            bar = ("#" if ascii_only else "\N{FULL BLOCK}") * round(row.share * MOST_BAR)
            line = f"    {cut(row.name, size).ljust(size)}  {row.mean.rjust(7)} {share(row.share).rjust(7)}"
            room = columns - cells(line) - 2 - MOST_BAR
            drawn = f"  {bar.ljust(MOST_BAR)}" if room >= 0 else ""
            note = f"  {row.note}" if cells(line) + len(drawn) + 2 + len(row.note) <= columns else ""
            lines.append(f"{line}{drawn}{note}".rstrip())
            if row.note and not note:
                lines += wrapped(f"{' ' * (size + 6)}{row.note}", columns)
    for sentence in filter(None, (not_timed(classes), f"{OWN.capitalize()}: what no timed callee took.")):
        lines += wrapped(f"  {sentence}", columns, hang="  ")
    return lines


def spread_tree(entry: Entry, entries: Sequence[Entry], columns: int) -> list[str]:
    """Return the tree of what the spread of a function consists of, down its timed callees."""
    found = entry.get("spread")
    if not isinstance(found, dict):
        return []
    name = escaped(str(entry.get("function")))
    deviation, mean = duration(found["deviation_seconds"]), duration(found["mean_seconds"])
    lines = wrapped(f"{name}: mean {mean}, standard deviation {deviation}, of {count(found['calls'])} calls", columns)
    excess = found.get("excess_seconds")
    if excess:
        lines += wrapped(f"The slowest 1 % of the calls take {duration(excess)} more than usual ones.", columns)
    told = [(f"{_indent(branch)}{branch.row.name}", branch.row) for branch in branches(entry, entries)]
    size = min(columns - 32, max(cells(label) for label, _ in told))
    head = f"{' ' * size}  {'SPREAD':>8}  {'SLOWEST':>8}  {'MEAN':>8}"
    lines += ["", head]
    for label, row in told:
        slow = "-" if row.excess is None else signed(row.excess)
        lines.append(f"{cut(label, size).ljust(size)}  {signed(row.variance):>8}  {slow:>8}  {row.mean:>8}")
    lines += ["", *wrapped(_READING, columns)]
    untold = not_timed([found])
    return [*lines, *wrapped(untold, columns)] if untold else lines


_READING = (
    "SPREAD: share of the variance of the durations. SLOWEST: share of what the slowest 1 % take more than usual. "
    "Both are shares of the function above and add up to 100 %. What is below a callee is of all its calls."
)


def _indent(branch: Branch) -> str:
    above = "".join("   " if last else "|  " for last in branch.lasts[:-1])
    return f"{above}{'`- ' if branch.lasts[-1] else '|- '}"
