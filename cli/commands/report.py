"""``specmine report``: how functions changed over builds and hosts, as one page that needs no network."""

from __future__ import annotations

from pathlib import Path

import click

from specmine.cli.base.options import PATH, globs_option, output_option, rule_options, skip_bad_option


@click.command("report", short_help="Changes of functions over builds and hosts.")
@click.argument("file", type=PATH)
@rule_options
@globs_option
@skip_bad_option
@output_option
@click.option("--format", "form", type=click.Choice(["html", "json"]), default="html", show_default=True,
              help="A page for people, or its numbers.")  # fmt: skip
def command(
    file: Path,
    summary: str,
    level: float,
    tolerance: float,
    globs: tuple[str, ...],
    skip_bad: bool,
    output: Path | None,
    form: str,
) -> int:
    """Report on FILE, a store or a CSV of durations: each build compared with the one before it.

    The page has a table of changes. For each function it shows the builds with intervals, and the run-sequence plot of
    the lifetimes.

    Exit code 3 if there are not two builds to compare.
    """
    from specmine.cli.runners.report import run_report  # noqa: PLC0415  (it brings numpy)

    rule = {"summary": summary, "level": level, "tolerance": tolerance}
    return run_report(file, rule, globs=globs, skip_bad=skip_bad, output=output, form=form)
