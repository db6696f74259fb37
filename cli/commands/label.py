"""``specmine label``: give a build a name that people know."""

from __future__ import annotations

from pathlib import Path

import click

from specmine.analysis.documents import json_text
from specmine.cli.base.options import PATH, format_option, socket_option
from specmine.cli.base.output import emit
from specmine.cli.base.sources import send_label
from specmine.model.text import escaped

LONGEST = 200


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
def command(build: str, name: str, store: Path | None, socket: Path | None, form: str) -> None:
    """Give BUILD, a build-id or its first digits, the name NAME."""
    if not name.strip() or len(name) > LONGEST or not name.isprintable():
        raise click.UsageError(f"NAME is printable text of 1 to {LONGEST} characters.")
    whole = send_label(build, name, store, socket)
    if form == "json":
        emit(json_text({"schema": "specmine.label/1", "build_id": whole, "label": name}))
    else:
        emit(f"Build {escaped(whole)} is now called {escaped(name)}.\n")
