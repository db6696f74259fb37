"""The command ``specmine``: which commands there are, and how it ends."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections.abc import Sequence

import click
from click.shell_completion import shell_complete

from specmine import __version__
from specmine.cli.base.completion import VARIABLE
from specmine.cli.base.examples import epilog
from specmine.cli.base.exit_codes import INTERRUPTED, exit_code
from specmine.cli.text.suggestions import did_you_mean
from specmine.daemon.system.descriptors import hold_standard_descriptors

COMMANDS = (
    "doctor",
    "mine",
    "status",
    "functions",
    "show",
    "assertions",
    "violations",
    "record",
    "replay",
    "analyze",
    "merge",
    "plot",
    "export",
    "label",
    "acknowledge",
    "off",
    "on",
    "experiment",
    "compare",
    "plan",
    "bench",
    "check",
    "report",
    "web",
    "fleet",
    "setup-service",
)
"""In the order in which a new user meets them; each is in a file of its name, as ``command``, but for ``SHARED``."""
SHARED = {
    "off": "switch",
    "on": "switch",
    "record": "recording",
    "replay": "recording",
    "label": "remarks",
    "acknowledge": "remarks",
    "web": "services",
    "setup-service": "services",
}
"""Commands that are in one file, each under its own name."""
WORDS = "Words: docs/glossary.md"
"""The last line of every help."""


class Commands(click.Group):
    """Commands that are imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, None if there is none of this name."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f".commands.{SHARED.get(cmd_name, cmd_name)}", __package__)
        name = cmd_name.replace("-", "_") if cmd_name in SHARED else "command"
        command: click.Command = getattr(module, name)
        for each in getattr(command, "commands", {}).values():
            each.epilog = WORDS
        command.epilog = epilog(cmd_name, WORDS)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of a line; a misspelt one is answered with what may be meant."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            raise click.UsageError(f"No such command '{args[0]}'{did_you_mean(args[0], COMMANDS)}.", ctx)
        return super().resolve_command(ctx, args)


@click.group(
    cls=Commands, epilog=WORDS, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, "-V", "--version", prog_name="specmine", message="%(prog)s %(version)s")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def specmine(debug: bool) -> None:
    """Mine performance assertions from running native programs.

    An assertion states how long the calls of a function normally take, and in which calling context.

    Exit codes: 0 fine; 1 violated or worse; 2 wrong usage or input; 3 not enough data; 4 this host cannot, or
    the privilege is missing; 130 interrupted.
    """


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["help"]:  # what many programs call it
        given = [*given[1:], "--help"]

    def work() -> object:
        with specmine.make_context("specmine", given.copy()) as context:
            return specmine.invoke(context)

    return exit_code(work, debug=_wants_debug(given))


def main() -> None:
    """Run the command line of this process and exit."""
    hold_standard_descriptors()
    wanted = os.environ.get(VARIABLE)
    if wanted:
        from specmine.cli.base import bash_completion  # noqa: F401, PLC0415  (which click then knows)

        sys.exit(shell_complete(specmine, {}, "specmine", VARIABLE, wanted))
    try:
        code = run()
    except KeyboardInterrupt:  # another one, while the first was told
        code = INTERRUPTED
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the code is known: an interrupt of the last moments changes nothing
    sys.exit(code)


def _wants_debug(arguments: Sequence[str]) -> bool:
    """Return whether ``--debug`` is given before the command, even if the rest cannot be parsed."""
    for argument in arguments:
        if not argument.startswith("-"):
            return False
        if argument == "--debug":
            return True
    return False
