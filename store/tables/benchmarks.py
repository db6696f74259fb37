"""Benchmarks of this host: what is to be run, and what came of each run. A fleet has tables of its own for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from specmine.store.table import BYTES, INTEGER, LIST, OBJECT, Column, JsonObject, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBenchmark:
    """A benchmark as it was planned."""

    name: str
    document: JsonObject
    plan: JsonObject
    created_utc_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkRun:
    """One run of a benchmark."""

    benchmark: str
    number: int
    block: int
    build: str
    rebuild: int
    state: str = "waiting"
    """waiting, running, done or failed."""
    host: str = ""
    attempts: int = 0
    token: str = ""
    """Of the runner that has a lease of it."""
    leased_utc_ns: int = 0
    """Until when."""
    begun_utc_ns: int = 0
    ended_utc_ns: int = 0
    failures: Sequence[Mapping[str, Any]] = field(default_factory=tuple)
    """Attempts without a result, with their reasons."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkResult:
    """What a run measured; apart from the run, so that claims stay cheap."""

    benchmark: str
    number: int
    result: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkHost:
    """A host whose runner worked on a benchmark."""

    benchmark: str
    host: str
    heard_utc_ns: int
    facts: JsonObject


BENCHMARKS = Table(
    name="benchmarks",
    record=StoredBenchmark,
    columns=(
        Column("name"),
        Column("document", OBJECT),
        Column("plan", OBJECT),
        Column("created_utc_ns", INTEGER),
    ),
    key=("name",),
    order=("created_utc_ns", "name"),
    since=11,
    merged=False,
)

BENCHMARK_RUNS = Table(
    name="benchmark_runs",
    record=BenchmarkRun,
    columns=(
        Column("benchmark"),
        Column("number", INTEGER),
        Column("block", INTEGER),
        Column("build"),
        Column("rebuild", INTEGER),
        Column("state"),
        Column("host"),
        Column("attempts", INTEGER),
        Column("token"),
        Column("leased_utc_ns", INTEGER),
        Column("begun_utc_ns", INTEGER),
        Column("ended_utc_ns", INTEGER),
        Column("failures", LIST),
    ),
    key=("benchmark", "number"),
    order=("benchmark", "number"),
    since=11,
    merged=False,
)

BENCHMARK_RESULTS = Table(
    name="benchmark_results",
    record=BenchmarkResult,
    columns=(Column("benchmark"), Column("number", INTEGER), Column("result", BYTES)),
    key=("benchmark", "number"),
    order=("benchmark", "number"),
    since=11,
    merged=False,
)

BENCHMARK_HOSTS = Table(
    name="benchmark_hosts",
    record=BenchmarkHost,
    columns=(Column("benchmark"), Column("host"), Column("heard_utc_ns", INTEGER), Column("facts", OBJECT)),
    key=("benchmark", "host"),
    order=("benchmark", "host"),
    since=11,
    merged=False,
)
