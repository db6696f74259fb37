"""The list of tables, and how a store of an older schema becomes one of this schema.

Each table and column names the version that brought it, so older stores get a new one without a migration. A
migration that changes rows is a function in ``SCHEMA.migrations``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from specmine.model.batch import CallSamples, Lifetime
from specmine.model.function import Function
from specmine.model.observation import Observation

from .table import Column, Database, Table
from .tables.benchmarks import (
    BENCHMARK_HOSTS,
    BENCHMARK_RESULTS,
    BENCHMARK_RUNS,
    BENCHMARKS,
    BenchmarkHost,
    BenchmarkResult,
    BenchmarkRun,
    StoredBenchmark,
)
from .tables.call_samples import CALL_SAMPLES
from .tables.documents import DOCUMENTS, Document
from .tables.functions import FUNCTION_RECORDS, FUNCTIONS, FunctionRecord
from .tables.host_environments import ENVIRONMENTS, EXPERIMENT_WINDOWS, EnvironmentVector, ExperimentWindow
from .tables.hosts import HOSTS, Host
from .tables.lifetime_summaries import SUMMARIES
from .tables.observations import OBSERVATIONS
from .tables.profiles import PROFILES, FunctionProfile
from .tables.programs import BUILDS, LIFETIMES, Build
from .tables.verdicts import VERDICTS, Verdict
from .tables.violations import VIOLATIONS, StoredViolation

T = TypeVar("T")

Record = (
    Host
    | Build
    | Lifetime
    | Function
    | Observation
    | FunctionRecord
    | Verdict
    | Document
    | FunctionProfile
    | EnvironmentVector
    | ExperimentWindow
    | CallSamples
    | StoredViolation
    | StoredBenchmark
    | BenchmarkRun
    | BenchmarkResult
    | BenchmarkHost
)
"""What can be written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """A change of stored rows."""

    name: str
    version: int
    """Of the schema that it leads to."""
    apply: Callable[[Database], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """Tables, and the changes of rows that led to them."""

    tables: tuple[Table[Any], ...]
    """In the order in which they are written: what rows refer to comes first."""
    migrations: tuple[Migration, ...] = ()

    @property
    def version(self) -> int:
        """The newest version that a table, column or migration brought."""
        columns = [column.since for table in self.tables for column in table.columns]
        tables = [table.since for table in self.tables]
        return max(*columns, *tables, *(each.version for each in self.migrations))

    def table(self, record: type[T]) -> Table[T]:
        """Return the table of a type of records."""
        return next(table for table in self.tables if table.record is record)

    def new_tables(self, found: int) -> list[Table[Any]]:
        """Return the tables that a store of version ``found`` lacks."""
        return [table for table in self.tables if table.since > found]

    def new_columns(self, found: int) -> list[tuple[Table[Any], Column]]:
        """Return the columns that the tables of such a store lack."""
        tables = [table for table in self.tables if table.since <= found]
        return [(table, column) for table in tables for column in table.columns if column.since > found]

    def pending(self, found: int) -> list[Migration]:
        """Return the changes of rows that such a store still needs, in their order."""
        return sorted((each for each in self.migrations if each.version > found), key=lambda each: each.version)


def _uncertainty_of_old_observations(db: Database) -> None:
    """Give older observations the least uncertainty that calibration ever gave."""
    db.execute("UPDATE observations SET uncertainty_ns = 0.12 * bias_ns")


SCHEMA = Schema(
    tables=(
        HOSTS,
        BUILDS,
        LIFETIMES,
        FUNCTIONS,
        OBSERVATIONS,
        SUMMARIES,
        CALL_SAMPLES,
        FUNCTION_RECORDS,
        VERDICTS,
        DOCUMENTS,
        PROFILES,
        ENVIRONMENTS,
        EXPERIMENT_WINDOWS,
        VIOLATIONS,
        BENCHMARKS,
        BENCHMARK_RUNS,
        BENCHMARK_RESULTS,
        BENCHMARK_HOSTS,
    ),
    migrations=(Migration(name="uncertainty of old observations", version=7, apply=_uncertainty_of_old_observations),),
)
