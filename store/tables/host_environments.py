"""Environments of hosts over time, and when experiments loaded them: so each observation has its environment.

A boot's environment is a row when it changes. An observation's is the newest row of its boot that is not younger than
its end, or the boot's first if it was made before anything was known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from specmine.store.table import INTEGER, LIST, OBJECT, Column, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentVector:
    """The environment of a host from a time on."""

    boot_id: str
    since_utc_ns: int
    document: Mapping[str, Any]
    """A ``specmine.environment/1``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentWindow:
    """A window of time in which an experiment loaded CPUs: calls meanwhile are not as usual."""

    boot_id: str
    start_ns: int
    """CLOCK_MONOTONIC of its boot."""
    end_ns: int
    name: str
    cpus: tuple[int, ...] = ()


ENVIRONMENTS = Table(
    name="environments",
    record=EnvironmentVector,
    columns=(Column("boot_id"), Column("since_utc_ns", INTEGER), Column("document", OBJECT)),
    key=("boot_id", "since_utc_ns"),
    order=("boot_id", "since_utc_ns"),
    since=4,
    unless_last=("boot_id", "document"),
    age="since_utc_ns",
    most=2_000,
)

EXPERIMENT_WINDOWS = Table(
    name="marks",
    record=ExperimentWindow,
    columns=(
        Column("boot_id"),
        Column("start_ns", INTEGER),
        Column("end_ns", INTEGER),
        Column("name"),
        Column("cpus", LIST),
    ),
    key=("boot_id", "start_ns", "name"),
    order=("boot_id", "start_ns", "name"),
    since=4,
    age="start_ns",
    most=20_000,
)


def environment_at(vectors: Iterable[EnvironmentVector], boot_id: str, utc_ns: int) -> Mapping[str, Any] | None:
    """Return the environment of a boot's host at a time, None if it was never known."""
    of_boot = sorted((each for each in vectors if each.boot_id == boot_id), key=lambda each: each.since_utc_ns)
    before = [each for each in of_boot if each.since_utc_ns <= utc_ns]
    chosen = before[-1] if before else of_boot[0] if of_boot else None
    return chosen.document if chosen else None
