"""``specmine doctor``: can this host, and this process, be watched?"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import click

from specmine.cli.base.exit_codes import FINE, HOST
from specmine.cli.base.options import PROCESS_ID, format_option
from specmine.cli.base.output import emit, width
from specmine.daemon.documents.json_text import json_text
from specmine.model.errors import InputError
from specmine.model.text import escaped


class Check(Protocol):
    """One need of specmine: found or not, and the remedy."""

    @property
    def name(self) -> str:
        """Short name, stable."""

    @property
    def ok(self) -> bool:
        """True if the need is met."""

    @property
    def detail(self) -> str:
        """What was found."""

    @property
    def remedy(self) -> str:
        """What to do if it is not met, '' otherwise."""

    @property
    def needed(self) -> bool:
        """False if specmine works without it, only less well."""


@click.command("doctor", short_help="Can this host, and this process, be watched?")
@click.option("-p", "--pid", type=PROCESS_ID, metavar="PID", help="Also: can this process be watched?")
@format_option
def command(pid: int | None, form: str) -> int:
    """Check whether this host has what specmine needs. For each missing need the remedy is shown.

    Exit code 4 if something needed is missing.
    """
    from specmine.experiments.load import worker_binary  # noqa: PLC0415
    from specmine.probes import doctor  # noqa: PLC0415

    if pid is not None and not Path(f"/proc/{pid}").is_dir():
        raise InputError(f"there is no process {pid}", remedy="see `ps -e`")

    compiler = doctor.Check(
        name="compiler",
        ok=worker_binary.can_be_had(),
        detail="a C compiler for the load of host experiments",
        remedy=worker_binary.REMEDY,
        needed=False,
    )
    found: Sequence[Check] = [*doctor.checks(pid), compiler]
    if form == "json":
        listing = [
            {
                "name": each.name,
                "ok": each.ok,
                "detail": each.detail,
                "remedy": "" if each.ok else each.remedy,
                "needed": each.needed,
            }
            for each in found
        ]
        emit(json_text({"schema": "specmine.doctor/1", "checks": listing}))
    else:
        emit("\n".join(report(found, width())) + "\n")
    return FINE if all(each.ok for each in found if each.needed) else HOST


def report(found: Sequence[Check], columns: int) -> list[str]:
    """Return one line a check, with the remedy below where it helps, and the upshot last."""
    lines = []
    name_width = max((len(each.name) for each in found), default=0)
    for each in found:
        mark = "ok" if each.ok else "FAIL" if each.needed else "warn"
        start = f"{mark:<5} {escaped(each.name).ljust(name_width)}  "
        hang = " " * len(start)
        text = escaped(each.detail) or "-"
        lines += textwrap.wrap(text, columns, initial_indent=start, subsequent_indent=hang, break_on_hyphens=False)
        if each.remedy and not each.ok:
            lines += textwrap.wrap(
                f"remedy: {escaped(each.remedy)}",
                columns,
                initial_indent=hang,
                subsequent_indent=hang + "  ",
                break_on_hyphens=False,
            )
    missing = [each.name for each in found if each.needed and not each.ok]
    upshot = f"Not ready: {', '.join(map(escaped, missing))}." if missing else "Ready."
    return [*lines, "", *textwrap.wrap(upshot, columns)]
