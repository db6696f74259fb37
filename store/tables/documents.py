"""Whole documents by name, such as the specification as it was last published."""

from __future__ import annotations

from dataclasses import dataclass

from specmine.store.table import INTEGER, OBJECT, Column, JsonObject, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A document, in place of the last one of its name."""

    name: str
    document: JsonObject


DOCUMENTS = Table(
    name="documents",
    record=Document,
    columns=(
        Column("name"),
        Column("document", OBJECT),
        Column("updated_utc_ns", INTEGER, computed=lambda _, context: context.utc_ns),
    ),
    key=("name",),
    order=("name",),
    merged=False,
)
