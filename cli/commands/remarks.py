"""``specmine label`` and ``specmine acknowledge``: what people tell, the name of a build or that a change is known."""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from specmine.analysis.documents import functions_of, title
from specmine.cli.base import completion
from specmine.cli.base.options import PATH, choice_options, format_option, socket_option
from specmine.cli.base.output import emit
from specmine.cli.base.sources import ask_daemon, build_id_of, one_place, send_label
from specmine.cli.text.violations import clock, name_of
from specmine.daemon.documents.json_text import json_text
from specmine.model.errors import InputError
from specmine.model.text import escaped

SCHEMA = "specmine.acknowledged/1"
LONGEST = 1000
LONGEST_LABEL = 200
Found = tuple[Sequence[Mapping[str, Any]], Sequence[Mapping[str, Any]]]
"""Violations, and comparisons of builds."""


@click.command("label", short_help="Give a build a name.")
@click.argument("build")
@click.argument("name")
@click.option(
    "--store",
    type=PATH,
    metavar="FILE",
    help="Write to this store instead of asking the daemon.",
)
@socket_option
@format_option
def label(build: str, name: str, store: Path | None, socket: Path | None, form: str) -> None:
    """Give BUILD, a build-id or its first digits, the name NAME."""
    if not name.strip() or len(name) > LONGEST_LABEL or not name.isprintable():
        raise click.UsageError(f"NAME is printable text of 1 to {LONGEST_LABEL} characters.")
    whole = send_label(build, name, store, socket)
    if form == "json":
        emit(json_text({"schema": "specmine.label/1", "build_id": whole, "label": name}))
    else:
        emit(f"Build {escaped(whole)} is now called {escaped(name)}.\n")


@click.command("acknowledge", short_help="Say that a change is known.")
@click.argument("function", required=False, shell_complete=completion.functions)
@choice_options
@click.option("--comment", default="", metavar="TEXT", help="The reason; stored and shown.")
@click.option("--undo", is_flag=True, help="Raise the alarm between builds again.")
@click.option("--store", type=PATH, metavar="FILE", help="Read and write this store instead of asking the daemon.")
@socket_option
@format_option
def acknowledge(
    function: str | None,
    program: str | None,
    build: str | None,
    comment: str,
    undo: bool,
    store: Path | None,
    socket: Path | None,
    form: str,
) -> None:
    """Acknowledge what is open of FUNCTION, a name or a glob. Without FUNCTION, list what is open.

    An acknowledged violation closes: how the function is now is what is asserted from now on. An acknowledged alarm
    between two builds stays silent until the change becomes another one: the interval of its ratio no longer
    contains the acknowledged ratio, the direction turns, or the change ends and begins again.
    """
    if len(comment) > LONGEST or (comment and not comment.isprintable()):
        raise click.UsageError(f"--comment is printable text of at most {LONGEST} characters.")
    if function is None and (undo or comment or build or program):
        raise click.UsageError("Say which FUNCTION; without one what is open is listed.")
    one_place(store, socket)
    wanted = build_id_of(build, store, socket) if build else ""
    if store is not None:
        violations, changes = _in_store(store, function, program, wanted, comment, undo=undo)
    else:
        request: dict[str, Any] = {"command": "acknowledge"}
        if function is not None:
            request |= {"function": function, "program": program or "", "build": wanted}
            request |= {"comment": comment, "undo": undo, "by": user()}
        answer = ask_daemon(socket, request)
        violations, changes = answer["violations"], answer["changes"]
    if form == "json":
        emit(json_text({"schema": SCHEMA, "violations": list(violations), "changes": list(changes)}))
        return
    lines = [*map(_violation_line, violations), *map(_line, changes)]
    emit("\n".join(map(escaped, lines or ["Nothing is open."])) + "\n")


def user() -> str:
    """Return the name of the person who asks, also behind sudo."""
    name = os.environ.get("SUDO_USER", "")
    if name:
        return name
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"


