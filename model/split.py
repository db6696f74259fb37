"""What timed calls did of their time: on a CPU, runnable but waiting for one, blocked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .buckets import BUCKETS
from .histogram import Counts, frozen_counts


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Split:
    """What timed calls did of their time: on a CPU, runnable but waiting for one, blocked; shape (BUCKETS,) each.

    Of the calls in a bucket of duration the rest of their time, neither waiting nor blocked, was on CPU.
    """

    waiting_ns: Counts
    """Runnable without a CPU, ns, summed over the calls in each bucket of their duration."""
    blocked_ns: Counts
    """Waiting for anything else, ns, likewise."""
    on_cpu: Counts
    """The calls by their time on CPU, the probes' own cost included as in durations."""

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        for name in ("waiting_ns", "blocked_ns", "on_cpu"):
            object.__setattr__(self, name, frozen_counts(getattr(self, name)))


def split_or_unbroken(counts: Counts, split: Split | None) -> Split:
    """Return a split, or that of calls which ran without a break."""
    if split is not None:
        return split
    zeros = np.zeros(BUCKETS, dtype=np.uint64)
    return Split(waiting_ns=zeros, blocked_ns=zeros, on_cpu=counts)


def added(splits: Sequence[Split]) -> Split | None:
    """Add splits up; None if there is none."""
    if not splits:
        return None
    return Split(
        waiting_ns=np.sum([each.waiting_ns for each in splits], axis=0),
        blocked_ns=np.sum([each.blocked_ns for each in splits], axis=0),
        on_cpu=np.sum([each.on_cpu for each in splits], axis=0),
    )
