"""What changed from one build to another as people read it: a sentence, then rows, the worst first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from specmine.analysis.charts.bars import ratio_bar
from specmine.analysis.charts.drawing import Drawing
from specmine.analysis.compare.rows import GROUPS, counted, rows_of, worst_first
from specmine.mining.regression.comparison import Change
from specmine.model.text import count, listed, shortened

Entry = Mapping[str, Any]
"""A function of ``specmine.comparison/1``."""
KINDS = {Change.WORSE: "slow", Change.BETTER: "fast", Change.UNDECIDED: "past", Change.EQUIVALENT: "past"}
_NAMED = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRow:
    """One line of the table of changes."""

    entry: Entry
    name: str
    """'' for a further row of the function above."""
    suffix: str
    """Which of its calls; '' for all."""
    seconds: tuple[str, str]
    ratio: str
    interval: str
    picture: Drawing
    note: str
    kind: str
    """Class of its colour: slow, fast or past."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeGroup:
    """All functions of one verdict."""

    text: str
    functions: int
    rows: Sequence[ChangeRow]


def change_groups(entries: Sequence[Entry], tolerance: float, *, most: int | None = None) -> list[ChangeGroup]:
    """Return the functions by verdict, the worst first; at most so many of each."""
    ordered = worst_first(entries)
    groups = []
    for verdict, text in GROUPS.items():
        chosen = [each for each in ordered if Change(each["verdict"]) is verdict]
        rows = [row for each in chosen[:most] for row in _rows(each, KINDS[verdict], tolerance)]
        if rows:
            groups.append(ChangeGroup(text=text[:1].upper() + text[1:], functions=len(chosen), rows=rows))
    return groups


def _rows(entry: Entry, kind: str, tolerance: float) -> list[ChangeRow]:
    return [
        ChangeRow(
            entry=entry,
            name=str(entry["function"]) if at == 0 else "",
            suffix=row.suffix or ("" if at == 0 else "all calls"),
            seconds=row.seconds,
            ratio=row.ratio,
            interval="" if row.bounds is None else row.interval,
            picture=Drawing() if row.value is None else ratio_bar(row.value, row.bounds, tolerance, kind),
            note=row.note,
            kind=kind,
        )
        for at, row in enumerate(rows_of(entry))
    ]


def verdict_sentence(entries: Sequence[Entry]) -> str:
    """Return ``3 slower, 1 faster, 22 the same``."""
    return ", ".join(counted(entries)) or "no function was timed in both"


def change_words(entry: Entry) -> str:
    """Return what became of a function: ``2.1x slower over 36 us``, ``the same``, ``not decided``."""
    verdict = Change(entry["verdict"])
    if verdict not in (Change.WORSE, Change.BETTER):
        return GROUPS[verdict]
    row = rows_of(entry)[0]
    if not row.value:
        return GROUPS[verdict]
    times = row.value if verdict is Change.WORSE else 1 / row.value
    much = f"{times:.0f}x" if times >= 9.95 else f"{times:.1f}x" if times >= 1.15 else f"{100 * (times - 1):.2g} %"
    return f"{much} {GROUPS[verdict]} {row.suffix}".rstrip()


def lead_sentence(entries: Sequence[Entry], tolerance: float) -> str:
    """Return what matters most: the causes, what is slower only through them, or what could not be decided."""
    ordered = worst_first(entries)
    slower = [each for each in ordered if Change(each["verdict"]) is Change.WORSE]
    causes = [each for each in slower if not each["explained_by"]]
    through = [each for each in slower if each["explained_by"]]
    faster = [each for each in ordered if Change(each["verdict"]) is Change.BETTER]
    unsure = sum(Change(each["verdict"]) is Change.UNDECIDED for each in ordered)
    said = [_said(each) for each in causes[:_NAMED]]
    if through:
        verb = "is" if len(through) == 1 else "are"
        said.append(f"{_names(through)} {verb} slower only through what {'it calls' if verb == 'is' else 'they call'}.")
    if faster:
        said += [_said(each) for each in faster[:1]] if len(faster) == 1 else [f"{_names(faster)} are faster."]
    if not slower and not faster and ordered:
        same = len(ordered) - unsure
        said.append(
            f"No change was found. {count(same)} of {count(len(ordered))} functions take as long as before, "
            f"within {100 * tolerance:g} %."
        )
    if unsure:
        said.append(
            f"Of {count(unsure)} it is not decided: more runs would tell."
            if said
            else f"Nothing is decided yet: {count(unsure)} functions need more runs."
        )
    return " ".join(said)


def _said(entry: Entry) -> str:
    why = {"changed": "; its code changed", "same": "; its own code is the same", "moved": "; its own code is the same"}
    known = "; neither its code nor that of what it calls changed" if entry["code_unchanged"] else ""
    return f"{_name(entry)} is {change_words(entry)}{known or why.get(str(entry['machine_code']), '')}."


def _names(entries: Sequence[Entry]) -> str:
    more = len(entries) - _NAMED
    return listed([*(_name(each) for each in entries[:_NAMED]), *([f"{count(more)} more"] if more > 0 else [])])


def _name(entry: Entry) -> str:
    return shortened(str(entry["function"]), 40)
