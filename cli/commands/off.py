"""``specmine off``: take all probes off, and keep them off."""

from __future__ import annotations

from pathlib import Path

import click

from specmine.cli.base.options import PATH, format_option, socket_option
from specmine.cli.runners.probes_switch import switch_probes


@click.command("off", short_help="Take all probes off, and keep them off.")
@click.option("--file", type=PATH, metavar="FILE", help="The kill switch itself; no daemon is asked then.")
@socket_option
@format_option
def command(file: Path | None, socket: Path | None, form: str) -> None:
    """Take all probes off within a second, and keep them off until `specmine on`.

    The daemon goes on running. A file does it, which the process that holds the probes looks for by itself.
    """
    switch_probes(off=True, socket=socket, file=file, form=form)
