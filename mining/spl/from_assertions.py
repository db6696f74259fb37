"""Mined assertions as formulas, and back, without loss."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from specmine.mining.assertions.expression import from_records, to_records
from specmine.mining.assertions.expression import render as render_edges

from .syntax import Condition, Mined, Statement, Subject

Entry = Mapping[str, Any]
"""A function of a ``specmine.specification/1``."""


def statements_of(functions: Iterable[Entry]) -> list[Statement]:
    """Return one formula per behaviour of the functions of a specification, and one for their time on CPU."""
    return [
        Statement(formula=formula)
        for entry in functions
        for formula in (*(_formula(entry, each) for each in entry.get("behaviours") or ()), *_on_cpu(entry))
    ]


def entries_of(statements: Iterable[Statement]) -> list[dict[str, Any]]:
    """Return functions with behaviours, as a specification has them, from formulas that are mined assertions."""
    found: dict[str, dict[str, Any]] = {}
    for statement in statements:
        formula = statement.formula
        if not isinstance(formula, Mined):
            continue
        name, module = split_name(formula.subject.function)
        entry = found.setdefault(
            formula.subject.function,
            {"function": name, "module": module, "borders_seconds": [], "behaviours": []},
        )
        if formula.subject.cpu:
            bounds = [*formula.borders, None]
            classes = [
                {"upper_seconds": bound, "share": share} for bound, share in zip(bounds, formula.shares, strict=True)
            ]
            entry["on_cpu"] = {"calls": formula.calls, "classes": classes}
            continue
        entry["borders_seconds"] = list(formula.borders)
        edges = formula.subject.condition.edges if formula.subject.condition is not None else ((),)
        entry["behaviours"].append(
            {
                "expression": render_edges(edges),
                "formula": to_records(edges),
                "calls": formula.calls,
                "shares": list(formula.shares),
            }
        )
    return list(found.values())


def full_name(entry: Entry) -> str:
    """Return the name by which formulas know a function: ``name (module)``."""
    module = entry.get("module") or ""
    return f"{entry['function']} ({module})" if module else str(entry["function"])


def split_name(name: str) -> tuple[str, str]:
    """Return name and module of ``full_name``; no module if the name has none."""
    if name.endswith(")") and " (" in name:
        front, _, module = name[:-1].rpartition(" (")
        if front and not set(module) & set("()*&, "):
            return front, module
    return name, ""


def _on_cpu(entry: Entry) -> tuple[Mined, ...]:
    """Return what is asserted of time on CPU, if it is for itself."""
    found = entry.get("on_cpu") or {}
    classes = found.get("classes") or ()
    if not classes or not found.get("calls"):
        return ()
    return (
        Mined(
            subject=Subject(function=full_name(entry), cpu=True),
            borders=tuple(each["upper_seconds"] for each in classes[:-1]),
            shares=tuple(float(each["share"]) for each in classes),
            calls=int(found["calls"]),
        ),
    )


def _formula(entry: Entry, behaviour: Mapping[str, Any]) -> Mined:
    edges = from_records(behaviour["formula"])
    return Mined(
        subject=Subject(function=full_name(entry), condition=None if edges == ((),) else Condition(edges=edges)),
        borders=tuple(entry.get("borders_seconds") or ()),
        shares=tuple(float(each) for each in behaviour["shares"]),
        calls=int(behaviour["calls"]),
    )
