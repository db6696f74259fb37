"""What ``specmine compare`` does: both sides read, compared function by function, written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from specmine.analysis.compare.code_diff import MachineCode
from specmine.analysis.compare.document import document_of, text
from specmine.analysis.compare.sides import Key, Sides, chosen_functions, samples
from specmine.analysis.documents import title
from specmine.cli.base.exit_codes import FINE, NO_DATA, VIOLATED
from specmine.cli.base.output import OutputFile, emit, json_text, width
from specmine.mining.regression.comparison import Change, Comparison, Rule, compare, with_discoveries
from specmine.mining.regression.self_test import FEWEST_LIFETIMES, SelfTest, self_test
from specmine.model.text import escaped

SELF_TEST_SCHEMA = "specmine.selftest/1"
SEED = 20_260


def compared(
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
    if split:
        return _self_test(sides, names, how, output, form)
    found = {key: compare(samples(sides.base.get(key, [])), samples(sides.new.get(key, [])), how) for key in names}
    if fdr:
        found = with_discoveries(found, how)
    document = document_of(sides, found, how, fdr=fdr, code=MachineCode.of_sides(sides, found))
    _put(json_text(document) if form == "json" else text(document, width()), output)
    return exit_code(found.values(), named=bool(globs))


def exit_code(found: Iterable[Comparison], *, named: bool) -> int:
    """Return 1 if any is worse; else 3 if none is decided, or one that was asked for is undecided; else 0."""
    verdicts = [each.verdict for each in found]
    if Change.WORSE in verdicts:
        return VIOLATED
    undecided = verdicts.count(Change.UNDECIDED)
    return NO_DATA if undecided == len(verdicts) or (named and undecided) else FINE


def _put(written: str, output: Path | None) -> None:
    if output is None:
        emit(written)
        return
    with OutputFile(output) as file:
        file.write(written)


def _self_test(sides: Sides, names: Sequence[Key], rule: Rule, output: Path | None, form: str) -> int:
    """Tell how often halves of one side are called different; 3 if no side has four lifetimes."""
    rng = np.random.default_rng(SEED)
    entries: list[dict[str, Any]] = []
    for key in names:
        for name, group in zip(("base", "new"), (sides.base.get(key, []), sides.new.get(key, [])), strict=True):
            found = self_test(samples(group), rule, rng)
            if found.splits:
                entries.append({"function": key[0], "module": key[1], "side": name, **_counts(found)})
    splits, alarms = (sum(each[name] for each in entries) for name in ("splits", "alarms"))
    document = {
        "schema": SELF_TEST_SCHEMA,
        "rule": {"summary": rule.summary, "level": rule.level, "tolerance": rule.tolerance},
        "nominal_rate": round(1.0 - rule.level, 12),
        "splits": splits,
        "alarms": alarms,
        "rate": alarms / splits if splits else None,
        "functions": entries,
    }
    lines = [f"{title(each)}, {each['side']}: {each['alarms']} of {each['splits']} splits" for each in entries]
    whole = (
        f"{alarms} of {splits} splits of unchanged lifetimes were called a change: {100 * alarms / splits:.2g} %,"
        f" at most {100 * (1 - rule.level):.3g} % are to be expected."
        if splits
        else f"No function has {FEWEST_LIFETIMES} lifetimes on one side: nothing to split."
    )
    written = json_text(document) if form == "json" else "\n".join([*map(escaped, lines), whole]) + "\n"
    _put(written, output)
    return FINE if splits else NO_DATA


def _counts(found: SelfTest) -> dict[str, int]:
    return {
        "splits": found.splits,
        "alarms": found.alarms,
        "undecided": found.undecided,
        "equivalent": found.equivalent,
    }
