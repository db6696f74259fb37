"""The open window of one function: the kernel's counters at its start, and what was drained since."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from specmine.model.buckets import BUCKETS


@dataclass(slots=True, eq=False, kw_only=True)
class Window:
    """Running totals at the start of a window."""

    start_ns: int
    calls: int
    timed: int
    stepped: int
    inner: int
    nested_ns: int
    unlearnt: int
    censored: int
    watched_ns: int
    histogram: NDArray[np.uint64]
    paths: dict[int, NDArray[np.uint64]] = field(default_factory=dict)
    """Kind PATH: durations of the window's calls by path id."""

    @property
    def timed_by_path(self) -> int:
        """The number of calls drained with their path."""
        return sum(int(counts.sum()) for counts in self.paths.values())

    def add(self, path: int, bucket: int, calls: int) -> None:
        """Take in calls of one path and duration."""
        self.paths.setdefault(path, np.zeros(BUCKETS, np.uint64))[bucket] += np.uint64(calls)
