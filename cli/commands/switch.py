"""``specmine off`` and ``specmine on``: detach all probes and keep them off; allow them again."""

from __future__ import annotations

from pathlib import Path

import click

from specmine.cli.base.options import PATH, format_option, socket_option
from specmine.cli.runners.probes_switch import switch_probes

_file_option = click.option(
    "--file", type=PATH, metavar="FILE", help="The file of the kill switch; no daemon is asked then."
)


@click.command("off", short_help="Detach all probes, and keep them off.")
@_file_option
@socket_option
@format_option
def off(file: Path | None, socket: Path | None, form: str) -> None:
    """Detach all probes within a second, and keep them off until `specmine on`.

    The daemon keeps running. The switch is a file. The process that holds the probes looks for it by itself, so this
    works without a daemon that answers.
    """
    switch_probes(off=True, socket=socket, file=file, form=form)


@click.command("on", short_help="Allow probes again after off.")
@_file_option
@socket_option
@format_option
def on(file: Path | None, socket: Path | None, form: str) -> None:
    """Allow probes again after `specmine off`."""
    switch_probes(off=False, socket=socket, file=file, form=form)
