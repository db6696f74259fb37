"""Options that several commands share, and the kinds of values they take."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from specmine.model.units import parse_duration, parse_ratio

from . import completion

F = TypeVar("F", bound=Callable[..., Any])

SECOND_NS = 1_000_000_000
LONGEST_S = 365 * 86_400


class _ProcessId(click.IntRange):
    """Number of a process."""

    name = "integer (the id of a process)"


PROCESS_ID = _ProcessId(1)


def seconds(value: str) -> float:
    """Return the seconds of a plain number, or of one with a unit; above 0, at most a year."""
    try:
        number = float(value)
    except ValueError:
        try:
            number = parse_duration(value) / SECOND_NS
        except ValueError as error:
            raise click.BadParameter(str(error)) from error
    if not 0 < number <= LONGEST_S:
        raise click.BadParameter(f"{value!r} is not between 0 s and a year")
    return number


def ratio(value: str) -> float:
    """Return the share written as ``1%`` or ``0.01``; above 0, at most 1."""
    try:
        number = parse_ratio(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
    if not 0 < number <= 1:
        raise click.BadParameter(f"{value!r} is not above 0 and at most 100%")
    return number


def level_of(value: str) -> float:
    """Return a confidence level; at least 50%, below 100%."""
    number = ratio(value)
    if not 0.5 <= number < 1.0:
        raise click.BadParameter(f"{value!r} is not at least 50% and below 100%")
    return number


def tolerance_of(value: str) -> float:
    """Return a share that may be 0."""
    return 0.0 if value.strip() in ("0", "0%", "0.0") else ratio(value)


# readable: click asks access(2), which does not know of capabilities; who opens the file finds out


class _NamedPath(click.Path):
    """A path; an empty text is none, where Python takes it for the working folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse an empty text."""
        if value == "":
            self.fail("The value is empty.", param, ctx)
        return super().convert(value, param, ctx)


PATH = _NamedPath(path_type=Path, readable=False)

format_option = click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="For people or for programs.",
)

result_format_option = click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    help="For people or for programs.  [default: text; json into an --output file]",
)

output_option = click.option(
    "--output", type=PATH, metavar="FILE", help="Write the result there instead of standard output."
)

skip_bad_option = click.option("--skip-bad", is_flag=True, help="Count bad lines of a CSV instead of stopping.")

globs_option = click.option(
    "--function", "globs", multiple=True, metavar="GLOB", help="Only functions of this name; may be repeated."
)

store_option = click.option("--store", type=PATH, metavar="FILE", help="Read this store instead of asking the daemon.")

socket_option = click.option(
    "--socket",
    type=PATH,
    metavar="FILE",
    default=None,
    help="The daemon's socket, if it is not the default.",
)

config_option = click.option("--config", type=PATH, metavar="FILE", help="Take all settings from this file.")


def fleet_options(function: F) -> F:
    """Add ``--fleet`` and its filters: a fleet that is named is passed on as ``store``."""

    @wraps(function)
    def command(
        *,
        store: Path | None = None,
        fleet: str | None,
        labels: tuple[str, ...],
        host: str | None,
        since: str | None,
        **rest: Any,
    ) -> Any:
        from .sources import place_of  # noqa: PLC0415

        return function(store=place_of(store, fleet, labels, host, since), **rest)

    for decorate in reversed(
        (
            click.option("--fleet", metavar="URL", help="Read a fleet: the URL of its database."),
            click.option("--label", "labels", multiple=True, metavar="KEY=VALUE", help="Of a fleet only such hosts."),
            click.option("--host", metavar="NAME", help="Of a fleet only this host."),
            click.option("--since", metavar="AGE", help="Of a fleet only what is this new, such as 7d."),
        )
    ):
        command = decorate(command)
    return cast("F", command)


def source_options(function: F) -> F:
    """Add ``--store``, ``--fleet`` and ``--socket``: where to read from."""
    return store_option(socket_option(fleet_options(function)))


def reading_options(function: F) -> F:
    """Add where to read from, and ``--format``: how to write."""
    return source_options(format_option(function))


def choice_options(function: F) -> F:
    """Add ``--program`` and ``--build``: which functions are meant where several have one name."""
    program = click.option(
        "--program",
        metavar="NAME",
        shell_complete=completion.programs,
        help="Only functions of this program, or this module.",
    )
    build = click.option(
        "--build",
        metavar="BUILD",
        shell_complete=completion.builds,
        help="Only this build: its label, its build-id or first digits.",
    )
    return program(build(function))


def rule_options(function: F) -> F:
    """Add ``--summary``, ``--level`` and ``--tolerance``: by what, and how surely, lifetimes are compared."""
    for decorate in reversed(
        (
            click.option(
                "--summary",
                type=click.Choice(["mean", "median", "trimmed", "p90", "p99"]),
                default="median",
                show_default=True,
                help="What is compared of each lifetime.",
            ),
            click.option(
                "--level",
                type=level_of,
                metavar="RATIO",
                default="0.95",
                show_default=True,
                help="Confidence of the intervals.",
            ),
            click.option(
                "--tolerance",
                type=tolerance_of,
                metavar="RATIO",
                default="2%",
                show_default=True,
                help="Changes within it do not matter.",
            ),
        )
    ):
        function = decorate(function)
    return function


def program_options(function: F) -> F:
    """Add the ways to choose a program and what every run of the kernel side takes."""
    for decorate in reversed(
        (
            click.option("-p", "--pid", type=PROCESS_ID, metavar="PID", help="A running process."),
            click.option("--exe", type=PATH, metavar="PATH", help="All processes of an executable, also later ones."),
            click.option("--unit", metavar="NAME", help="All processes of a systemd unit."),
            click.option("--duration", type=seconds, metavar="S", help="Stop after S seconds, or 90s, 5m, 1h."),
            click.option(
                "--budget",
                type=ratio,
                metavar="RATIO",
                help="Overhead allowed: added CPU time, as a share of the program's own.  [default: 1%]",
            ),
            click.option(
                "--function",
                "functions",
                multiple=True,
                metavar="GLOB",
                help="Watch functions of this name instead of the hot ones; may be repeated.",
            ),
            click.option(
                "--ignore",
                multiple=True,
                metavar="GLOB",
                help="Leave out functions of this name; may be repeated.",
            ),
            click.option("--user", metavar="NAME", help="Run CMD as this user.  [default: the one who called sudo]"),
            config_option,
            click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- CMD...]"),
        )
    ):
        function = decorate(function)
    return function


def check_selection(
    pid: int | None, exe: Path | None, unit: str | None, command: tuple[str, ...], user: str | None
) -> None:
    """Raise UsageError unless exactly one program is chosen, and can be."""
    ways = {"-p PID": pid is not None, "--exe PATH": exe is not None, "--unit NAME": unit is not None}
    chosen = [way for way, given in {**ways, "-- CMD": bool(command)}.items() if given]
    if not chosen:
        raise click.UsageError("Say which program: -p PID, --exe PATH, --unit NAME or -- CMD.")
    if len(chosen) > 1:
        raise click.UsageError(f"Choose one program, not {' and '.join(chosen)}.")
    if user is not None and not command:
        raise click.UsageError("--user says who runs CMD; there is no CMD.")
    if command and shutil.which(command[0]) is None:
        there = os.sep in command[0] and Path(command[0]).exists()
        raise click.UsageError(f"Cannot run {command[0]}: {'not executable' if there else 'no such command'}.")
