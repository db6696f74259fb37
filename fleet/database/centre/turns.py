"""Turns: of several processes at a centre one loads and one plans, the others wait for its end; what was done."""

from __future__ import annotations

from dataclasses import dataclass

from specmine.fleet.database.connecting import Connection

LOADS, FOLDS, PLANS = 0x73706D6E, 0x73706D66, 0x73706D70
"""Advisory locks: of who loads, of who folds, which is the same process, and of who plans."""


@dataclass(slots=True)
class Served:
    """What was done."""

    pushes: int = 0
    refused: int = 0
    rows: int = 0
    hours: int = 0
    dropped: int = 0
    plans: int = 0
    mined: int = 0


def its_turn(db: Connection, lock: int) -> bool:
    """Take the turn if nobody has it; return whether it is taken. It stays until the connection ends."""
    row = db.execute("SELECT pg_try_advisory_lock(%s::bigint) AS mine", (lock,)).fetchone()
    assert row is not None
    return bool(row["mine"])