def _in_store(store: Path, function: str | None, program: str | None, build: str, comment: str, *, undo: bool) -> Found:
    from specmine.analysis.violations import acknowledge_in, violations_in  # noqa: PLC0415
    from specmine.analysis.wording.violations import is_open, with_consequences  # noqa: PLC0415
    from specmine.cli.text.function_names import is_of_program, matching  # noqa: PLC0415
    from specmine.daemon.regression.acknowledgements import open_alarms  # noqa: PLC0415
    from specmine.model.clock import utc_ns  # noqa: PLC0415
    from specmine.store import read_store  # noqa: PLC0415

    violations = [each for each in violations_in(store)["violations"] if is_open(each)]
    if function is None:
        with read_store(store) as opened:
            document = opened.document("changes") or {}
        return violations, open_alarms(document.get("changes", ()))
    found = [each for each in matching(violations, function) if str(each["build_id"]).startswith(build)]
    found = [each for each in found if program is None or is_of_program(each, program)]
    found = [] if undo else with_consequences(found, violations)
    violated = None if found else [str(each["function"]) for each in violations]
    changes = _changes_in_store(store, function, program, build, comment, undo=undo, violated=violated)
    acknowledge_in(store, frozenset(str(each["id"]) for each in found), user(), comment, utc_ns())
    return [{**each, "state": "acknowledged", "comment": comment or None} for each in found], changes


def _changes_in_store(
    store: Path,
    function: str,
    program: str | None,
    build: str,
    comment: str,
    *,
    undo: bool,
    violated: Sequence[str] | None,
) -> Sequence[Mapping[str, Any]]:
    """Acknowledge the alarms between builds in a store.

    ``violated`` are functions with open violations, none of them meant: then there must be an alarm, else InputError.
    """
    from specmine.cli.text.function_names import is_of_program  # noqa: PLC0415
    from specmine.daemon.regression.acknowledgements import (  # noqa: PLC0415
        acknowledgement_now,
        key_of,
        matching_alarms,
        shown_with,
    )
    from specmine.model.clock import utc_ns  # noqa: PLC0415
    from specmine.store import Document, Writes, open_store  # noqa: PLC0415

    with open_store(store) as opened:
        document = opened.document("changes") or {"schema": "specmine.changes/1", "changes": []}
        entries = functions_of(opened.document("specification") or {"functions": []})
        names = {(each["function"], each["module"]) for each in entries if program and is_of_program(each, program)}
        asked = [each for each in document["changes"] if not program or (each["function"], each["module"]) in names]
        now = utc_ns()
        try:
            found = matching_alarms(asked, function, build, undo=undo, violated=violated or ())
        except InputError:
            if violated is not None:
                raise
            return []
        known = {
            key_of(each): shown_with(each, None if undo else acknowledgement_now(each, now, comment)) for each in found
        }
        changes = [known.get(key_of(each), each) for each in document["changes"]]
        opened.write(Writes((Document(name="changes", document={**document, "changes": changes}),)), now)
    return list(known.values())


def _violation_line(each: Mapping[str, Any]) -> str:
    comment = f": {each['comment']}" if each.get("comment") else ""
    return f"{name_of(each)}: {each['change']} since {clock(str(each['since']), None)}, {each['state']}{comment}"


def _line(each: Mapping[str, Any]) -> str:
    percent = 100 * (float(each["ratio"]) - 1)
    acknowledged = each.get("acknowledged")
    note = f": {acknowledged['note']}" if acknowledged and acknowledged["note"] else ""
    builds = f"{str(each['base'])[:12]} -> {str(each['new'])[:12]}"
    host = each.get("host") or {}
    cause = f"; the host explains it: {host['reason']}" if host.get("explained") else ""
    return f"{title(each)}, {builds}: {each['direction']} by {abs(percent):.3g} %, {each['alarm']}{note}{cause}"
