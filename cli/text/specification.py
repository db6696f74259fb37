"""A specification as text: what was watched and what that cost, every assertion, and what is not known yet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from specmine.analysis.documents import Document, Entry, functions_of, title
from specmine.analysis.wording.assertions import assertion, is_asserted, wrapped
from specmine.analysis.wording.function_order import by_work
from specmine.analysis.wording.levels import present, sentence, uncertainty_of
from specmine.analysis.wording.losses import words_of
from specmine.analysis.wording.states import counted
from specmine.model.text import age, count, duration, escaped, listed, plural, share

MOST_TIMED = 8
"""Functions without an assertion of which durations are listed."""
REPORTED_JIT_SHARE = 0.01
"""From this share of CPU time on, code made at run time is reported."""


def specification(document: Document, width: int, *, timed: bool = False) -> list[str]:
    """Return the lines of all assertions, the busiest function first, then of what is not known yet.

    Parameters
    ----------
    document : mapping
    width : int
    timed : bool
        Adds the durations of functions that were timed, and of which it is not known yet what is normal.
    """
    entries = functions_of(document)
    asserted = busiest_first([each for each in entries if is_asserted(each)])
    groups = dict.fromkeys(map(_program_of, asserted))
    several = len(groups) > 1
    lines = heading(document, width, programs=not several)
    for group in groups:
        lines += ["", *_program_lines(document, group, width)] if several else []
        for entry in asserted:
            if _program_of(entry) == group:
                lines += ["", *assertion(entry, width)]
    if not asserted:
        lines += ["", "Nothing is stable enough to be stated yet."]
    lines += _timed(entries, width) if timed else []
    return [*lines, "", *wrapped(counted(entries), width)] if entries else lines


def _timed(entries: Sequence[Entry], width: int) -> list[str]:
    """Return how long calls take of the busiest functions that have no assertion yet."""
    found = busiest_first([each for each in entries if not is_asserted(each) and present(each).get("p50")])
    if not found:
        return []
    lines = ["", f"Timed, but not for long enough to know what is normal: {plural(len(found), 'function')}."]
    for each in found[:MOST_TIMED]:
        text = f"{escaped(title(each))}: {sentence(present(each), uncertainty_of(each))}"
        lines += wrapped(text, width, first="  ", hang="    ")
    more = len(found) - MOST_TIMED
    if more > 0:
        lines.append(f"  {count(more)} more: --format json")
    return lines


def busiest_first(entries: Sequence[Entry]) -> list[Entry]:
    """Return functions by their share of the time, where it is known, else by their calls; what waits for work last."""
    return sorted(entries, key=lambda each: (*by_work(each), -int(each.get("calls") or 0)))


def heading(document: Document, width: int, *, programs: bool = True) -> list[str]:
    """Return what was watched, for how long, and what it cost; without ``programs`` not what was watched."""
    program, collection = document.get("program") or {}, document.get("collection") or {}
    names = dict.fromkeys(_program_of(each) for each in functions_of(document))
    own = [each for each in names if "," not in each] or [str(program.get("name") or "")]  # not those of a library
    lines = [line for each in own for line in _program_lines(document, each, width)] if programs else []
    if isinstance(program.get("exit_status"), int):
        lines.append(f"The program ended {_ending(program['exit_status'])}.")
    if isinstance(collection.get("source"), dict):
        lines += wrapped(_read(collection["source"]), width)
    elif isinstance(collection.get("merged"), int):
        lines += wrapped(f"Merged from {plural(collection['merged'], 'specification')}.", width)
    elif isinstance(collection.get("seconds"), int | float):
        lines += wrapped(_cost(collection), width)
        if (made := collection.get("jit_cpu_ratio") or 0.0) >= REPORTED_JIT_SHARE:
            text = (
                f"{share(made)} of its CPU time passed in code made at run time (JIT), of which no function is known."
            )
            lines += wrapped(text, width)
    for note in collection.get("notes") or []:
        lines += wrapped(f"Note: {escaped(str(note))}", width, hang="  ")
    return lines


def _program_of(entry: Entry) -> str:
    """Return the name of the program that a function belongs to, of several all; '' if it is not known."""
    return str(entry.get("program") or "")


def _program_lines(document: Document, name: str, width: int) -> list[str]:
    """Return a program with its file and build; of several that have the same library their names."""
    program = document.get("program") or {}
    path, called = str(program.get("path") or ""), str(program.get("name") or "")
    runs = [each for each in program.get("lifetimes") or () if str(each.get("program") or "") == name]
    living = [each for each in runs if each.get("processes")]
    own = name in ("", called or PurePath(path).name)
    one = program if own else (living or runs or [{}])[-1]
    build = one.get("build_id")
    if not one.get("path"):
        return [] if own else wrapped(f"{listed(map(escaped, name.split(',')))}:", width)
    shown = f"{escaped(name or called)}: " if called else ""
    return wrapped(shown + escaped(str(one["path"])) + (f" (build {escaped(str(build))[:12]})" if build else ""), width)


def _ending(status: int) -> str:
    return f"by signal {-status}" if status < 0 else f"with status {status}"


def _cost(collection: Any) -> str:
    text = f"Watched for {age(collection['seconds'])}"
    spent, promised = collection.get("overhead_ratio"), collection.get("overhead_budget_ratio")
    parts = []
    if isinstance(spent, int | float):
        limit = (
            f" (promised: at most {share(promised)}{_floor(collection)})" if isinstance(promised, int | float) else ""
        )
        parts.append(f"added {share(spent)}{floor_spent(collection)} to the program's CPU time{limit}")
    if isinstance(collection.get("agent_cpu_seconds"), int | float):
        parts.append(f"specmine's own processes took {collection['agent_cpu_seconds']:.1f} s of CPU")
    lost = {name: number for name, number in (collection.get("lost") or {}).items() if number}
    if lost:
        parts.append(
            "lost " + listed(f"{count(number)} {words_of(name, number)}" for name, number in sorted(lost.items()))
        )
    return text + "".join(f"; {part}" for part in parts) + "."


def floor_spent(collection: Any) -> str:
    """Return how much was added in all, where that is what is limited: the program uses little CPU time. Else ''."""
    spent = collection.get("overhead_seconds")
    return f" ({duration(spent)})" if _floor(collection) and isinstance(spent, int | float) else ""


def floor_of(collection: Any) -> str:
    """Return the limit of what may be added in all, where the share of a program's little time is not the limit."""
    return f", limit {duration(collection['allowed_seconds'])}" if _floor(collection) else ""


def _floor(collection: Any) -> str:
    """Return what a program that uses little CPU time may be charged all the same, '' where the share allowed more."""
    used, allowed = collection.get("program_cpu_seconds"), collection.get("allowed_seconds")
    if used is None or not allowed or allowed <= 1.05 * collection["overhead_budget_ratio"] * used:
        return ""
    return f", or {duration(allowed)} in all"


def _read(source: Any) -> str:
    path = source.get("path")
    where = "standard input" if path == "-" else escaped(str(path))
    text = f"Read {plural(source.get('records') or 0, 'call')} from {where} ({escaped(str(source.get('format')))})"
    return text + (f"; skipped {plural(source['skipped'], 'bad line')}." if source.get("skipped") else ".")
