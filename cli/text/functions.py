"""The list of functions as text: facts in columns, below them why each function is in its state."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from specmine.analysis.documents import Entry, is_recorded, title
from specmine.model.text import cells, duration, escaped, plural, rate, share

from .assertions import condition, verdict_of

_NUMBERS = (("STATE", 11), ("CALLS/S", 9), ("TIME", 7), ("UTILITY", 7))
_GAP = 2


def table(entries: Sequence[Entry], columns: int) -> list[str]:
    """Return the list: per function one line of facts and below it why it is where it is."""
    room = columns - sum(size + _GAP for _, size in _NUMBERS)
    names = [escaped(title(each)) for each in entries]
    name_width = max(8, min(room, max(cells(name) for name in ["FUNCTION", *names])))
    lines = [_row("FUNCTION", [head for head, _ in _NUMBERS], name_width)]
    for name, entry in zip(names, entries, strict=True):
        facts = [
            escaped(str(entry.get("state", "?"))),
            _or_dash(entry.get("rate_per_second"), rate),
            _or_dash(None if is_recorded(entry) else entry.get("time_share"), share),
            _or_dash(None if is_recorded(entry) else entry.get("utility"), "{:.2f}".format),
        ]
        if cells(name) <= name_width:
            lines.append(_row(name, facts, name_width))
        else:
            lines += [
                *textwrap.wrap(name, columns, subsequent_indent="  ", break_on_hyphens=False),
                _row("", facts, name_width),
            ]
        for text in filter(None, (*why(entry), _probe(entry))):
            lines += textwrap.wrap(
                text, columns, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False
            )
    return lines


def why(entry: Entry) -> list[str]:
    """Return sentences: what is known, why the function is in its state, what would move it on."""
    said = _known(entry)
    reason, needed = entry.get("reason"), entry.get("needed")
    sentences = [said] if said else []
    sentences += [
        f"The host: {share(float(cause['gained_share']))} more calls {escaped(str(cause['text']))}"
        f" (+{duration(float(cause['excess_seconds']))})"
        for cause in entry.get("host_causes") or []
        if cause["gained_share"]
    ]
    before = entry.get("provisional")
    if isinstance(before, dict):
        sentences.append(_provisional(before))
    if isinstance(reason, dict):
        sentences.append(escaped(f"{reason.get('text', '')} [{reason.get('code', '?')}]".strip()))
    next_step = needed or (reason.get("remedy") if isinstance(reason, dict) else "")
    if next_step:
        sentences.append(f"Next: {escaped(str(next_step))}")
    return sentences


def _provisional(before: Entry) -> str:
    """Return how the statement of a build before fares with this one."""
    build = escaped(str(before.get("build_id"))[:12])
    if not before.get("observations"):
        return f"Provisionally as in build {build}; not checked yet"
    verdict = escaped(str(before.get("verdict")))
    return f"As in build {build}: {verdict} after {plural(int(before['observations']), 'observation')}"


def _probe(entry: Entry) -> str:
    """Return how the kernel runs the probed instruction, and what a call costs; '' for what is not probed."""
    price_ns, grade = entry.get("price_ns"), entry.get("grade")
    if not isinstance(price_ns, int | float) or entry.get("state") in ("refused", "excluded"):
        return ""
    return f"Probe: {grade}, {duration(price_ns * 1e-9)} a call"


def _known(entry: Entry) -> str:
    behaviours = [each for each in entry.get("behaviours") or [] if each.get("expression") not in (None, "true")]
    classes = entry.get("classes") or []
    verdict = verdict_of(entry)
    checked = f"; last check: {verdict}" if verdict in ("holds", "violated") else ""
    if entry.get("state") == "single":
        return f"1 behaviour, no border{checked}"
    if behaviours:
        conditions = "; ".join(condition(each["expression"]) for each in behaviours)
        return f"{plural(len(behaviours), 'behaviour')} over {len(classes)} classes: {conditions}{checked}"
    return f"{len(classes)} classes of durations{checked}" if len(classes) > 1 else ""


def _row(name: str, facts: Sequence[str], name_width: int) -> str:
    text = name + " " * (name_width - cells(name))
    for at, (fact, (_, size)) in enumerate(zip(facts, _NUMBERS, strict=True)):
        text += " " * _GAP + (fact.ljust(size) if at == 0 else fact.rjust(size))
    return text.rstrip()


def _or_dash(value: Any, write: Any) -> str:
    return str(write(value)) if isinstance(value, int | float) else "-"
