"""What ``specmine compare`` does: both sides read, compared function by function, written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from specmine.analysis.compare.comparing import compare_functions
from specmine.analysis.compare.document import document_of, fails
from specmine.analysis.compare.self_test import self_test_document
from specmine.analysis.compare.sides import chosen_functions, read_sides
from specmine.cli.base.exit_codes import FINE, NO_DATA, VIOLATED
from specmine.cli.base.output import destination, width
from specmine.cli.base.typography import typeset
from specmine.cli.text.comparison import comparison_text, self_test_text
from specmine.cli.text.function_names import check_named
from specmine.daemon.documents.json_text import json_text
from specmine.mining.regression.comparison import Change, Rule
from specmine.store import Where


def run_compare(
    positional: tuple[str | None, str | None],
    store: Where | None,
    labels: tuple[str | None, str | None],
    *,
    rule: Mapping[str, Any],
    fdr: bool,
    strict: bool,
    everything: bool,
    globs: Sequence[str],
    split: bool,
    warmup: bool,
    skip_bad: bool,
    output: Path | None,
    form: str,
) -> int:
    """Compare, write the result, and return the exit code."""
    sides = read_sides(positional, store, labels, skip_bad=skip_bad, warmup=warmup)
    how = Rule(**rule)
    check_named({**sides.base, **sides.new}, globs)
    names = chosen_functions(sides, globs)
    with destination(output) as write:
        if split:
            document = self_test_document(sides, names, how)
            write(json_text(document) if form == "json" else self_test_text(document))
            return FINE if document["splits"] else NO_DATA
        document = document_of(sides, compare_functions(sides, names, how, fdr=fdr), how, fdr=fdr)
        text = comparison_text(document, width(), everything=everything)
        write(json_text(document) if form == "json" else typeset(text))
    return exit_code(document["functions"], named=bool(globs), strict=strict)


def exit_code(functions: Sequence[Mapping[str, Any]], *, named: bool, strict: bool = False) -> int:
    """Return 1 if any fails; else 3 if none is decided, or one that was asked for is undecided; else 0."""
    if any(fails(each, strict=strict) for each in functions):
        return VIOLATED
    undecided = sum(each["verdict"] == Change.UNDECIDED.value for each in functions)
    return NO_DATA if undecided == len(functions) or (named and undecided) else FINE
