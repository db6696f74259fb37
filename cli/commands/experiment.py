"""``specmine experiment``: what this host itself does to a program's timing."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from specmine.cli.base.exit_codes import FINE, HOST, NO_DATA, no_data
from specmine.cli.base.options import PATH, PROCESS_ID, format_option, seconds
from specmine.cli.base.output import emit, width
from specmine.cli.runners import experiment
from specmine.cli.text.experiments import list_lines, prediction_lines, result_lines, table
from specmine.daemon.documents.json_text import json_text
from specmine.model.errors import InputError

_state_option = click.option(
    "--state",
    type=PATH,
    metavar="FILE",
    help="The file that stores the results, if it is not the default.",
)


@click.group("experiment", short_help="What does this host itself do to a program's timing?")
def command() -> None:
    """Measure what the host itself does to a program's timing.

    Experiments measure the timeslice, cores, limits and noise of this host with short loads of the lowest weight. A
    load starts only where a CPU is idle. The results are compared with what the kernel reports.
    """


@command.command("list")
@format_option
def list_command(form: str) -> int:
    """List the experiments: what each measures, and what it costs."""
    from specmine.experiments.library import EXPERIMENTS  # noqa: PLC0415

    if form == "json":
        emit(json_text({"schema": "specmine.experiment-list/1", "experiments": experiment.listing(EXPERIMENTS)}))
    else:
        emit("\n".join(list_lines(EXPERIMENTS, width())) + "\n")
    return FINE


@command.command("run")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Set a parameter; may be repeated.")
@click.option("-p", "--pid", type=PROCESS_ID, metavar="PID", help="Under the CPUs and limit of this process.")
@click.option("--wait", "wait_s", type=seconds, default=None, metavar="S", help="Wait so long for a quiet host.")
@click.option("--force", is_flag=True, help="Start although the host is busy. Passes the load gate only.")
@click.option("--dangerous", is_flag=True, help="Allow experiments that disturb other programs on this host.")
@_state_option
@format_option
def run_command(
    names: tuple[str, ...],
    settings: tuple[str, ...],
    pid: int | None,
    wait_s: float | None,
    force: bool,
    dangerous: bool,
    state: Path | None,
    form: str,
) -> int:
    """Run experiments, one after the other. NAME is one of `specmine experiment list`.

    Exit code 3 if one was skipped or gave no sure result; 4 if load cannot be limited or started on this host.
    """
    from specmine.experiments.results.journal import check_journal, default_path  # noqa: PLC0415
    from specmine.experiments.runner.admission import run_admitted  # noqa: PLC0415

    if pid is not None and not Path(f"/proc/{pid}").is_dir():
        raise InputError(f"there is no process {pid}", remedy="see `ps -e`")
    if state is not None:
        check_journal(state)
    request = {
        "names": [experiment.known(name) for name in names],
        "parameters": experiment.parameters(names, settings),
        "pid": pid,
        "wait_seconds": wait_s or 0.0,
        "force": force,
        "dangerous": dangerous,
        "state": str((state or default_path()).absolute()),
    }
    found = run_admitted(request)
    if form == "json":
        emit(json_text(found[0] if len(found) == 1 else {"schema": found[0]["schema"], "results": found}))
    else:
        emit("\n".join(line for each in found for line in result_lines(each, width())) + "\n")
    return _code(found)


@command.command("show")
@click.argument("names", nargs=-1, metavar="[NAME...]")
@_state_option
@format_option
def show_command(names: tuple[str, ...], state: Path | None, form: str) -> int:
    """Show what is known of this host: values with their age, and why others are missing.

    A value from another boot or kernel, or under other limits, is marked. Exit code 3 if nothing is known, or one
    that is named has not run.
    """
    from specmine.experiments.host.facts import read_host  # noqa: PLC0415
    from specmine.experiments.results.journal import default_path, read_journal  # noqa: PLC0415

    asked = {experiment.known(name) for name in names}
    entries, host = read_journal(state or default_path()).entries, read_host()
    unknown = [name for name in names if name not in entries]
    shown = [
        experiment.shown(entries[name], host, time.time()) if name in entries else experiment.unmeasured(name, host)
        for name in sorted(asked or entries)
    ]
    if form == "json":
        emit(json_text(shown[0] if len(names) == 1 else {"schema": "specmine.experiment/1", "results": shown}))
    if unknown or not entries:
        raise no_data(f"nothing is known of {unknown[0] if unknown else 'this host'} yet", "specmine experiment run")
    if form == "text":
        lines = table(shown, width())
        if names:
            lines = [line for each in shown for line in [*result_lines(each, width())]]
        emit("\n".join(lines) + "\n")
    return FINE if any(each["valid"] for each in shown) else NO_DATA


@command.command("predict")
@click.argument("file", required=False, type=PATH, metavar="[FILE]")
@click.option("--function", metavar="NAME", help="The function, if FILE holds several.")
@click.option("--demand", type=seconds, metavar="S", help="Predict for a call that takes S alone, instead of FILE.")
@click.option(
    "--rivals", type=click.IntRange(0), required=True, metavar="N", help="Competing threads, always runnable."
)
@click.option("--cores", type=float, metavar="C", help="CPUs they share.  [default: all; 1 is a pinned thread]")
@click.option("--slice", "slice_s", type=seconds, metavar="S", help="Timeslice.  [default: the derived one]")
@_state_option
@format_option
def predict_command(
    file: Path | None,
    function: str | None,
    demand: float | None,
    rivals: int,
    cores: float | None,
    slice_s: float | None,
    state: Path | None,
    form: str,
) -> int:
    """Predict how long calls take while other tasks compete for the CPU, from how long they take alone.

    FILE is the JSON of `specmine show`. Its time on CPU counts if calls leave the CPU. Or FILE is CSV with a column
    duration_ns, measured without contention. Slice and cores are the results of the experiments on this host, unless
    given. Exit code 3 without a slice.
    """
    from specmine.experiments.host.facts import read_host  # noqa: PLC0415
    from specmine.experiments.results.journal import default_path, read_journal  # noqa: PLC0415
    from specmine.experiments.results.prediction import Contention, distribution, predicted  # noqa: PLC0415

    if (file is None) == (demand is None):
        raise click.UsageError("Give either FILE or --demand.")
    journal, host = read_journal(state or default_path()), read_host()
    slice_s = slice_s if slice_s is not None else experiment.value_of(journal.entries, "timeslice", host)
    if slice_s is None:
        raise no_data("the timeslice of this host is not known", "specmine experiment run timeslice, or give --slice")
    known_cores = experiment.value_of(journal.entries, "cores", host)
    shared = cores if cores is not None else float(known_cores or host.cores)
    alone = distribution([demand]) if demand is not None else experiment.measured(file, function)  # type: ignore[arg-type]
    contention = Contention(competitors=rivals, cores=round(shared, 1), slice_s=slice_s)
    document = experiment.prediction_document(alone, predicted(alone, contention), contention)
    if form == "json":
        emit(json_text(document))
    else:
        emit("\n".join(prediction_lines(document)) + "\n")
    return FINE


def _code(found: Sequence[Mapping[str, Any]]) -> int:
    codes = {each["reason"]["code"] for each in found if not each["valid"]}
    return HOST if codes & {"confinement", "failed"} else NO_DATA if codes else FINE
