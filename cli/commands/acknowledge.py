"""``specmine acknowledge``: silence a known alarm until the change becomes another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from specmine.analysis.documents import title
from specmine.cli.base.options import PATH, format_option, socket_option
from specmine.cli.base.output import emit, json_text
from specmine.cli.base.sources import ask_daemon, one_place
from specmine.model.errors import InputError
from specmine.model.text import escaped

SCHEMA = "specmine.acknowledged/1"
LONGEST = 1000


@click.command("acknowledge", short_help="Silence an alarm that you know about.")
@click.argument("function", required=False)
@click.option("--build", default="", metavar="BUILD", help="Only of this new build: its build-id or first digits.")
@click.option("--note", default="", metavar="TEXT", help="The reason; stored and shown.")
@click.option("--undo", is_flag=True, help="Raise it again.")
@click.option("--store", type=PATH, metavar="FILE", help="Read and write this store instead of asking the daemon.")
@socket_option
@format_option
def command(
    function: str | None, build: str, note: str, undo: bool, store: Path | None, socket: Path | None, form: str
) -> None:
    """Acknowledge the alarms of FUNCTION, a name or a glob. Without FUNCTION, list the open alarms.

    An acknowledged alarm stays silent until the change becomes another one: the interval of its ratio no longer
    contains the acknowledged ratio, the direction turns, or the change ends and begins again.
    """
    if len(note) > LONGEST or (note and not note.isprintable()):
        raise click.UsageError(f"--note is printable text of at most {LONGEST} characters.")
    if function is None and (undo or note or build):
        raise click.UsageError("Say which FUNCTION; without one the alarms are listed.")
    one_place(store, socket)
    if store is not None:
        found = _in_store(store, function, build, note, undo=undo)
    else:
        request: dict[str, Any] = {"command": "acknowledge"}
        if function is not None:
            request |= {"function": function, "build": build, "note": note, "undo": undo}
        found = ask_daemon(socket, request)["changes"]
    if form == "json":
        emit(json_text({"schema": SCHEMA, "changes": found}))
        return
    lines = [escaped(_line(each)) for each in found]
    emit("\n".join(lines or ["No alarm stands."]) + "\n")


def _in_store(store: Path, function: str | None, build: str, note: str, *, undo: bool) -> Sequence[Mapping[str, Any]]:
    from specmine.daemon.regression.acknowledgements import (  # noqa: PLC0415
        acknowledgement_now,
        key_of,
        matching_alarms,
        open_alarms,
        shown_with,
    )
    from specmine.model.clock import utc_ns  # noqa: PLC0415
    from specmine.store import Document, Writes, open_store  # noqa: PLC0415

    if not store.is_file():
        raise InputError(f"there is no store {store}")
    with open_store(store, read_only=function is None) as opened:
        document = opened.document("changes") or {"schema": "specmine.changes/1", "changes": []}
        if function is None:
            return open_alarms(document["changes"])
        now = utc_ns()
        found = matching_alarms(document["changes"], function, build, undo=undo)
        new = {key_of(each): shown_with(each, None if undo else acknowledgement_now(each, now, note)) for each in found}
        changes = [new.get(key_of(each), each) for each in document["changes"]]
        opened.write(Writes((Document(name="changes", document={**document, "changes": changes}),)), now)
    return list(new.values())


def _line(each: Mapping[str, Any]) -> str:
    percent = 100 * (float(each["ratio"]) - 1)
    acknowledged = each.get("acknowledged")
    note = f": {acknowledged['note']}" if acknowledged and acknowledged["note"] else ""
    builds = f"{str(each['base'])[:12]} -> {str(each['new'])[:12]}"
    host = each.get("host") or {}
    cause = f"; the host explains it: {host['reason']}" if host.get("explained") else ""
    return f"{title(each)}, {builds}: {each['direction']} by {abs(percent):.3g} %, {each['alarm']}{note}{cause}"
