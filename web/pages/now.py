"""The first page: what is wrong, what changed, what is not seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from specmine.analysis.charts.drawing import Drawing
from specmine.analysis.charts.timeline import Span, timeline
from specmine.analysis.wording.detectable import hides_twice_as_slow
from specmine.analysis.wording.standing import Standing, standing_of
from specmine.analysis.wording.states import group_of
from specmine.analysis.wording.typesetting import typeset
from specmine.analysis.wording.violations import is_open, is_problem
from specmine.model.text import count, listed, plural
from specmine.web import words
from specmine.web.documents import Documents, Entry

from .frame import frame
from .trend import before_and_now
from .violation_card import card

HOURS = 24
_NUMBERS = ("No", "One", "Two", "Three", "Four", "Five", "Six")
_NAMED = 3
_MOST_STARTS = 3
_SPANS_H = (2, 6, 24)
"""The time shown is the shortest of these that holds all changes of a day."""
_DRAWN = 4
"""Problems whose durations are drawn."""


def page(documents: Documents, trend: Callable[[Entry], Mapping[str, Any]]) -> dict[str, Any]:
    """Return the values of the template ``now.html``.

    Parameters
    ----------
    documents : Documents
    trend : callable
        Returns ``specmine.trend/1`` of the function of a violation, {} where there are no windows.
    """
    violations: list[Entry] = list(documents.violations["violations"])
    now, groups = documents.at, Counter(map(group_of, documents.functions))
    standing = standing_of(documents.functions, violations)
    causes = standing.problems
    others = [each for each in violations if each not in causes and not _below(each, causes) and _recent(each, now)]
    return {
        **frame(documents, "/", standing.title),
        "causes": causes,
        "headline": _headline(causes),
        "said": standing.title,
        "lead": _lead(standing, groups, violations),
        "timeline": _timeline(violations, _starts(documents), now),
        "cards": [
            card(each, now) | ({"picture": before_and_now(trend(each), each)} if number < _DRAWN else {})
            for number, each in enumerate(causes)
        ],
        "others": [card(each, now) for each in others],
        "not_seen": _not_seen(documents, groups),
    }


def _headline(causes: Sequence[Entry]) -> dict[str, Any]:
    number = len(causes)
    return {
        "number": f"{_NUMBERS[number] if number < len(_NUMBERS) else count(number)} problem" + "s" * (number != 1),
        "names": [words.name(each.get("function")) for each in causes[:_NAMED]],
        "more": max(0, number - _NAMED),
    }


def _lead(standing: Standing, groups: Counter[str], violations: Sequence[Entry]) -> str:
    affected = [each for each in violations if is_problem(each)]
    said = []
    if affected:
        functions = len({(each.get("function"), each.get("module"), each.get("program")) for each in affected})
        programs = len({each.get("program") or each.get("module") for each in affected})
        said.append(f"{plural(functions, 'function')} of {plural(programs, 'program')} "
                    f"{'is' if functions == 1 else 'are'} slower.")  # fmt: skip
    faster = sum(is_open(each) and each.get("direction") == "faster" for each in violations)
    parts = [
        f"{count(number)} {word if number == 1 else words_of_many}"
        for number, word, words_of_many in (
            (standing.holding, "holds", "hold"),
            (faster, "is faster", "are faster"),
            (standing.few, "has too few calls to tell", "have too few calls to tell"),
            (standing.undecided - standing.few, "is known but not decided", "are known but not decided"),
            (groups["learning"] + groups["unstable"], "is being learned", "are being learned"),
        )
        if number
    ]
    if parts:
        said.append(f"{'Of the others, ' if affected else ''}{listed(parts)}.")
    return " ".join(said)


def _starts(documents: Documents) -> list[Span]:
    """Return the starts of programs that still run, the newest: a change may have come with one."""
    labels = {str(each.get("build_id")): str(each["build"]) for each in documents.functions if each.get("build")}
    spans = []
    for each in documents.status.get("lifetimes") or ():
        if each.get("started"):
            at = datetime.fromisoformat(str(each["started"])).astimezone(UTC)
            build = str(each.get("build_id") or "")
            name = labels.get(build) or f"build {build[:8]}"
            spans.append(Span(begin=at, end=at, text=f"{each.get('program')} {name} started", kind="past"))
    return sorted(spans, key=lambda each: each.begin, reverse=True)[:_MOST_STARTS]


def _timeline(violations: Sequence[Entry], starts: Sequence[Span], now: datetime | None) -> Drawing:
    if now is None:
        return Drawing("")
    spans = [*starts] + [
        Span(
            begin=datetime.fromisoformat(str(each["since"])).astimezone(UTC),
            end=datetime.fromisoformat(str(each["closed"])).astimezone(UTC) if each.get("closed") else now,
            text=typeset(
                f"{each.get('function')} {each.get('change')}{'' if is_open(each) else ', ' + str(each.get('state'))}"
            ),
            kind=("slow" if each.get("direction") == "slower" else "fast") if is_open(each) else "past",
        )
        for each in violations
        if not each.get("because")
    ]
    recent = [each for each in spans if now - each.end <= timedelta(hours=HOURS)]
    oldest = max((now - each.begin for each in recent), default=timedelta())
    hours = next((each for each in _SPANS_H if oldest < timedelta(hours=each)), HOURS)
    return timeline(sorted(recent, key=lambda each: each.begin, reverse=True), now, hours)


def _below(entry: Entry, causes: Sequence[Entry]) -> bool:
    key = (entry.get("because") or {}).get("key")
    return is_open(entry) and any(each.get("key") == key for each in causes)


def _recent(entry: Entry, now: datetime | None) -> bool:
    end = entry.get("closed")
    return not end or now is None or now - datetime.fromisoformat(str(end)) < timedelta(hours=HOURS)


def _not_seen(documents: Documents, groups: Counter[str]) -> list[dict[str, Any]]:
    """Return what could be wrong without anybody knowing: programs without calls, functions without enough of them."""
    told: list[dict[str, Any]] = []
    now = documents.at
    for each in documents.status.get("watched") or ():
        if each.get("processes") and not each.get("last_call"):
            told.append({"name": each["program"], "text": f"{plural(each['processes'], 'process')} seen, no call yet"})
        elif each.get("chosen") and not each.get("processes"):
            told.append({"name": each["program"], "text": "does not run" + (
                f"; last call {words.ago(each['last_call'], now)}" if each.get("last_call") else "")})  # fmt: skip
        if each.get("short_of_cpu"):
            told.append({"name": each["program"], "text": f"is short of CPU time: {each['short_of_cpu']}"})
    for each in documents.status.get("unmatched_names") or ():
        alike = f"; alike: {listed(each['alike'])}" if each.get("alike") else ""
        text = f"is in functions.watch, and no function of {listed(each['programs'])} matches it{alike}"
        told.append({"name": each["name"], "text": text})
    asked = documents.functions if groups["too few calls"] else []
    few = [each for each in asked if group_of(each) == "too few calls"]
    for each in few[:_NAMED]:
        told.append({"entry": each, "name": each.get("function"), "text": "too few calls to tell"})
    hidden = [
        f"{count(groups[group])} {text}"
        for group, text in (("cannot be timed", "cannot be timed"), ("waits for budget", "wait for budget"))
        if groups[group]
    ]
    slow = sum(map(hides_twice_as_slow, documents.functions))
    if slow:
        hidden.append(f"{count(slow)} would not be found soon if twice as slow")
    more = len(few) - _NAMED
    if more > 0:
        hidden.insert(0, f"{count(more)} more have too few calls")
    if hidden:
        told.append({"link": "/hosts#blind", "name": "", "text": f"Functions: {listed(hidden)}."})
    return told
