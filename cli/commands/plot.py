"""``specmine plot``: one function as a picture."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from specmine.analysis.documents import Document, Entry
from specmine.cli.base import completion
from specmine.cli.base.options import PATH, choice_options, source_options
from specmine.cli.base.output import destination, write_stderr
from specmine.cli.base.sources import functions_in, read_document, read_trend
from specmine.cli.text.function_names import single_match
from specmine.model.errors import HostError

if TYPE_CHECKING:
    from specmine.store import Where

FORMATS = ("svg", "png", "pdf")
_HOURS = 24


@click.command("plot", short_help="One function as a picture.")
@click.argument("function", default="*", shell_complete=completion.functions)
@choice_options
@source_options
@click.option("--output", type=PATH, metavar="FILE", help="Write the picture there instead of standard output.")
@click.option(
    "--format", "form", type=click.Choice(FORMATS), help="Kind of picture.  [default: as FILE is called, else svg]"
)
def command(
    function: str,
    program: str | None,
    build: str | None,
    store: Where | None,
    socket: Path | None,
    output: Path | None,
    form: str | None,
) -> None:
    """Draw one FUNCTION: its durations with borders and classes, its behaviours, and the merged call graph with
    the edges that decide between behaviours.

    FUNCTION is a name or a glob, as for `mine --function`; without it, exactly one function must be known.
    """
    document = read_document(store, socket)
    entry = single_match(functions_in(document, store, program, build), function)
    suffix = output.suffix.lower().removeprefix(".") if output is not None else ""
    if form is None and output is not None and suffix not in FORMATS:
        raise click.UsageError(f"Call {output} .svg, .png or .pdf, or say --format.")
    chosen = form or (suffix if suffix in FORMATS else "svg")
    with destination(output) as write:
        known = read_trend(store, socket, [str(entry["key"])], _HOURS) if entry.get("key") else {}
        write(_picture(entry, chosen, place_and_date(document), known, functions_in(document, store, program, build)))
    if output is not None:
        write_stderr(f"specmine: wrote {output}")


def place_and_date(document: Document) -> str:
    """Return the host and when it was seen there: ``shop-03, 22 Nov 2026, 03:12 UTC``; '' where neither is known."""
    from specmine.analysis.wording.typesetting import day_of, moment_of  # noqa: PLC0415

    host = str((document.get("host") or {}).get("hostname") or "")
    told = (document.get("collection") or {}).get("at")
    at = datetime.fromisoformat(str(told)) if told else None
    return ", ".join(filter(None, (host, f"{day_of(at)}, {moment_of(at)} UTC" if at else "")))


def _picture(entry: Entry, form: str, place: str, known: Document, entries: Sequence[Entry]) -> bytes:
    # without a home it says at length where its cache goes
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    try:
        from specmine.cli.pictures.figure import picture  # noqa: PLC0415  (matplotlib takes a second to come)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        raise HostError("matplotlib, which draws, is not installed", remedy="pip install 'specmine[plot]'") from error
    return picture(entry, form, place=place, known=known, entries=entries)
