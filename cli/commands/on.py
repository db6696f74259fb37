"""``specmine on``: let probes come back after off."""

from __future__ import annotations

from pathlib import Path

import click

from specmine.cli.base.options import PATH, format_option, socket_option
from specmine.cli.runners.probes_switch import switch_probes


@click.command("on", short_help="Let probes come back after off.")
@click.option("--file", type=PATH, metavar="FILE", help="The kill switch itself; no daemon is asked then.")
@socket_option
@format_option
def command(file: Path | None, socket: Path | None, form: str) -> None:
    """Let probes come back after ``specmine off``."""
    switch_probes(off=False, socket=socket, file=file, form=form)
