"""Assertions as text: for each behaviour of a function the shares of its classes."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from typing import Any

from specmine.analysis.documents import Document, Entry, functions_of, title
from specmine.model.text import age, count, duration, escaped, listed, plural, share

from .time_split import explanation, labels

ASSERTED = ("single", "explained", "unexplained")
STATES = (
    "explained", "single", "unexplained", "explaining", "timing", "waiting", "candidate", "unstable",
    "refused", "excluded",
)  # fmt: skip
"""In the order in which they are counted up, most finished first."""

REPORTED_JIT_SHARE = 0.01
"""From this share of CPU time on, code made at run time is reported."""


def is_asserted(entry: Entry) -> bool:
    """Return whether something is stated about this function."""
    return entry.get("state") in ASSERTED


def specification(document: Document, width: int) -> list[str]:
    """Return the lines of all assertions, then of what is not known yet."""
    entries = functions_of(document)
    asserted = [each for each in entries if is_asserted(each)]
    lines = heading(document, width)
    for entry in asserted:
        lines += ["", *assertion(entry, width)]
    if not asserted:
        lines += ["", "Nothing is stable enough to be stated yet."]
    return [*lines, "", *_wrapped(summary(entries), width)] if entries else lines


def heading(document: Document, width: int) -> list[str]:
    """Return what was watched, for how long, and what it cost."""
    program, collection = document.get("program") or {}, document.get("collection") or {}
    path, build = program.get("path"), program.get("build_id")
    lines = []
    if path:
        lines += _wrapped(escaped(str(path)) + (f" (build {escaped(str(build))[:12]})" if build else ""), width)
    if isinstance(program.get("exit_status"), int):
        lines.append(f"The program ended {_ending(program['exit_status'])}.")
    if isinstance(collection.get("source"), dict):
        lines += _wrapped(_read(collection["source"]), width)
    elif isinstance(collection.get("merged"), int):
        lines += _wrapped(f"Merged from {plural(collection['merged'], 'specification')}.", width)
    elif isinstance(collection.get("seconds"), int | float):
        lines += _wrapped(_cost(collection), width)
        if (made := collection.get("jit_cpu_ratio") or 0.0) >= REPORTED_JIT_SHARE:
            text = (
                f"{share(made)} of its CPU time passed in code made at run time (JIT), of which no function is known."
            )
            lines += _wrapped(text, width)
    for note in collection.get("notes") or []:
        lines += _wrapped(f"Note: {escaped(str(note))}", width, hang="  ")
    return lines


def summary(entries: Sequence[Entry]) -> str:
    """Return how many functions are in which state."""
    states = Counter(str(each.get("state")) for each in entries)
    order = [*STATES, *sorted(set(states) - set(STATES))]
    parts = [f"{count(states[state])} {escaped(state)}" for state in order if states[state]]
    return f"{plural(len(entries), 'function')}: {', '.join(parts)}." if parts else "No function is known yet."


def assertion(entry: Entry, width: int, *, numbered: bool = False) -> list[str]:
    """Return the lines about one function; ``numbered`` gives its behaviours numbers to refer to."""
    behaviours, classes = entry.get("behaviours") or [], entry.get("classes") or []
    state, calls = entry.get("state"), entry.get("calls") or 0
    about = "~" if entry.get("calls_exact") is False else ""
    what = f"{len(classes)} classes" if state == "unexplained" else plural(max(1, len(behaviours)), "behaviour")
    facts = f"{what}, {about}{plural(calls, 'call')}"
    verdict = verdict_of(entry)
    if verdict in ("violated", "holds"):
        facts += f", {verdict}"
    lines = _wrapped(f"{escaped(title(entry))}   {facts}", width, hang="  ")
    if state == "single" or len(classes) < 2:
        return lines + _wrapped("  one class of durations: no border among them", width, hang="  ")
    if state == "unexplained" and not behaviours:
        behaviours = [{"expression": None, "calls": calls, "shares": [each.get("share", 0.0) for each in classes]}]
    lines += _shares(classes, behaviours, width, numbered)
    for line in labels(entry, class_names(classes)):
        lines += _wrapped(f"  {line}", width, hang="    ")
    if state == "unexplained":
        why = explanation(entry) or "the call paths seen do not tell these classes apart"
        lines += _wrapped(f"  {why}", width, hang="  ")
    return lines


def class_names(classes: Sequence[Any]) -> list[str]:
    """Return the classes by their upper ends: ``<= 61 us``, and ``> 61 us`` for the last."""
    uppers = [each.get("upper_seconds") for each in classes]
    names = [f"<= {duration(upper)}" for upper in uppers if upper is not None]
    bounded = [upper for upper in uppers if upper is not None]
    return [*names, f"> {duration(bounded[-1])}" if bounded else "any"][: len(classes)]


def verdict_of(entry: Entry) -> str:
    """Return the verdict of the last check of a function's assertion, '' if there was none."""
    verdict = entry.get("verdict")
    if isinstance(verdict, dict):
        verdict = verdict.get("verdict")
    return escaped(str(verdict)) if verdict else ""


