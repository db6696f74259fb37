"""The store: what specmine remembers. There is SQL in no other folder.

- What a store can do: ``protocol``; what can be wrong with one: ``errors``.
- What can be written: ``writes``. What is read at once: ``contents``.
- Which tables there are, and how an older store becomes one of today: ``schema``. One table: ``tables/``.
- What a table is: ``table``. The SQL made of it: ``statements``. Histograms as bytes: ``codec``,
  what happened inside calls: ``inside_codec``.
- What is new since a reader was there: ``increments``. What waits to be sent elsewhere: ``outbox``. A store that is no
  file: ``place``.
- The engine: ``sqlite``, ``sqlite_file``. Background writes: ``writer``. How a store stays small: ``retention``.
"""

from .contents import Contents
from .errors import StoreCorrupt, StoreError
from .increments import Increment, Mark, StoredWindow
from .merge import merged_store
from .place import StorePlace, Where, read_store
from .protocol import Store
from .retention import Retention
from .schema import Record
from .sqlite import SqliteStore
from .tables.benchmarks import BenchmarkHost, BenchmarkResult, BenchmarkRun, StoredBenchmark
from .tables.documents import Document
from .tables.functions import FunctionRecord
from .tables.host_environments import EnvironmentVector, ExperimentWindow, environment_at
from .tables.hosts import Host
from .tables.lifetime_summaries import LifetimeSummary
from .tables.profiles import WHOLE_PROGRAM, FunctionProfile
from .tables.programs import Build
from .tables.verdicts import Verdict
from .tables.violations import StoredViolation, stored
from .writer import StoreWriter, WriterCounts
from .writes import Writes

open_store = SqliteStore.open
"""Opens a store; see ``SqliteStore.open``."""

__all__ = [
    "WHOLE_PROGRAM",
    "BenchmarkHost",
    "BenchmarkResult",
    "BenchmarkRun",
    "Build",
    "Contents",
    "Document",
    "EnvironmentVector",
    "ExperimentWindow",
    "FunctionProfile",
    "FunctionRecord",
    "Host",
    "Increment",
    "LifetimeSummary",
    "Mark",
    "Record",
    "Retention",
    "Store",
    "StoreCorrupt",
    "StoreError",
    "StorePlace",
    "StoreWriter",
    "StoredBenchmark",
    "StoredViolation",
    "StoredWindow",
    "Verdict",
    "Where",
    "WriterCounts",
    "Writes",
    "environment_at",
    "merged_store",
    "open_store",
    "read_store",
    "stored",
]
