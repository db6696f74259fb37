"""Durations of single calls per function and lifetime: the first in their order, and a fair sample.

A sample of fewer calls replaces nothing, and the longest order of first calls stays: after a restart of the daemon
both begin anew.
"""

from __future__ import annotations

from specmine.model.batch import CallSamples
from specmine.store.codec import decode_durations, encode_durations
from specmine.store.table import INTEGER, Column, Form, Table

_DURATIONS = Form("bytes", encode_durations, decode_durations)

CALL_SAMPLES = Table(
    name="singles",
    record=CallSamples,
    columns=(
        Column("function"),
        Column("lifetime"),
        Column("calls", INTEGER),
        Column("updated_utc_ns", INTEGER, computed=lambda _, context: context.utc_ns),
        Column(
            "first",
            _DURATIONS,
            update="CASE WHEN length(excluded.first) >= length(singles.first) THEN excluded.first"
            " ELSE singles.first END",
        ),
        Column("kept", _DURATIONS, field="sample"),
    ),
    key=("function", "lifetime"),
    order=("function", "lifetime"),
    since=5,
    update_if="excluded.calls >= singles.calls",
    age="updated_utc_ns",
    most=20_000,  # about 1 kB each
)
