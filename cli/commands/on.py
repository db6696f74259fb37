"""``specmine on``: allow probes again after off."""

from __future__ import annotations

from pathlib import Path

import click

from specmine.cli.base.options import PATH, format_option, socket_option
from specmine.cli.runners.probes_switch import switch_probes


@click.command("on", short_help="Allow probes again after off.")
@click.option("--file", type=PATH, metavar="FILE", help="The file of the kill switch; no daemon is asked then.")
@socket_option
@format_option
def command(file: Path | None, socket: Path | None, form: str) -> None:
    """Allow probes again after `specmine off`."""
    switch_probes(off=False, socket=socket, file=file, form=form)
