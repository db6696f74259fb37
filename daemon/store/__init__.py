"""What specmine remembers, in one SQLite file; SQL stands nowhere else."""

from .contents import Build, Contents, Host, Verdict
from .database import Store
from .merging import merged_store
from .opening import StoreCorrupt, StoreError
from .retention import Retention
from .sampled import WHOLE, Sampled
from .summaries import LifetimeSummary
from .surveys import Marked, Vector, vector_at
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
