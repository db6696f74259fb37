"""What ``specmine report`` does: each build compared with the one before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from specmine.analysis.lifetimes.selection import read_lifetimes
from specmine.analysis.report.document import document_of
from specmine.analysis.report.page import page
from specmine.cli.base.exit_codes import FINE, NO_DATA, no_data
from specmine.cli.base.output import destination, json_text
from specmine.mining.regression.comparison import Rule
from specmine.model.globs import fits


def run_report(
    file: Path,
    rule: Mapping[str, Any],
    *,
    globs: Sequence[str],
    skip_bad: bool,
    output: Path | None,
    form: str,
) -> int:
    """Report, write the result, and return the exit code."""
    how = Rule(**rule)
    observed = read_lifetimes(file, skip_bad=skip_bad).observed
    chosen = [each for each in observed if not globs or any(fits(*each.key, glob) for glob in globs)]
    if not chosen:
        raise no_data(f"{file} holds no lifetime of such a function" if globs else f"{file} holds no lifetime")
    with destination(output) as write:
        document = document_of(chosen, how, file)
        write(json_text(document) if form == "json" else page(document, chosen, how))
    return FINE if any(each["steps"] for each in document["functions"]) else NO_DATA
