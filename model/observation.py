"""The vocabulary every folder speaks: functions, call paths, histograms of durations, observations.

Durations live in one fixed log-linear layout from the kernel's counters to the reports: 32 buckets per power
of two, so a bucket is at most 3.2 % wide. The layout here and ``probes/bpf/histogram.h`` are compared by a test.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .text import title

SUB_BITS = 5
"""log2 of the buckets per power of two."""
FIRST_EXPONENT = 5
"""Durations below 2**5 ns share the first bucket with 32 ns."""
LAST_EXPONENT = 39
"""Durations of 2**40 ns (1,100 s) and more share the last bucket."""
BUCKETS = (LAST_EXPONENT - FIRST_EXPONENT + 1) << SUB_BITS
"""Number of buckets (1,120)."""

Counts = NDArray[np.uint64]
"""Counts per bucket, shape (BUCKETS,)."""


def bucket_of(duration_ns: ArrayLike) -> NDArray[np.int64]:
    """Return the bucket of each duration.

    Parameters
    ----------
    duration_ns : array_like of int
        Durations in ns, at least 0, any shape.

    Returns
    -------
    ndarray of int64
        Bucket numbers in [0, BUCKETS), same shape.
    """
    low, high = 1 << FIRST_EXPONENT, (1 << (LAST_EXPONENT + 1)) - 1
    value = np.clip(np.asarray(duration_ns, dtype=np.int64), low, high)
    # frexp is exact here: values stay below 2**40 < 2**53
    exponent = np.frexp(value.astype(np.float64))[1].astype(np.int64) - 1
    mantissa = value >> (exponent - SUB_BITS)  # in [32, 64)
    return ((exponent - FIRST_EXPONENT) << SUB_BITS) + (mantissa & ((1 << SUB_BITS) - 1))


def bucket_edges() -> NDArray[np.float64]:
    """Return the BUCKETS + 1 edges in ns; bucket i holds durations in [edges[i], edges[i + 1])."""
    index = np.arange(BUCKETS + 1, dtype=np.int64)
    exponent = (index >> SUB_BITS) + FIRST_EXPONENT
    mantissa = (index & ((1 << SUB_BITS) - 1)) + (1 << SUB_BITS)
    return np.asarray(mantissa * np.exp2(exponent - SUB_BITS), dtype=np.float64)


def histogram_of(durations_ns: ArrayLike) -> Counts:
    """Count durations in ns into the fixed layout."""
    return np.bincount(bucket_of(durations_ns).ravel(), minlength=BUCKETS).astype(np.uint64)


def quantiles(counts: NDArray[np.uint64], levels: Sequence[float]) -> list[float]:
    """Return quantiles of a histogram in ns, interpolated within the bucket; zeros if it is empty."""
    total = int(counts.sum())
    if not total:
        return [0.0] * len(levels)
    below = np.concatenate(([0], np.cumsum(counts, dtype=np.float64)))
    return [float(each) for each in np.interp(np.asarray(levels) * total, below, bucket_edges())]


def frozen_counts(counts: ArrayLike) -> Counts:
    """Return a read-only copy of the counts; ValueError if the shape is not (BUCKETS,)."""
    array = np.array(counts, dtype=np.uint64)
    if array.shape != (BUCKETS,):
        raise ValueError(f"a histogram has shape ({BUCKETS},), not {array.shape}")
    array.flags.writeable = False
    return array


@dataclass(frozen=True, slots=True, order=True)
class Frame:
    """One frame of a call path, as it is shown: function name and base name of the mapped file."""

    name: str
    module: str


@dataclass(frozen=True, slots=True, order=True)
class CallPath:
    """The frames from the thread's start to the function, outermost first, the function last.

    ``complete`` is False when the walk did not reach the thread's start: such a path is counted and marked,
    never used to tell behaviours apart.
    """

    frames: tuple[Frame, ...]
    complete: bool = True

    def edges(self) -> frozenset[tuple[Frame, Frame]]:
        """Return the caller -> callee pairs; repeated ones collapse."""
        return frozenset(zip(self.frames[:-1], self.frames[1:], strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A native function of one binary."""

    build_id: str
    """Build-id in hex, or ``sha256:`` and 16 hex of .text."""
    offset: int
    """File offset of its first byte."""
    name: str
    """Display name: demangled, no clone suffix; ``module+0xoff`` if it has none."""
    module: str
    """Base name of the mapped file."""
    aliases: tuple[str, ...] = ()
    mangled: str = ""
    """The symbol as it stands in the file, '' if none."""
    in_program: bool = False
    """True if it belongs to the program's own executable, False for a library."""
    stepped: bool = False
    """True if its probe site is single-stepped by the kernel (some 14 times dearer)."""
    unsampled: bool = False
    """True if a choice of its calls cannot be timed: returns are timed at their sites, or it calls itself."""
    code: str = ""
    """Digest of its machine code, the same when it is only linked anew; '' if not known. See mining/change/suspects."""

    @property
    def key(self) -> str:
        """Identity of the function: ``BUILDID+0xOFFSET``."""
        return f"{self.build_id}+0x{self.offset:x}"

    @property
    def title(self) -> str:
        """What people call it: ``name (module)``."""
        return title(self.name, self.module)

    @property
    def frame(self) -> Frame:
        """The function as a frame of a call path."""
        return Frame(self.name, self.module)


class Kind(StrEnum):
    """What is collected at a function's probe, cheapest first."""

    COUNT = "count"
    TIME = "time"
    PATH = "path"


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PathHistogram:
    """The durations of the calls that came over one call path."""

    path: CallPath
    counts: Counts
    split: Split | None = None
    """None: not known, or, where the observation's is, all of these calls ran without a break."""

    def __post_init__(self) -> None:
        """Freeze the counts."""
        object.__setattr__(self, "counts", frozen_counts(self.counts))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Observation:
    """One histogram of the durations of a function's calls over a window of one lifetime.

    Durations are as the kernel measured them; ``bias_ns`` of them is the probes' own cost. It is subtracted
    where a duration is stated, not in the counts, so that data of any calibration can be merged.
    """

    function: str
    """Key of the function."""
    lifetime: str
    kind: Kind
    start_ns: int
    """CLOCK_MONOTONIC, ns."""
    end_ns: int
    counts: Counts
    """Durations of the outermost calls that ended in the window; their sum is the number of timed calls."""
    calls: int
    """Outermost calls counted while the entry probe was on; at least the number of timed ones."""
    watched_ns: int
    """How long the entry probe was on in the window; less than its length under a duty cycle."""
    inner: int = 0
    """Recursive calls inside an outermost one, counted but not timed."""
    censored: int = 0
    """Calls begun in the window whose end was not seen."""
    bias_ns: float = 0.0
    uncertainty_ns: float = 0.0
    """How well the durations are known: of the bias, and of what was taken off for probes hit within the calls."""
    paths: tuple[PathHistogram, ...] = field(default=())
    """Kind PATH only: the same durations by call path, incomplete paths included."""
    split: Split | None = None
    """Running, waiting and blocked; None where this is not known."""

    def __post_init__(self) -> None:
        """Freeze the counts and check the window."""
        object.__setattr__(self, "counts", frozen_counts(self.counts))
        if self.end_ns <= self.start_ns:
            raise ValueError(f"a window ends after it starts: {self.start_ns} .. {self.end_ns}")

    @property
    def timed(self) -> int:
        """Number of timed calls."""
        return int(self.counts.sum())


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why a function is in its state: a stable code, a sentence, and what would help."""

    code: str
    text: str
    remedy: str = ""
