"""``specmine assertions``: everything that is asserted, as text or as ``specmine.specification/1``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from specmine.analysis.documents import functions_of, without_details
from specmine.analysis.wording.assertions import is_asserted
from specmine.cli.base.exit_codes import data_code
from specmine.cli.base.options import choice_options, reading_options
from specmine.cli.base.output import emit, width
from specmine.cli.base.sources import read_document, read_functions
from specmine.cli.base.typography import typeset
from specmine.cli.text.specification import specification
from specmine.daemon.documents.json_text import json_text

if TYPE_CHECKING:
    from specmine.store import Where


@click.command("assertions", short_help="What is asserted.")
@choice_options
@reading_options
def command(program: str | None, build: str | None, store: Where | None, socket: Path | None, form: str) -> int:
    """Show what is asserted about the durations of functions, and whether it holds.

    Exit code 3 if nothing is asserted yet.
    """
    document = read_document(store, socket)
    if program is not None or build is not None:
        document = {**document, "functions": read_functions(store, socket, program, build)}
    if form == "json":
        emit(json_text(without_details(document)))
    else:
        emit(typeset("\n".join(specification(document, width())) + "\n"))
    return data_code(any(map(is_asserted, functions_of(document))))
