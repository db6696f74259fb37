"""What another store holds and this one does not, copied."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from urllib.parse import quote


def absorb(db: sqlite3.Connection, other: Path) -> None:
    """Copy the rows of another store that are not in this one; SQLite does it, nothing passes through memory."""
    db.execute("ATTACH ? AS other", (f"file:{quote(str(other.absolute()))}?mode=ro",))
    try:
        db.execute("BEGIN IMMEDIATE")
        for table in (
            "hosts", "builds", "lifetimes", "functions", "states", "summaries", "sampled", "environments", "marks",
            "singles",
        ):  # fmt: skip
            db.execute(f"INSERT OR IGNORE INTO main.{table} SELECT * FROM other.{table}")
        for table, same in (
            ("observations", ("function", "kind", "end_utc_ns", "lifetime", "start_ns", "merges")),
            ("verdicts", ("function", "subject", "verdict", "utc_ns")),
        ):
            columns = [row["name"] for row in db.execute(f"PRAGMA other.table_info({table})") if row["name"] != "id"]
            names, equal = ", ".join(columns), " AND ".join(f"mine.{name} = theirs.{name}" for name in same)
            db.execute(
                f"INSERT INTO main.{table}({names}) SELECT {names} FROM other.{table} AS theirs"
                f" WHERE NOT EXISTS (SELECT 1 FROM main.{table} AS mine WHERE {equal}) ORDER BY theirs.id"
            )
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    finally:
        db.execute("DETACH other")
