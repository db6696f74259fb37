"""What the fleet says to this host, into a file that the daemon reads: duties, and statements of its functions.

Nothing of it is believed: it is bounded and checked here, and once more by the daemon. What cannot be read is left out,
and a contact that brings nothing leaves the file as it was: its age tells the daemon when it is alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from specmine.daemon.sharing.document import (
    FILE,
    MOST_DUTIES,
    MOST_LEFT,
    MOST_STATEMENTS,
    BadOrders,
    Received,
    checked_duty,
    read_received,
    read_statement,
    received_text,
)
from specmine.fleet.codec import inflated
from specmine.fleet.database.pushing import Told
from specmine.mining.fleet.duty import Duty
from specmine.mining.fleet.statement import InheritedStatement

STALE_S = 900.0
"""Duties decided so long ago are none: nobody plans any more."""
MOST_ASKED = 4
"""Times that a contact asks for statements, 200 each."""
_LARGEST = 1 << 20


class Adviser(Protocol):
    """The side of the fleet that says what to observe."""

    def duties(self) -> Told | None:
        """See ``HostConnection.duties``."""
        ...

    def statements(self, since: int) -> list[tuple[int, bytes]]:
        """See ``HostConnection.statements``."""
        ...


def receive(folder: Path, adviser: Adviser, boot_id: str, now_ns: Callable[[], int]) -> Received | None:
    """Ask the fleet, and write what it says; return it, None if it asks for nothing. Raises FleetError."""
    told = adviser.duties()
    if told is None or told.age_s > STALE_S:
        return None
    path = folder / FILE
    before = _written(path)
    since, known = before.number, {each.function: each for each in before.statements}
    if told.newest < since:
        since, known = 0, {}
    for _ in range(MOST_ASKED):
        news = adviser.statements(since)
        for number, data in news:
            since = max(since, number)
            statement = _statement(data)
            if statement is not None:
                known.pop(statement.function, None)
                known[statement.function] = statement
        if len(news) < 200:
            break
    duties, left = _duties(told.document)
    received = Received(
        boot_id=boot_id, told_ns=now_ns(), duties=duties, left=left, number=since,
        statements=tuple(known.values())[-MOST_STATEMENTS:],
    )  # fmt: skip
    _write(path, received)
    return received


def _duties(data: bytes) -> tuple[tuple[Duty, ...], tuple[str, ...]]:
    try:
        found = json.loads(inflated(data, _LARGEST))
        duties, left = found.get("duties", []), found.get("left", [])
        if not isinstance(duties, list) or not isinstance(left, list):
            return (), ()
    except (ValueError, AttributeError, RecursionError):
        return (), ()
    taken = []
    for each in duties[:MOST_DUTIES]:
        try:
            taken.append(checked_duty(each))
        except BadOrders:
            continue
    return tuple(taken), tuple(key for key in left[:MOST_LEFT] if isinstance(key, str) and 0 < len(key) <= 512)


def _statement(data: bytes) -> InheritedStatement | None:
    try:
        return read_statement(inflated(data, _LARGEST))
    except (BadOrders, ValueError):
        return None


def _written(path: Path) -> Received:
    try:
        return read_received(path.read_bytes())
    except (OSError, BadOrders):
        return Received(boot_id="", told_ns=0)


def _write(path: Path, received: Received) -> None:
    new = path.with_name(f".{path.name}.new")
    with new.open("w", encoding="ascii") as file:
        file.write(received_text(received))
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
