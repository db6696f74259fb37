"""Functions as the kernel side describes them, and what the controller knows about each."""

from __future__ import annotations

from dataclasses import dataclass

from specmine.model.function import Function
from specmine.store.table import FLAG, INTEGER, LIST, OBJECT, Column, JsonObject, Table

FUNCTIONS = Table(
    name="functions",
    record=Function,
    columns=(
        Column("key", computed=lambda function, _: function.key),
        Column("build_id"),
        Column("offset", INTEGER),
        Column("name"),
        Column("module"),
        Column("aliases", LIST),
        Column("mangled"),
        Column("in_program", FLAG),
        Column("stepped", FLAG),
        # its code is known later than its name
        Column(
            "code",
            since=3,
            default="",
            update="CASE WHEN excluded.code = '' THEN functions.code ELSE excluded.code END",
        ),
        Column("unsampled", FLAG, since=8, default=0),
    ),
    key=("key",),
    order=("key",),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionRecord:
    """What the controller knows about a function."""

    function: str
    state: JsonObject


FUNCTION_RECORDS = Table(
    name="states",
    record=FunctionRecord,
    columns=(
        Column("function"),
        Column("state", OBJECT),
        Column("updated_utc_ns", INTEGER, computed=lambda _, context: context.utc_ns),
    ),
    key=("function",),
    order=("function",),
    age="updated_utc_ns",
    most=5_000,
)
