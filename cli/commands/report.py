"""``specmine report``: how functions changed over builds and hosts, as one page that needs no network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from specmine.cli.base.options import PATH, fleet_options, globs_option, output_option, rule_options, skip_bad_option

if TYPE_CHECKING:
    from specmine.store import Where


@click.command("report", short_help="Changes of functions over builds and hosts.")
@click.argument("file", type=PATH, required=False)
@fleet_options
@rule_options
@globs_option
@skip_bad_option
@output_option
@click.option("--format", "form", type=click.Choice(["html", "json"]), default="html", show_default=True,
              help="A page for people, or its numbers.")  # fmt: skip
def command(
    file: Path | None,
    store: Where | None,
    summary: str,
    level: float,
    tolerance: float,
    globs: tuple[str, ...],
    skip_bad: bool,
    output: Path | None,
    form: str,
) -> int:
    """Report on FILE, a store or a CSV of durations, or on a fleet: each build compared with the one before it.

    The page has a table of changes. For each function it shows the builds with intervals, and the run-sequence plot of
    the lifetimes.

    Exit code 3 if there are not two builds to compare.
    """
    from specmine.cli.runners.report import run_report  # noqa: PLC0415  (it brings numpy)

    source = file if store is None else store
    if source is None or (file is not None and store is not None):
        raise click.UsageError("Name one source: FILE or --fleet URL.")
    rule = {"summary": summary, "level": level, "tolerance": tolerance}
    return run_report(source, rule, globs=globs, skip_bad=skip_bad, output=output, form=form)
