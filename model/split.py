"""The time of timed calls in three parts: running on a CPU, waiting for one, blocked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .histogram import EMPTY, Histogram


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Split:
    """The time of calls in three parts.

    Time that is neither waiting nor blocked is running.
    """

    waiting_ns: Histogram
    """Time runnable without a CPU, ns, summed over the calls in each bucket of duration."""
    blocked_ns: Histogram
    """Time waiting for anything else, ns, summed likewise."""
    on_cpu: Histogram
    """The calls by their time on CPU, the probes' own cost included as in durations."""


def unbroken(histogram: Histogram) -> Split:
    """Return the split of calls that never left their CPU."""
    return Split(waiting_ns=EMPTY, blocked_ns=EMPTY, on_cpu=histogram)


def sum_of_splits(splits: Sequence[Split]) -> Split | None:
    """Add splits up; None if there is none."""
    if not splits:
        return None
    return Split(
        waiting_ns=Histogram.sum(split.waiting_ns for split in splits),
        blocked_ns=Histogram.sum(split.blocked_ns for split in splits),
        on_cpu=Histogram.sum(split.on_cpu for split in splits),
    )


def sharing(split: Split | None, histogram: Histogram) -> Split | None:
    """Return the split with this very object as its time on CPU if both are equal; this saves memory."""
    if split is None or split.on_cpu is histogram or split.on_cpu != histogram:
        return split
    return replace(split, on_cpu=histogram)
