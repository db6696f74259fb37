"""``specmine export``: the model for other programs, as JSON or as CSV."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from specmine.analysis.documents import Document, functions_of, without_details
from specmine.cli.base.options import output_option, source_options
from specmine.cli.base.output import destination
from specmine.cli.base.sources import read_document
from specmine.daemon.documents.json_text import json_text

if TYPE_CHECKING:
    from specmine.store import Where

COLUMNS = (
    "function", "module", "build_id", "state", "behaviour", "expression", "behaviour_calls", "class",
    "lower_seconds", "upper_seconds", "share",
)  # fmt: skip


@click.command("export", short_help="The model as JSON or CSV.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "csv"]),
    default="json",
    show_default=True,
    help="json: specmine.specification/1; csv: one row per behaviour and class.",
)
@output_option
@source_options
def command(form: str, output: Path | None, store: Where | None, socket: Path | None) -> None:
    """Export all functions with their behaviours and classes, for other programs."""
    document = read_document(store, socket)
    text = json_text(without_details(document)) if form == "json" else csv_text(document)
    with destination(output) as write:
        write(text)


def csv_text(document: Document) -> str:
    """Return RFC 4180 rows: per function, behaviour and class its bounds in s and its share.

    Classes that no behaviour owns, as of unexplained functions, have an empty ``behaviour``.
    """
    lines = io.StringIO(newline="")
    writer = csv.writer(lines)
    writer.writerow(COLUMNS)
    for entry in functions_of(document):
        classes = entry.get("classes") or []
        names = [entry.get("function"), entry.get("module"), entry.get("build_id"), entry.get("state")]
        behaviours: list[tuple[Any, ...]] = [
            (number, each.get("expression"), each.get("calls"), each.get("shares") or [])
            for number, each in enumerate(entry.get("behaviours") or [], start=1)
        ] or [("", "", entry.get("calls"), [each.get("share") for each in classes])]
        for number, expression, calls, shares in behaviours:
            lower: Any = 0
            for at, (each, part) in enumerate(zip(classes, shares, strict=False), start=1):
                upper = each.get("upper_seconds")
                bounds = [_number(lower), "" if upper is None else _number(upper)]
                writer.writerow([*names, number, expression, calls, at, *bounds, _number(part)])
                lower = upper
    return lines.getvalue()


def _number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
