"""One histogram per lifetime and function, stored for as long as a build may still be compared with.

Observations merge and are deleted; what a lifetime was like stays here. Calls of the first seconds after the exec are
counted apart, as warm-up.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specmine.model.batch import boot_of
from specmine.model.histogram import EMPTY, Histogram
from specmine.model.observation import Kind, Observation
from specmine.store.codec import decode_histogram, encode_histogram
from specmine.store.statements import put, read
from specmine.store.table import BYTES, INTEGER, REAL, Column, Database, Table, WriteContext

from .observations import KIND

WARMUP_NS = 10 * 10**9
"""Windows that began in a lifetime's first ten seconds are warm-up, if as many calls came later."""
_TICK_NS = 10**7  # start times of processes are given in hundredths of a second


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LifetimeSummary:
    """The durations of one function in one lifetime, all windows together."""

    function: str
    lifetime: str
    kind: Kind
    start_utc_ns: int
    end_utc_ns: int
    calls: int
    watched_ns: int
    bias_ns: float
    packed_early: bytes
    """Histogram of windows that began within ``WARMUP_NS`` of the exec, as it is stored: a store holds many."""
    packed_later: bytes
    """Histogram of the other windows."""

    @property
    def early(self) -> Histogram:
        """Durations of windows that began within ``WARMUP_NS`` of the exec."""
        return decode_histogram(self.packed_early)

    @property
    def later(self) -> Histogram:
        """Durations of the other windows."""
        return decode_histogram(self.packed_later)

    @property
    def histogram(self) -> Histogram:
        """Durations without the warm-up; with it if most calls are in it."""
        early, later = self.early, self.later
        return later if later.total >= max(early.total, 1) else early + later

    @property
    def warmup_calls(self) -> int:
        """Timed calls left out as warm-up."""
        return self.early.total + self.later.total - self.histogram.total


def add_observations(db: Database, observations: Iterable[Observation], context: WriteContext) -> None:
    """Add observations to the summaries of their lifetimes."""
    for window in observations:
        if window.timed:
            before = read(db, SUMMARIES, function=window.function, lifetime=window.lifetime, kind=window.kind.value)
            put(db, SUMMARIES, [_added(before[0] if before else None, window, context)], context)


SUMMARIES = Table(
    name="summaries",
    record=LifetimeSummary,
    columns=(
        Column("function"),
        Column("lifetime"),
        Column("kind", KIND),
        Column("start_utc_ns", INTEGER),
        Column("end_utc_ns", INTEGER),
        Column("calls", INTEGER),
        Column("watched_ns", INTEGER),
        Column("bias_ns", REAL),
        Column("early", BYTES, field="packed_early"),
        Column("later", BYTES, field="packed_later"),
    ),
    key=("function", "lifetime", "kind"),
    order=("function", "start_utc_ns", "lifetime", "kind"),
    indexes={"summaries_by_age": ("end_utc_ns",)},
    since=2,
    takes=(Observation,),
    put=add_observations,
    age="end_utc_ns",
    most=100_000,
)


def _added(before: LifetimeSummary | None, window: Observation, context: WriteContext) -> LifetimeSummary:
    """Return a summary with one more window."""
    offset = context.offsets.get(boot_of(window.lifetime), 0)
    start, end, calls, watched_ns = window.start_ns + offset, window.end_ns + offset, 0, 0
    early = later = EMPTY
    bias_ns, timed = 0.0, 0
    if before is not None:
        start, end = min(start, before.start_utc_ns), max(end, before.end_utc_ns)
        calls, watched_ns, bias_ns = before.calls, before.watched_ns, before.bias_ns
        early, later = before.early, before.later
        timed = early.total + later.total
    if window.start_ns < _exec_ns(window.lifetime) + WARMUP_NS:
        early += window.histogram
    else:
        later += window.histogram
    return LifetimeSummary(
        function=window.function,
        lifetime=window.lifetime,
        kind=window.kind,
        start_utc_ns=start,
        end_utc_ns=end,
        calls=calls + window.calls,
        watched_ns=watched_ns + window.watched_ns,
        bias_ns=(bias_ns * timed + window.bias_ns * window.timed) / (timed + window.timed),
        packed_early=encode_histogram(early),
        packed_later=encode_histogram(later),
    )


def _exec_ns(lifetime: str) -> int:
    """Return when a lifetime's exec was, on the clock of its boot; far in the past if its id does not contain it."""
    ticks = lifetime.rsplit(":", maxsplit=1)[-1]
    return int(ticks) * _TICK_NS if ticks.isdigit() else -(1 << 62)
