"""``specmine off``: detach all probes, and keep them off."""

from __future__ import annotations

from pathlib import Path

import click

from specmine.cli.base.options import PATH, format_option, socket_option
from specmine.cli.runners.probes_switch import switch_probes


@click.command("off", short_help="Detach all probes, and keep them off.")
@click.option("--file", type=PATH, metavar="FILE", help="The file of the kill switch; no daemon is asked then.")
@socket_option
@format_option
def command(file: Path | None, socket: Path | None, form: str) -> None:
    """Detach all probes within a second, and keep them off until `specmine on`.

    The daemon keeps running. The switch is a file. The process that holds the probes looks for it by itself, so this
    works without a daemon that answers.
    """
    switch_probes(off=True, socket=socket, file=file, form=form)
