"""What ``specmine report`` does: each build compared with the one before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from specmine.analysis.lifetimes.selection import read_lifetimes
from specmine.analysis.report.document import document_of
from specmine.analysis.report.page import page
from specmine.cli.base.exit_codes import FINE, NO_DATA, no_data
from specmine.cli.base.output import destination, write_stderr
from specmine.cli.text.function_names import check_named
from specmine.daemon.documents.json_text import json_text
from specmine.mining.regression.comparison import Rule
from specmine.model.globs import fits
from specmine.model.text import escaped
from specmine.store import Where


def run_report(
    file: Where,
    rule: Mapping[str, Any],
    *,
    globs: Sequence[str],
    skip_bad: bool,
    output: Path | None,
    form: str,
) -> int:
    """Report, write the result, and return the exit code."""
    how = Rule(**rule)
    recorded = read_lifetimes(file, skip_bad=skip_bad)
    if not recorded.observed:
        raise no_data(f"{file} holds no lifetime")
    check_named((each.key for each in recorded.observed), globs)
    chosen = [each for each in recorded.observed if not globs or any(fits(*each.key, glob) for glob in globs)]
    with destination(output) as write:
        recorded = replace(recorded, observed=chosen)
        document = document_of(recorded, how, file)
        write(json_text(document) if form == "json" else page(document, recorded, how))
    if any(each["steps"] for each in document["functions"]):
        return FINE
    builds = [each["label"] for each in document["builds"]]
    what = (
        f"{file} holds only the build {builds[0]}"
        if len(builds) == 1
        else f"no function in {file} was timed in two builds"
    )
    write_stderr(f"specmine: {escaped(what)}: nothing to compare; the report says how long calls take")
    return NO_DATA
