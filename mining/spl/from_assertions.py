"""Mined assertions as formulas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from specmine.mining.assertions.expression import from_records
from specmine.model.text import title

from .syntax import Condition, MinedAssertion, Statement, Subject

Entry = Mapping[str, Any]
"""A function of a ``specmine.specification/1``."""


def statements_of(functions: Iterable[Entry]) -> list[Statement]:
    """Return one formula per behaviour of the functions of a specification, and one for their time on CPU."""
    return [
        Statement(formula=formula)
        for entry in functions
        for formula in (*(_formula(entry, each) for each in entry.get("behaviours") or ()), *_on_cpu(entry))
    ]


def _on_cpu(entry: Entry) -> tuple[MinedAssertion, ...]:
    """Return what is asserted of time on CPU, if it is for itself."""
    found = entry.get("on_cpu") or {}
    classes = found.get("classes") or ()
    if not classes or not found.get("calls"):
        return ()
    return (
        MinedAssertion(
            subject=Subject(function=_title(entry), cpu=True),
            borders=tuple(each["upper_seconds"] for each in classes[:-1]),
            shares=tuple(float(each["share"]) for each in classes),
            calls=int(found["calls"]),
        ),
    )


def _formula(entry: Entry, behaviour: Mapping[str, Any]) -> MinedAssertion:
    edges = from_records(behaviour["formula"])
    return MinedAssertion(
        subject=Subject(function=_title(entry), condition=None if edges == ((),) else Condition(edges=edges)),
        borders=tuple(entry.get("borders_seconds") or ()),
        shares=tuple(float(each) for each in behaviour["shares"]),
        calls=int(behaviour["calls"]),
    )


def _title(entry: Entry) -> str:
    return title(entry["function"], entry.get("module") or "")
