"""``specmine compare``: has it changed from one build, store, host or lifetime to another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from specmine.cli.base.options import (
    PATH,
    fleet_options,
    format_option,
    globs_option,
    output_option,
    rule_options,
    skip_bad_option,
)

if TYPE_CHECKING:
    from specmine.store import Where


@click.command("compare", short_help="Has it changed from one build to another.")
@click.argument("base", required=False, metavar="[BASE]")
@click.argument("new", required=False, metavar="[NEW]")
@click.option("--store", type=PATH, metavar="FILE", help="BASE and NEW are builds, hosts or lifetimes in this store.")
@fleet_options
@click.option("--base", "base_label", metavar="LABEL", help="With one FILE: the build to compare with.")
@click.option("--new", "new_label", metavar="LABEL", help="With one FILE: the build to judge.")
@rule_options
@click.option("--fdr", is_flag=True, help="Limit the share of false ones among all reported changes.")
@click.option(
    "--strict", is_flag=True, help="Exit code 1 also if the code of all functions that are worse is as it was."
)
@globs_option
@click.option("--all", "everything", is_flag=True, help="List the functions that are the same, too.")
@click.option("--self-test", "split", is_flag=True, help="Compare random halves of each side: rate of false alarms.")
@click.option("--keep-warmup", is_flag=True, help="Leave nothing out at the start of a lifetime.")
@skip_bad_option
@output_option
@format_option
def command(
    base: str | None,
    new: str | None,
    store: Where | None,
    base_label: str | None,
    new_label: str | None,
    summary: str,
    level: float,
    tolerance: float,
    fdr: bool,
    strict: bool,
    globs: tuple[str, ...],
    everything: bool,
    split: bool,
    keep_warmup: bool,
    skip_bad: bool,
    output: Path | None,
    form: str,
) -> int:
    """Compare BASE and NEW, function by function.

    BASE and NEW are two stores. With --store or --fleet they are two builds in it: labels, build-ids, hosts or
    lifetimes. With --base and --new the only argument is a FILE, CSV or store, that holds both. Lifetimes are compared,
    since the calls inside one are not independent. Each behaviour and each class of durations is compared with itself.

    Exit code 1 if a function became worse, unless no code changed that it reaches; 3 if nothing could be decided.
    """
    from specmine.cli.runners.compare import run_compare  # noqa: PLC0415  (it brings numpy)

    return run_compare(
        (base, new),
        store,
        (base_label, new_label),
        rule={"summary": summary, "level": level, "tolerance": tolerance},
        fdr=fdr,
        strict=strict,
        everything=everything,
        globs=globs,
        split=split,
        warmup=not keep_warmup,
        skip_bad=skip_bad,
        output=output,
        form=form,
    )
