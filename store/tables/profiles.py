"""The time profile of each build, by sampling: self time, inclusive time, and callers of its functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from specmine.store.table import INTEGER, OBJECT, REAL, Column, Table

WHOLE_PROGRAM = ""
"""Function of the row that holds all time of a build."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionProfile:
    """One function in all runs of one build; with function ``WHOLE_PROGRAM`` all functions together."""

    build_id: str
    """Of the program, not of the file that holds the function."""
    function: str
    samples: int = 0
    """Samples of the CPU clock with the function innermost."""
    cpu_ns: float = 0.0
    """Time on CPU with the function innermost."""
    wait_ns: float = 0.0
    """Time blocked with the function innermost."""
    inclusive_ns: float = 0.0
    callers: Mapping[str, float] = field(default_factory=dict)
    """Keys of its callers with the inclusive time over each."""


PROFILES = Table(
    name="sampled",
    record=FunctionProfile,
    columns=(
        Column("build_id"),
        Column("function"),
        Column("samples", INTEGER),
        Column("cpu_ns", REAL),
        Column("wait_ns", REAL),
        Column("inclusive_ns", REAL),
        Column("callers", OBJECT),
    ),
    key=("build_id", "function"),
    order=("build_id", "function"),
    since=3,
    age="inclusive_ns",  # the least sampled are deleted
    most=20_000,
    unless="function = ''",
)
