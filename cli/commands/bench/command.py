"""``specmine bench``: planned runs of two builds or more, on this host or on those of a fleet, to a verdict."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from specmine.cli.base.options import PATH, format_option, level_of, ratio, seconds

PLACES = "--store names a file for this host alone, --fleet the database of many hosts: choose one."


def place_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--store`` and ``--fleet``: where the benchmark is written down."""
    store = click.option("--store", type=PATH, metavar="FILE", help="A store: this host alone.")
    fleet = click.option("--fleet", "url", metavar="URL", envvar="SPECMINE_FLEET", help="A fleet: many hosts.")
    return store(fleet(function))


@click.group("bench", short_help="Planned benchmark runs, to a verdict.")
def command() -> None:
    """Compare builds by runs of your own making, as many as the question needs.

    Plan once, run on each host, ask for the status anywhere.
    """


@command.command("plan", short_help="How many runs; write them down.")
@click.argument("name")
@click.option("--file", type=PATH, metavar="FILE", help="Read the benchmark from YAML; options come above it.")
@click.option("--command", "commands", multiple=True, metavar="LABEL=CMD", help="A build and how it is run.")
@click.option("--build", "recipes", multiple=True, metavar="LABEL=RECIPE", help="A build and how a shell makes it.")
@click.option("--run", metavar="CMD", help="How a build that was made is run.")
@click.option("--mine", is_flag=True, help="Mine each run; else the program prints durations.")
@click.option("--run-seconds", type=seconds, metavar="S", help="How long each run is mined.  [default: 20]")
@click.option("--function", "functions", multiple=True, metavar="GLOB", help="Only such functions; may be repeated.")
@click.option("--summary", type=click.Choice(["median", "mean", "p90", "p99"]), help="What is compared.")
@click.option("--level", type=level_of, help="Confidence of the intervals.  [default: 0.95]")
@click.option("--tolerance", type=ratio, help="Changes within it do not matter.  [default: 2%]")
@click.option("--precision", type=ratio, help="Half-width to plan for.  [default: 0.4 of the tolerance]")
@click.option("--warm-up", "warm_up", type=click.IntRange(0), metavar="N", help="Calls of a run that do not count.")
@click.option("--calls", type=click.IntRange(1), metavar="N", help="Calls of each run.")
@click.option("--lifetimes", type=click.IntRange(2), metavar="N", help="Runs of each build.")
@click.option("--rebuilds", type=click.IntRange(1), metavar="N", help="How often each build is made.")
@click.option("--restart", type=seconds, metavar="S", help="What a run costs beside its calls.")
@click.option("--call", type=seconds, metavar="S", help="What a call costs.")
@click.option("--build-cost", type=seconds, metavar="S", help="What making a build costs.")
@click.option("--pilot", type=click.IntRange(2), metavar="N", help="Runs of each build in the pilot.  [default: 6]")
@click.option("--pilot-calls", type=click.IntRange(1), metavar="N", help="Calls of each.  [default: 1000]")
@click.option("--timeout", type=seconds, metavar="S", help="Longest run.  [default: 10m]")
@click.option("--retries", type=click.IntRange(0), metavar="N", help="After a run that fails.  [default: 2]")
@click.option("--user", metavar="NAME", help="Who runs the commands.  [default: who called sudo]")
@click.option("--seed", type=click.IntRange(0), metavar="N", help="Of the random order.")
@click.option("--label", "labels", multiple=True, metavar="KEY=VALUE", help="Of a fleet only such hosts.")
@click.option("--hosts", type=click.IntRange(1), metavar="N", help="Hosts to share the runs.  [default: all such]")
@click.option("--lease", type=seconds, metavar="S", help="After so long of silence a run is taken anew.")
@click.option("--folder", type=PATH, metavar="FOLDER", help="Where the pilot builds and runs.")
@place_options
@format_option
def plan(
    name: str, file: Path | None, commands: tuple[str, ...], recipes: tuple[str, ...], mine: bool,
    functions: tuple[str, ...], labels: tuple[str, ...], folder: Path | None, store: Path | None, url: str | None,
    form: str, **given: Any,
) -> int:  # fmt: skip
    """Plan the benchmark NAME: runs of builds that take turns in random order.

    A pilot runs each build a few times here, unless --lifetimes and --calls are given. In CMD, {calls} is how many
    calls to make, {output} a file for the durations. Without it they are printed: CSV or NDJSON with duration_ns.
    """
    from specmine.cli.runners.bench import run_plan  # noqa: PLC0415

    _one_place(store, url)
    told = {
        **given, "name": name, "measure": "mined" if mine else None, "functions": functions or None,
    }  # fmt: skip
    return run_plan(file, commands, recipes, told, labels, folder, store, url, form=form)


@command.command("run", short_help="Run what is left, on this host.")
@click.argument("name")
@place_options
@click.option("--config", type=PATH, metavar="FILE", help="Log in to the fleet as this host, as its forwarder does.")
@click.option("--host", metavar="NAME", help="The name of this host.  [default: its host name]")
@click.option("--folder", type=PATH, metavar="FOLDER", help="Where builds are made and runs leave files.")
@click.option("--report", type=PATH, metavar="FILE", help="Write a page about it.")
@format_option
def run(
    name: str, store: Path | None, url: str | None, config: Path | None, host: str | None, folder: Path | None,
    report: Path | None, form: str,
) -> int:  # fmt: skip
    """Run NAME on this host until nothing is left, then show the verdict.

    Call it on each host. A runner that was killed or a host that is gone loses its run to another after the lease.

    Exit code 1 if a build is worse than the first, 3 if it is undecided, as `specmine compare` has them.
    """
    from specmine.cli.runners.bench import run_run  # noqa: PLC0415

    if config is None:
        _one_place(store, url)
    elif store is not None or url is not None:
        raise click.UsageError("--config says which fleet; leave out --store and --fleet.")
    return run_run(name, store, url, config, host, folder, report, form=form)


@command.command("status", short_help="How far it is, and what came out.")
@click.argument("name", required=False)
@place_options
@click.option("--durations", type=PATH, metavar="FILE", help="Write all durations as CSV.")
@click.option("--report", type=PATH, metavar="FILE", help="Write a page about it.")
@format_option
def status(
    name: str | None, store: Path | None, url: str | None, durations: Path | None, report: Path | None, form: str
) -> int:
    """Show what is done and left of NAME, hosts, failures, and at the end the verdict.

    Without NAME the benchmarks are listed. Exit code 3 while runs are left; then that of the verdict.
    """
    from specmine.cli.runners.bench import run_status  # noqa: PLC0415

    _one_place(store, url)
    return run_status(name, store, url, durations, report, form=form)


def _one_place(store: Path | None, url: str | None) -> None:
    """Raise UsageError unless exactly one place is named; a variable for the fleet yields to --store."""
    if store is None and url is None:
        raise click.UsageError(PLACES)
    source = click.get_current_context().get_parameter_source("url")
    if store is not None and url is not None and source is not click.core.ParameterSource.ENVIRONMENT:
        raise click.UsageError(PLACES)
