"""One function's assertion as text: how long its calls take, under which condition, and whether that holds."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from typing import Any

from specmine.analysis.documents import Entry, is_recorded, title
from specmine.model.text import cells, duration, escaped, plural, rate, share

from .levels import asserted, normal, present, sentence, uncertainty_of
from .states import FINISHED, open_violations, words
from .time_split import explanation, labels

_UNIT = re.compile(r"(\d) (%|(?:[num]?s|min|h|MB)\b)")
ALL_OF_THEM = 0.9995
"""Share from which on all calls are meant."""


def is_asserted(entry: Entry) -> bool:
    """Return whether something is stated about this function."""
    return entry.get("state") in FINISHED


def assertion(entry: Entry, width: int, *, numbered: bool = False) -> list[str]:
    """Return the lines about one function; ``numbered`` gives its behaviours numbers to refer to."""
    classes = entry.get("classes") or []
    lines = _first(entry, width)
    lines += wrapped(_facts(entry), width, first="  ", hang="    ")
    if is_asserted(entry):
        parts = _parts(entry)
        for number, part in enumerate(parts, start=1):
            text = f"{number}: {_part(part, entry)}" if numbered and len(parts) > 1 else _part(part, entry)
            lines += wrapped(text, width, first="  ", hang="    ")
            lines += wrapped(_rest(part, classes), width, first="    ", hang="    ")
    for line in labels(entry, class_names(classes)):
        lines += wrapped(f"  {line}", width, hang="    ")
    if entry.get("state") == "unexplained" and len(classes) > 1:
        why = explanation(entry) or "The call paths seen do not tell these classes apart."
        lines += wrapped(f"  {why}", width, hang="  ")
    for violation in open_violations(entry)[1:]:
        lines += wrapped(f"  Also {escaped(str(violation.get('change')))}.", width, hang="    ")
    return lines


def class_names(classes: Sequence[Any]) -> list[str]:
    """Return the classes by their upper ends: ``up to 61 us``, and ``over 61 us`` for the last."""
    uppers = [each.get("upper_seconds") for each in classes]
    names = [f"up to {duration(upper)}" for upper in uppers if upper is not None]
    bounded = [upper for upper in uppers if upper is not None]
    return [*names, f"over {duration(bounded[-1])}" if bounded else "all calls"][: len(classes)]


def condition(expression: Any) -> str:
    """Return when a behaviour applies."""
    return "always" if expression in (None, "true") else f"if {escaped(str(expression))}"


def class_sentence(shares: Sequence[float], classes: Sequence[Any]) -> str:
    """Return how calls fall into classes: ``all take up to 36 us``, or ``98 % take up to 36 us, 2 % over 36 us``."""
    if len(classes) < 2:
        return ""
    named = [(part, name) for part, name in zip(shares, class_names(classes), strict=False) if part > 0]
    whole = [name for part, name in named if part >= ALL_OF_THEM]
    if whole:
        return f"all take {whole[0]}"
    told = [f"{share(part)} {'take ' if at == 0 else ''}{name}" for at, (part, name) in enumerate(named)]
    return ", ".join(told)


def wrapped(text: str, width: int, *, first: str = "", hang: str = "") -> list[str]:
    """Break a text at spaces, but not between a number and its unit. Nothing for an empty text.

    A word longer than a line is broken too, never cut.
    """
    indent = len(text) - len(text.lstrip(" "))
    lines = textwrap.wrap(
        _UNIT.sub("\\1\N{NO-BREAK SPACE}\\2", text.strip(" ")),
        width,
        initial_indent=first or " " * indent,
        subsequent_indent=hang,
        break_on_hyphens=False,
    )
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines]


def _first(entry: Entry, width: int) -> list[str]:
    """Return the name with how long its calls take, and at the right where it stands."""
    told = sentence(present(entry), uncertainty_of(entry))
    name = escaped(title(entry))
    text = f"{name}: {told}" if told else name
    state = "" if is_recorded(entry) and is_asserted(entry) else words(entry)
    lines = wrapped(text, width, hang="  ")
    gap = width - cells(lines[-1]) - cells(state)
    if not state:
        return lines
    if gap < 3:
        return [*lines, f"  {state}"] if cells(state) > width else [*lines, state.rjust(width)]
    return [*lines[:-1], lines[-1] + " " * gap + state]


def _facts(entry: Entry) -> str:
    """Return how often it is called, its share of the time, and the normal range of all its calls."""
    facts = []
    if isinstance(entry.get("rate_per_second"), int | float):
        facts.append(f"{rate(entry['rate_per_second'])} calls/s")
    elif entry.get("calls"):
        facts.append(plural(int(entry["calls"]), "call"))
    if entry.get("time_share") and not is_recorded(entry):  # 0: nothing was sampled
        facts.append(f"{share(entry['time_share'])} of the time")
    span = normal(asserted(entry))
    return ", ".join(facts) + (f"{'; ' if facts else ''}normal: {span}" if span else "")


def _parts(entry: Entry) -> list[Any]:
    """Return the behaviours, if there are several or classes to speak of."""
    behaviours = entry.get("behaviours") or []
    if len(behaviours) > 1:
        return list(behaviours)
    classes = entry.get("classes") or []
    if len(classes) < 2:
        return []
    return [{"expression": None, "calls": entry.get("calls"), "shares": [each.get("share", 0.0) for each in classes]}]


def _part(part: Any, entry: Entry) -> str:
    calls = sum(int(each.get("calls") or 0) for each in entry.get("behaviours") or [])
    own = f" ({share(int(part.get('calls') or 0) / calls)} of the calls)" if part.get("expression") and calls else ""
    told = sentence(present(part), uncertainty_of(entry))
    if part.get("expression") is None:
        return _upper(class_sentence(part["shares"], entry.get("classes") or [])) + "."
    return f"{condition(part.get('expression'))}{own}" + (f": {told}" if told else "")


def _rest(part: Any, classes: Sequence[Any]) -> str:
    if part.get("expression") is None:
        return ""
    span = normal(asserted(part))
    return "; ".join(
        filter(None, (class_sentence(part.get("shares") or [], classes), f"normal: {span}" if span else ""))
    )


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
