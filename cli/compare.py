"""``specmine compare``: has it changed from one build, store, host or lifetime to another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from specmine.mining.change.selftest import FEWEST_LIFETIMES, SelfTest, self_test
from specmine.mining.change.verdicts import Change, Comparison, Rule, compare, with_discoveries

from .compared import document_of, text, title_of
from .exits import FINE, NO_DATA, VIOLATED
from .notation import escaped
from .options import PATH, format_option, ratio
from .output import OutputFile, emit, json_text, width
from .sides import Key, Sides, chosen_functions, samples

SELF_TEST_SCHEMA = "specmine.selftest/1"
SEED = 20_260


def level_of(value: str) -> float:
    number = ratio(value)
    if not 0.5 <= number < 1.0:
        raise click.BadParameter(f"{value!r} is not at least 50% and below 100%")
    return number


def tolerance_of(value: str) -> float:
    return 0.0 if value.strip() in ("0", "0%", "0.0") else ratio(value)


@click.command("compare", short_help="Has it changed from one build to another.")
@click.argument("base", required=False, metavar="[BASE]")
@click.argument("new", required=False, metavar="[NEW]")
@click.option("--store", type=PATH, metavar="FILE", help="BASE and NEW are builds, hosts or lifetimes in this store.")
@click.option("--base", "base_label", metavar="LABEL", help="With one FILE: the build to compare with.")
@click.option("--new", "new_label", metavar="LABEL", help="With one FILE: the build to judge.")
@click.option(
    "--summary",
    type=click.Choice(["mean", "median", "trimmed", "p90", "p99"]),
    default="median",
    show_default=True,
    help="What is compared of each lifetime.",
)
@click.option("--level", type=level_of, default="0.95", show_default=True, help="Confidence of the intervals.")
@click.option(
    "--tolerance", type=tolerance_of, default="2%", show_default=True, help="Changes within it do not matter."
)
@click.option("--fdr", is_flag=True, help="Control the share of false ones among all changes reported.")
@click.option("--function", "globs", multiple=True, metavar="GLOB", help="Only these functions; may be repeated.")
@click.option("--self-test", "split", is_flag=True, help="Compare halves of each side: how often is an alarm false.")
@click.option("--keep-warmup", is_flag=True, help="Leave nothing out at the start of a lifetime.")
@click.option("--skip-bad", is_flag=True, help="Count bad lines of a CSV instead of stopping.")
@click.option("--output", type=PATH, metavar="FILE", help="Write there instead of standard output.")
@format_option
def command(
    base: str | None,
    new: str | None,
    store: Path | None,
    base_label: str | None,
    new_label: str | None,
    summary: str,
    level: float,
    tolerance: float,
    fdr: bool,
    globs: tuple[str, ...],
    split: bool,
    keep_warmup: bool,
    skip_bad: bool,
    output: Path | None,
    form: str,
) -> int:
    """Compare BASE and NEW, function by function.

    BASE and NEW are two stores; or with --store two builds (labels, build-ids, hosts or lifetimes) in it; or one
    FILE, CSV or store, with --base and --new. Lifetimes are what is compared: calls inside one are not
    independent. Exit code 1 if a function became worse, 3 if nothing could be decided.
    """
    sides = Sides((base, new), store, (base_label, new_label), skip_bad=skip_bad, warmup=not keep_warmup)
    rule = Rule(summary=summary, level=level, tolerance=tolerance)
    names = chosen_functions(sides, globs)
    if split:
        return _self_test(sides, names, rule, output, form)
    found = {key: compare(samples(sides.base.get(key, [])), samples(sides.new.get(key, [])), rule) for key in names}
    if fdr:
        found = with_discoveries(found, rule)
    document = document_of(sides, found, rule, fdr=fdr)
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
    lines = [f"{title_of(each)}, {each['side']}: {each['alarms']} of {each['splits']} splits" for each in entries]
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
