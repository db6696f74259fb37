"""Violations: a row for each, written when it opens and replaced at each change. Times are UTC."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from specmine.model.json_codec import decode, encode
from specmine.model.violation import Violation, ViolationState
from specmine.store.table import INTEGER, Column, Form, Table, canonical


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredViolation:
    """A violation with its times in UTC."""

    id: str
    function: str
    """Key of the function."""
    found_utc_ns: int
    closed_utc_ns: int | None
    state: ViolationState
    violation: Violation
    """All of it; the fields above repeat what is searched for."""


def stored(violation: Violation, utc_offset_ns: int) -> StoredViolation:
    """Return what to store of a violation.

    Parameters
    ----------
    violation : Violation
        Times on the clock of its boot; it has an ``id``.
    utc_offset_ns : int
        What to add to them to get UTC.
    """
    moved = violation.shifted(utc_offset_ns)
    return StoredViolation(
        id=moved.id,
        function=moved.function,
        found_utc_ns=moved.found_ns,
        closed_utc_ns=moved.closed_ns,
        state=moved.state,
        violation=moved,
    )


def _unpacked(text: str) -> Any:
    return decode(Violation, json.loads(text))


VIOLATIONS = Table(
    name="violations",
    record=StoredViolation,
    columns=(
        Column("id"),
        Column("function"),
        Column("found_utc_ns", INTEGER),
        Column("closed_utc_ns", INTEGER, null=True),
        Column("state", Form("text", lambda state: state.value, ViolationState)),
        Column("violation", Form("text", lambda violation: canonical(encode(violation)), _unpacked)),
    ),
    key=("id",),
    order=("found_utc_ns", "id"),
    indexes={"violations_by_age": ("found_utc_ns",)},
    since=9,
    age="found_utc_ns",
    most=20_000,
    unless="state = 'open'",
)
