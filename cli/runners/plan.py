"""What ``specmine plan`` does: lifetimes read, counts planned, written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from specmine.analysis.compare.plan import PlanRequest, plan_document
from specmine.analysis.lifetimes.selection import read_lifetimes
from specmine.cli.base.exit_codes import FINE, NO_DATA, no_data
from specmine.cli.base.output import destination, width
from specmine.cli.base.typography import typeset
from specmine.cli.text.function_names import check_named
from specmine.cli.text.plan import plan_text
from specmine.daemon.documents.json_text import json_text
from specmine.model.globs import fits


def run_plan(
    file: Path, request: PlanRequest, *, globs: Sequence[str], skip_bad: bool, output: Path | None, form: str
) -> int:
    """Plan, write the result, and return the exit code."""
    observed = read_lifetimes(file, skip_bad=skip_bad).observed
    if not observed:
        raise no_data(f"{file} holds no lifetime")
    check_named((each.key for each in observed), globs)
    chosen = [each for each in observed if not globs or any(fits(*each.key, glob) for glob in globs)]
    with destination(output) as write:
        document = plan_document(chosen, request, file)
        write(json_text(document) if form == "json" else typeset(plan_text(document, width())))
    return FINE if document["plan"] else NO_DATA
