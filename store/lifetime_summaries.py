"""One histogram per lifetime and function, kept for as long as a build may still be compared with.

Observations merge and go; what a lifetime was like stays here. Calls of the first seconds after the exec are
kept apart as warm-up.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from specmine.model.buckets import BUCKETS
from specmine.model.histogram import Counts
from specmine.model.observation import Kind, Observation

from .codec import decode_counts, encode_counts

WARMUP_NS = 10 * 10**9
"""Windows that began in a lifetime's first ten seconds are warm-up, if as many calls came later."""
_TICK_NS = 10**7  # start times of processes are told in hundredths of a second
_MOST = 100_000


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
    packed: tuple[bytes, bytes]
    """Both histograms as they are stored: a store holds many."""

    @property
    def early(self) -> Counts:
        """Durations of windows that began within ``WARMUP_NS`` of the exec."""
        return decode_counts(self.packed[0])

    @property
    def later(self) -> Counts:
        """Durations of the other windows."""
        return decode_counts(self.packed[1])

    @property
    def counts(self) -> Counts:
        """Durations without the warm-up; with it if most calls are in it."""
        early, later = self.early, self.later
        return later if int(later.sum()) >= max(int(early.sum()), 1) else early + later

    @property
    def warmup_calls(self) -> int:
        """Timed calls left out as warm-up."""
        return int(self.early.sum() + self.later.sum() - self.counts.sum())


def add_observations(db: sqlite3.Connection, observations: Iterable[Observation]) -> None:
    """Add observations to the summaries of their lifetimes."""
    offsets: dict[str, int] = dict(db.execute("SELECT boot_id, utc_offset_ns FROM hosts"))
    for each in observations:
        if each.timed == 0:
            continue
        key = each.function, each.lifetime, each.kind.value
        offset = offsets.get(each.lifetime.split(":", maxsplit=1)[0], 0)
        row = db.execute("SELECT * FROM summaries WHERE function = ? AND lifetime = ? AND kind = ?", key).fetchone()
        before = None if row is None else _summary(row)
        db.execute(f"INSERT OR REPLACE INTO summaries VALUES(?{', ?' * 9})", _row(key, each, before, offset))


def load_summaries(db: sqlite3.Connection, newest: int = _MOST) -> tuple[LifetimeSummary, ...]:
    """Return the newest summaries, in the order of functions and of time."""
    rows = db.execute(
        "SELECT * FROM (SELECT * FROM summaries ORDER BY end_utc_ns DESC LIMIT ?)"
        " ORDER BY function, start_utc_ns, lifetime, kind",
        (newest,),
    )
    return tuple(map(_summary, rows))


def drop_oldest_summaries(db: sqlite3.Connection) -> None:
    """Delete the oldest of what there is too much of."""
    if db.execute("SELECT count(*) FROM summaries").fetchone()[0] > _MOST:
        db.execute(
            "DELETE FROM summaries WHERE end_utc_ns <"
            " (SELECT end_utc_ns FROM summaries ORDER BY end_utc_ns DESC LIMIT 1 OFFSET ?)",
            (_MOST,),
        )


def _row(
    key: tuple[str, str, str], each: Observation, before: LifetimeSummary | None, offset: int
) -> tuple[object, ...]:
    nothing = np.zeros(BUCKETS, dtype=np.uint64)
    early, later = (nothing, nothing) if before is None else (before.early, before.later)
    if each.start_ns < _exec_ns(each.lifetime) + WARMUP_NS:
        early = early + each.counts
    else:
        later = later + each.counts
    start, end, calls, watched_ns, bias_ns = each.start_ns + offset, each.end_ns + offset, 0, 0, 0.0
    timed = 0
    if before is not None:
        start, end = min(start, before.start_utc_ns), max(end, before.end_utc_ns)
        calls, watched_ns, timed = before.calls, before.watched_ns, int(before.early.sum() + before.later.sum())
        bias_ns = before.bias_ns
    bias_ns = (bias_ns * timed + each.bias_ns * each.timed) / (timed + each.timed)
    return (*key, start, end, calls + each.calls, watched_ns + each.watched_ns, bias_ns,
            encode_counts(early), encode_counts(later))  # fmt: skip


def _exec_ns(lifetime: str) -> int:
    """Return when a lifetime's exec was, on the clock of its boot; far in the past if its id does not say."""
    ticks = lifetime.rsplit(":", maxsplit=1)[-1]
    return int(ticks) * _TICK_NS if ticks.isdigit() else -(1 << 62)


def _summary(row: sqlite3.Row) -> LifetimeSummary:
    return LifetimeSummary(
        function=row["function"],
        lifetime=row["lifetime"],
        kind=Kind(row["kind"]),
        start_utc_ns=row["start_utc_ns"],
        end_utc_ns=row["end_utc_ns"],
        calls=row["calls"],
        watched_ns=row["watched_ns"],
        bias_ns=row["bias_ns"],
        packed=(row["early"], row["later"]),
    )
