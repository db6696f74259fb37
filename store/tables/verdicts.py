"""The history of verdicts: a row when a verdict changes, not for every check."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from specmine.store.table import INTEGER, OBJECT, Column, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The result of a check of the assertion or comparison ``subject`` of a function."""

    function: str
    subject: str
    verdict: str
    utc_ns: int
    evidence: Mapping[str, Any] = field(default_factory=dict)


VERDICTS = Table(
    name="verdicts",
    record=Verdict,
    columns=(
        Column("function"),
        Column("subject"),
        Column("verdict"),
        Column("utc_ns", INTEGER),
        Column("evidence", OBJECT),
    ),
    order=("id",),
    indexes={"verdicts_of_function": ("function", "subject", "id")},
    unless_last=("function", "subject", "verdict"),
    same=("function", "subject", "verdict", "utc_ns"),
    age="id",
    most=100_000,
)
