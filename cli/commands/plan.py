"""``specmine plan``: how many builds, restarts and calls a comparison needs."""

from __future__ import annotations

from pathlib import Path

import click

from specmine.cli.base.options import PATH, format_option, globs_option, level_of, output_option, ratio, skip_bad_option
from specmine.cli.base.options import seconds as a_duration


def seconds(value: str) -> float:
    """Return a duration in seconds that may be 0."""
    return 0.0 if value.strip() in ("0", "0s", "0.0") else a_duration(value)


@click.command("plan", short_help="How many builds, restarts and calls a comparison needs.")
@click.argument("file", type=PATH)
@click.option("--precision", type=ratio, default="1%", show_default=True,
              help="Half-width of the interval of new over base.")  # fmt: skip
@click.option("--restart", type=seconds, default="1", show_default=True, metavar="S",
              help="What a restart costs, without the warm-up.")  # fmt: skip
@click.option("--warm-up", "warmup", type=seconds, metavar="S",
              help="What the warm-up of each start costs.  [default: as observed]")  # fmt: skip
@click.option("--call", type=seconds, metavar="S",
              help="Running time per call of the function.  [default: as observed]")  # fmt: skip
@click.option("--rebuilds", is_flag=True, help="The builds in FILE are rebuilds of one version; plan their number too.")
@click.option("--build", type=seconds, default="60", show_default=True, metavar="S", help="What a build costs.")
@click.option("--summary", type=click.Choice(["median", "mean", "p90", "p99"]), default="median", show_default=True,
              help="What will be compared of each lifetime.")  # fmt: skip
@click.option(
    "--level", type=level_of, metavar="RATIO", default="0.95", show_default=True, help="Confidence of the interval."
)
@globs_option
@skip_bad_option
@output_option
@format_option
def command(
    file: Path,
    precision: float,
    restart: float,
    warmup: float | None,
    call: float | None,
    rebuilds: bool,
    build: float,
    summary: str,
    level: float,
    globs: tuple[str, ...],
    skip_bad: bool,
    output: Path | None,
    form: str,
) -> int:
    """Plan a comparison from FILE, a store or a CSV of durations in which at least one build ran twice.

    The calls of each lifetime, and the lifetimes of each build, are those that give the narrowest interval for their
    cost. Costs are seconds, or have a unit such as 90s, 5m, 1h.

    Example: specmine plan specmine.db --function checksum --precision 2% --restart 20s

    Exit code 3 if no build has two lifetimes.
    """
    from specmine.analysis.compare.plan import PlanRequest  # noqa: PLC0415  (it brings numpy)
    from specmine.cli.runners.plan import run_plan  # noqa: PLC0415

    request = PlanRequest(
        summary=summary,
        precision=precision,
        level=level,
        rebuilds=rebuilds,
        build_seconds=build,
        restart_seconds=restart,
        warmup_seconds=warmup,
        call_seconds=call or None,
    )
    return run_plan(file, request, globs=globs, skip_bad=skip_bad, output=output, form=form)
