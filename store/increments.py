"""What a store holds that it did not hold before: for whoever passes it on, such as to a fleet."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

from specmine.model.batch import CallSamples
from specmine.model.observation import Observation

from .statements import names_of
from .tables.call_samples import CALL_SAMPLES
from .tables.lifetime_summaries import SUMMARIES, LifetimeSummary
from .tables.observations import OBSERVATIONS

_OVERLAP_NS = 600 * 10**9
"""Summaries are read again for so long: each replaces the last of its key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """How far a store was read."""

    observation: int = 0
    """Number of the last row of observations."""
    summary_utc_ns: int = -1
    samples_utc_ns: int = -1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredWindow:
    """A row of observations with its number."""

    number: int
    merges: int
    """How often it was merged with others."""
    observation: Observation


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Increment:
    """What came after a mark, and the mark after that."""

    windows: tuple[StoredWindow, ...]
    summaries: tuple[LifetimeSummary, ...]
    samples: tuple[CallSamples, ...]
    mark: Mark
    continued: bool
    """False: the rows are numbered anew since the mark, so all of them are here."""


def increment(db: sqlite3.Connection, mark: Mark, most: int) -> Increment:
    """Return what came after a mark, at most so many windows; the caller handles errors."""
    newest = db.execute("SELECT coalesce(max(id), 0) FROM observations").fetchone()[0]
    continued = newest >= mark.observation
    rows = db.execute(
        f"SELECT merges, {names_of(OBSERVATIONS)} FROM observations WHERE id > :after ORDER BY id LIMIT :most",
        {"after": mark.observation if continued else 0, "most": most},
    ).fetchall()
    windows = tuple(
        StoredWindow(number=row["id"], merges=row["merges"], observation=observation)
        for row, observation in zip(rows, OBSERVATIONS.records_of(rows), strict=True)
    )
    # windows of other functions may have ended earlier and be written later, so some come twice
    summaries = db.execute(
        f"SELECT {names_of(SUMMARIES)} FROM summaries WHERE end_utc_ns > :after ORDER BY end_utc_ns",
        {"after": mark.summary_utc_ns - _OVERLAP_NS},
    ).fetchall()
    samples = db.execute(
        f"SELECT {names_of(CALL_SAMPLES)} FROM singles WHERE updated_utc_ns >= :after ORDER BY updated_utc_ns",
        {"after": mark.samples_utc_ns},
    ).fetchall()
    return Increment(
        windows=windows,
        summaries=tuple(SUMMARIES.records_of(summaries)),
        samples=tuple(CALL_SAMPLES.records_of(samples)),
        continued=continued,
        mark=Mark(
            observation=windows[-1].number if windows else min(mark.observation, newest),
            summary_utc_ns=_last(summaries, "end_utc_ns", mark.summary_utc_ns),
            samples_utc_ns=_last(samples, "updated_utc_ns", mark.samples_utc_ns),
        ),
    )


def _last(rows: Iterable[sqlite3.Row], name: str, before: int) -> int:
    return max((int(row[name]) for row in rows), default=before)
