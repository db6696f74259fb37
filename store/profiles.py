"""Where sampling saw the time of each build go: what tells self time from that of callees, and who calls whom."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from .tables import canonical

_MOST = 20_000
WHOLE = ""
"""Function of the row that holds all time of a build."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    """One function in all runs of one build of the program, or with function ``WHOLE`` all of them together."""

    build_id: str
    """Of the program, not of the file that holds the function."""
    function: str
    samples: int = 0
    """Samples of the CPU clock with the function innermost."""
    cpu_ns: float = 0.0
    """Time on CPU with the function innermost."""
    wait_ns: float = 0.0
    """Time blocked with the function innermost."""
    inclusive_ns: float = 0.0
    callers: Mapping[str, float] = field(default_factory=dict)
    """Keys of its callers with the inclusive time over each."""


def put_sampled(db: sqlite3.Connection, rows: Iterable[Sampled]) -> None:
    """Replace what is known of functions; the least sampled go when there are too many."""
    db.executemany(
        "INSERT OR REPLACE INTO sampled VALUES(?, ?, ?, ?, ?, ?, ?)",
        (
            (each.build_id, each.function, each.samples, each.cpu_ns, each.wait_ns, each.inclusive_ns,
             canonical(dict(each.callers)))
            for each in rows
        ),
    )  # fmt: skip
    if db.execute("SELECT count(*) FROM sampled").fetchone()[0] > _MOST:
        db.execute(
            "DELETE FROM sampled WHERE function <> '' AND inclusive_ns <"
            " (SELECT inclusive_ns FROM sampled ORDER BY inclusive_ns DESC LIMIT 1 OFFSET ?)",
            (_MOST,),
        )


def load_sampled(db: sqlite3.Connection) -> tuple[Sampled, ...]:
    """Return all rows, by build and function."""
    return tuple(
        Sampled(
            build_id=row["build_id"],
            function=row["function"],
            samples=row["samples"],
            cpu_ns=row["cpu_ns"],
            wait_ns=row["wait_ns"],
            inclusive_ns=row["inclusive_ns"],
            callers=json.loads(row["callers"]),
        )
        for row in db.execute("SELECT * FROM sampled ORDER BY build_id, function")
    )
