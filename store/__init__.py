"""What specmine remembers, in one SQLite file; SQL stands nowhere else."""

from .connection import StoreCorrupt, StoreError
from .host_environments import Marked, Vector, vector_at
from .lifetime_summaries import LifetimeSummary
from .merge import merged_store
from .profiles import WHOLE, Sampled
from .records import Build, Contents, Host, Verdict
from .retention import Retention
from .sqlite import Store
from .writer import StoreWriter, WriterCounts

__all__ = [
    "WHOLE",
    "Build",
    "Contents",
    "Host",
    "LifetimeSummary",
    "Marked",
    "Retention",
    "Sampled",
    "Store",
    "StoreCorrupt",
    "StoreError",
    "StoreWriter",
    "Vector",
    "Verdict",
    "WriterCounts",
    "merged_store",
    "vector_at",
]
