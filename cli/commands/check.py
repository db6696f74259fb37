"""``specmine check``: do assertions and formulas hold."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from specmine.cli.base.options import (
    PATH,
    fleet_options,
    format_option,
    level_of,
    output_option,
    skip_bad_option,
    socket_option,
    tolerance_of,
)

if TYPE_CHECKING:
    from specmine.store import Where


@click.command("check", short_help="Do assertions and formulas hold.")
@click.argument("spec", required=False, type=PATH)
@click.option(
    "--against",
    default="live",
    metavar="WHAT",
    show_default=True,
    help="A store, a CSV of durations, a specification as JSON, or live: the daemon.",
)
@click.option("--formula", "texts", multiple=True, metavar="TEXT", help="Check this formula too; may be repeated.")
@click.option("--base", "base_label", metavar="BUILD", help="What the build 'base' means.")
@click.option("--new", "new_label", metavar="BUILD", help="What the build 'new' means, and no build at all.")
@click.option(
    "--interpretation",
    type=click.Choice(["specmine", "welch", "parametric", "bootstrap"]),
    default="specmine",
    show_default=True,
    help="How comparisons are decided; the other three are those of the paper.",
)
@click.option("--summary", help="What a function's name stands for, unless a file says it.  [default: median]")
@click.option(
    "--level",
    type=level_of,
    metavar="RATIO",
    help="Confidence of each formula, unless a file says it.  [default: 0.95]",
)
@click.option(
    "--tolerance", type=tolerance_of, metavar="RATIO", help="Sensitivity limit of comparisons.  [default: 0; of =, 2%]"
)
@click.option("--junit", "junit_file", type=PATH, metavar="FILE", help="Write the result as JUnit XML too.")
@fleet_options
@skip_bad_option
@output_option
@socket_option
@format_option
def command(
    spec: Path | None,
    against: str,
    store: Where | None,
    texts: tuple[str, ...],
    base_label: str | None,
    new_label: str | None,
    interpretation: str,
    summary: str | None,
    level: float | None,
    tolerance: float | None,
    junit_file: Path | None,
    skip_bad: bool,
    output: Path | None,
    socket: Path | None,
    form: str,
) -> int:
    """Check the formulas of SPEC: a file of performance logic, or a specification as `mine` writes it.

    With --fleet the data are those of a fleet. A formula holds, is violated, or is unknown for lack of data.

    Exit code 1 if one is violated, else 3 if one is unknown, else 0.
    """
    from specmine.cli.runners.check import run_check  # noqa: PLC0415  (it brings numpy)

    return run_check(
        spec,
        texts,
        against if store is None else store,
        builds={"base": base_label, "new": new_label},
        rules={"summary": summary, "level": level, "tolerance": tolerance},
        interpretation=interpretation,
        junit_file=junit_file,
        skip_bad=skip_bad,
        output=output,
        socket=socket,
        form=form,
    )