def condition(expression: Any) -> str:
    """Return when a behaviour applies."""
    return "on every path" if expression in (None, "true") else f"if {escaped(str(expression))}"


def _shares(classes: Sequence[Any], behaviours: Sequence[Any], width: int, numbered: bool) -> list[str]:
    """Return a table of class shares, one behaviour a row; behaviours under each other if it is too wide."""
    names = class_names(classes)
    table = [[share(float(each)) for each in behaviour.get("shares") or []] for behaviour in behaviours]
    texts = [condition(behaviour.get("expression")) for behaviour in behaviours]
    if numbered and len(texts) > 1:
        texts = [f"{number}: {text}" for number, text in enumerate(texts, start=1)]
    calls = [f"   ({plural(behaviour.get('calls') or 0, 'call')})" for behaviour in behaviours]
    column = max([8, *map(len, names), *(len(cell) for row in table for cell in row)]) + 3
    wide = column * len(names) + 3
    word = max(len(word) for text in texts for word in text.split())
    if wide > width - 27 or wide + 3 + word > width:  # a name broken in two is hard to read and to copy
        return _listed_shares(names, table, [text + tail for text, tail in zip(texts, calls, strict=True)], width)
    longest = max(map(len, texts))
    aligned = wide + longest + max(map(len, calls)) <= width
    lines = ["".join(name.rjust(column) for name in names)]
    for row, text, tail in zip(table, texts, calls, strict=True):
        start = "".join(cell.rjust(column) for cell in row) + "   "
        if aligned:
            lines.append(start + text.ljust(longest) + tail)
        else:
            lines += _wrapped(text + tail, width, first=start, hang=" " * (wide + 3))
    return lines


def _listed_shares(names: Sequence[str], table: Sequence[Sequence[str]], texts: Sequence[str], width: int) -> list[str]:
    lines: list[str] = []
    for row, text in zip(table, texts, strict=True):
        lines += _wrapped(text, width, first="  ", hang="     ")
        pairs = ", ".join(f"{cell} {name}" for cell, name in zip(row, names, strict=False))
        # A number and its unit stay on one line
        lines += _wrapped(pairs.replace(" ", "\xa0").replace(",\xa0", ", "), width, first="    ", hang="    ")
    return [line.replace("\xa0", " ") for line in lines]


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
        parts.append(f"added {share(spent)} to the program's CPU time{limit}")
    if isinstance(collection.get("agent_cpu_seconds"), int | float):
        parts.append(f"specmine's own processes took {collection['agent_cpu_seconds']:.1f} s of CPU")
    lost = {name: number for name, number in (collection.get("lost") or {}).items() if number}
    if lost:
        parts.append("lost " + listed(f"{count(number)} {_words(name)}" for name, number in sorted(lost.items())))
    return text + "".join(f"; {part}" for part in parts) + "."


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


def _words(name: str) -> str:
    return escaped(name).replace("_", " ")


def _wrapped(text: str, width: int, *, first: str = "", hang: str = "") -> list[str]:
    """Break a line at spaces; a word longer than a line is broken too, never cut."""
    indent = len(text) - len(text.lstrip(" "))
    return textwrap.wrap(
        text.strip(" "),
        width,
        initial_indent=first or " " * indent,
        subsequent_indent=hang,
        break_on_hyphens=False,
    ) or [first]
