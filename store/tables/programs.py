"""Builds of programs, with the users' labels, and their lifetimes."""

from __future__ import annotations

from dataclasses import dataclass

from specmine.model.batch import Lifetime
from specmine.store.table import INTEGER, Column, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """One build of a program, with the label that the user gave it."""

    build_id: str
    executable: str = ""
    """'': the name that is stored stays."""
    label: str | None = None
    """None: the label that is stored stays."""


def build_of(record: Lifetime | Build) -> Build:
    """Return the build of a lifetime."""
    return record if isinstance(record, Build) else Build(build_id=record.build_id, executable=record.executable)


BUILDS = Table(
    name="builds",
    record=Build,
    columns=(
        Column("build_id"),
        Column(
            "executable",
            update="CASE WHEN builds.executable = '' THEN excluded.executable ELSE builds.executable END",
        ),
        Column("label", null=True, update="coalesce(excluded.label, builds.label)"),
    ),
    key=("build_id",),
    order=("build_id",),
    takes=(Lifetime, Build),
    convert=build_of,
)

LIFETIMES = Table(
    name="lifetimes",
    record=Lifetime,
    columns=(
        Column("id"),
        Column("boot_id", computed=lambda lifetime, _: lifetime.boot_id),
        Column("pid", INTEGER),
        Column("executable"),
        Column("build_id"),
        Column("start_ns", INTEGER),
        Column("processes", INTEGER),
        Column("program", since=9, default=""),
    ),
    key=("id",),
    order=("start_ns", "id"),
    age="start_ns",
    most=10_000,
    unless="id IN (SELECT lifetime FROM observations) OR id IN (SELECT lifetime FROM summaries)",
)
