"""Have the daemon follow where the calls of a function wait, and wait for the first answer."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from specmine.analysis.documents import Entry
from specmine.cli.base.sources import ask_daemon
from specmine.model.errors import NoData
from specmine.model.text import escaped

if TYPE_CHECKING:
    from specmine.store import Where

LOOK_S, MORE_S = 1.0, 3.0
"""How often it is looked whether there is an answer, and how long the next phases are awaited after the first."""


def followed_waits(
    entry: Entry, store: Where | None, socket: Path | None, read: Callable[[], list[Entry]]
) -> list[Entry]:
    """Return the functions once waits of one of them were followed; ``read`` reads them anew.

    Raises
    ------
    UsageError
        With a store: only a daemon can look.
    NoData
        If the function had no timed call in the time.
    """
    if store is not None:
        raise click.UsageError("--waits asks the running daemon to look; a store cannot.")
    before = _at(entry)
    answer: dict[str, Any] = ask_daemon(socket, {"command": "waits", "function": entry["key"]})
    name, limit_s = escaped(str(entry.get("function"))), float(answer["seconds"])
    click.echo(f"following the waits of {name}, for up to {limit_s:.0f} s ...", err=True)
    until = time.monotonic() + limit_s
    while time.monotonic() < until:
        time.sleep(LOOK_S)
        entries = read()
        if any(each.get("key") == entry["key"] and _at(each) not in (None, before) for each in entries):
            time.sleep(MORE_S)
            return read()
    raise NoData(
        f"no call of {name} was followed in {limit_s:.0f} s",
        remedy="it was not timed, or this host cannot: see `specmine doctor`, and kernel.wait_kind",
    )


def _at(entry: Entry) -> str | None:
    waits = entry.get("waits")
    return str(waits["at"]) if isinstance(waits, dict) else None
