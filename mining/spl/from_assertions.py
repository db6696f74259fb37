"""Mined assertions as formulas: levels that slowness violates, and class shares where there are classes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from specmine.mining.assertions.expression import from_records
from specmine.model.text import title

from .mined import MinedAssertion, MinedLevel, NormalQuantile
from .syntax import Condition, Formula, Statement, Subject

Entry = Mapping[str, Any]
"""A function of a ``specmine.specification/1``, or a part of it that has quantiles."""
WIDEST = 10.0
"""A range that reaches further above its quantile, in times, could hardly be violated."""
OF_A_CLASS = ("p50",)
"""Quantiles that are checked of a class: its borders cut the others."""


def statements_of(functions: Iterable[Entry]) -> list[Statement]:
    """Return the formulas of a specification's functions.

    For each behaviour these are its level and, where there are classes, its class shares. For each class it is the
    level of its calls, and for time on CPU the same as for a behaviour. A statement that no data could violate is left
    out.
    """
    return [Statement(formula=formula) for entry in functions for formula in _formulas(entry)]


def _formulas(entry: Entry) -> Iterator[Formula]:
    name = _title(entry)
    behaviours = entry.get("behaviours") or ()
    for each in behaviours:
        edges = from_records(each["formula"])
        subject = Subject(function=name, condition=None if edges == ((),) else Condition(edges=edges))
        yield from _level(subject, each, int(each["calls"]))
        if entry.get("borders_seconds"):
            yield MinedAssertion(
                subject=subject,
                borders=tuple(entry["borders_seconds"]),
                shares=tuple(float(share) for share in each["shares"]),
                calls=int(each["calls"]),
            )
    if behaviours:
        yield from _classes(entry, Subject(function=name), sum(int(each["calls"]) for each in behaviours))
    yield from _on_cpu(entry, Subject(function=name, cpu=True))


def _classes(entry: Entry, subject: Subject, calls: int) -> Iterator[Formula]:
    """Return the level of each class, if there are several: a slow class that gets slower moves no share."""
    classes = entry.get("classes") or ()
    below = None
    for each in classes if len(classes) > 1 else ():
        inside = max(1, round(float(each["share"]) * calls))
        told = {**each, "windows": entry.get("windows"), "lifetimes": entry.get("lifetimes")}
        yield from _level(subject, told, inside, OF_A_CLASS, above=below, upto=each["upper_seconds"])
        below = each["upper_seconds"]


def _on_cpu(entry: Entry, subject: Subject) -> Iterator[Formula]:
    """Return what is asserted of time on CPU, if it is for itself."""
    found = entry.get("on_cpu") or {}
    classes = found.get("classes") or ()
    if not classes or not found.get("calls"):
        return
    yield from _level(subject, found, int(found["calls"]))
    if len(classes) > 1:
        yield MinedAssertion(
            subject=subject,
            borders=tuple(each["upper_seconds"] for each in classes[:-1]),
            shares=tuple(float(each["share"]) for each in classes),
            calls=int(found["calls"]),
        )


def _level(
    subject: Subject, told: Entry, calls: int, names: Iterable[str] | None = None, **bounds: float | None
) -> Iterator[MinedLevel]:
    """Return the level of a part of an entry, with the quantiles whose range is known; nothing without one."""
    quantiles = tuple(
        NormalQuantile(
            name=name,
            seconds=float(each["seconds"]),
            low=float(each["low"]),
            high=float(each["high"]),
        )
        for name, each in (told.get("quantiles") or {}).items()
        if (names is None or name in names) and _says_something(each)
    )
    if quantiles:
        windows, lifetimes = (int(told.get(name) or 1) for name in ("windows", "lifetimes"))
        yield MinedLevel(
            subject=subject, quantiles=quantiles, calls=calls, windows=windows, lifetimes=lifetimes, **bounds
        )


def _says_something(quantile: Entry | None) -> bool:
    """Tell whether the range of a quantile is known, and narrow enough that slowness could violate it."""
    if not quantile or quantile.get("low") is None or quantile.get("high") is None:
        return False
    return bool(quantile["seconds"] > 0 and quantile["high"] <= WIDEST * quantile["seconds"])


def _title(entry: Entry) -> str:
    return title(entry["function"], entry.get("module") or "")
