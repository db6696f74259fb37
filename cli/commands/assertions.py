"""``specmine assertions``: everything that is asserted, as text or as ``specmine.specification/1``."""

from __future__ import annotations

from pathlib import Path

import click

from specmine.analysis.documents import functions_of, without_details
from specmine.cli.base.exit_codes import data_code
from specmine.cli.base.options import reading_options
from specmine.cli.base.output import emit, specification_text, width
from specmine.cli.base.sources import read_document
from specmine.cli.text.assertions import is_asserted, specification


@click.command("assertions", short_help="What is asserted.")
@reading_options
def command(store: Path | None, socket: Path | None, form: str) -> int:
    """Show what is asserted about the durations of functions.

    Exit code 3 if nothing is asserted yet.
    """
    document = read_document(store, socket)
    if form == "json":
        emit(specification_text(without_details(document)))
    else:
        emit("\n".join(specification(document, width())) + "\n")
    return data_code(any(map(is_asserted, functions_of(document))))
