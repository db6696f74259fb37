"""What ``specmine compare`` does: both sides read, compared function by function, written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from specmine.analysis.compare.code_diff import MachineCode
from specmine.analysis.compare.document import document_of
from specmine.analysis.compare.self_test import self_test_document
from specmine.analysis.compare.sides import Sides, chosen_functions, samples
from specmine.cli.base.exit_codes import FINE, NO_DATA, VIOLATED
from specmine.cli.base.output import destination, json_text, width
from specmine.cli.text.comparison import comparison_text, self_test_text
from specmine.mining.regression.comparison import Change, Comparison, Rule, compare, with_discoveries


def run_compare(
    positional: tuple[str | None, str | None],
    store: Path | None,
    labels: tuple[str | None, str | None],
    *,
    rule: Mapping[str, Any],
    fdr: bool,
    globs: Sequence[str],
    split: bool,
    warmup: bool,
    skip_bad: bool,
    output: Path | None,
    form: str,
) -> int:
    """Compare, write the result, and return the exit code."""
    sides = Sides(positional, store, labels, skip_bad=skip_bad, warmup=warmup)
    how = Rule(**rule)
    names = chosen_functions(sides, globs)
    with destination(output) as write:
        if split:
            document = self_test_document(sides, names, how)
            write(json_text(document) if form == "json" else self_test_text(document))
            return FINE if document["splits"] else NO_DATA
        found = {key: compare(samples(sides.base.get(key, [])), samples(sides.new.get(key, [])), how) for key in names}
        if fdr:
            found = with_discoveries(found, how)
        document = document_of(sides, found, how, fdr=fdr, code=MachineCode.of_sides(sides, found))
        write(json_text(document) if form == "json" else comparison_text(document, width()))
    return exit_code(found.values(), named=bool(globs))


def exit_code(found: Iterable[Comparison], *, named: bool) -> int:
    """Return 1 if any is worse; else 3 if none is decided, or one that was asked for is undecided; else 0."""
    verdicts = [each.verdict for each in found]
    if Change.WORSE in verdicts:
        return VIOLATED
    undecided = verdicts.count(Change.UNDECIDED)
    return NO_DATA if undecided == len(verdicts) or (named and undecided) else FINE
