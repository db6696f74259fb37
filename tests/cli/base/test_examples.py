"""Every command has examples, and each of them is a command line that the command takes."""

from __future__ import annotations

import shlex

import click
import pytest

from specmine.cli.base.examples import EXAMPLES
from specmine.cli.main import COMMANDS, specmine

LINES = [line for lines in EXAMPLES.values() for line in lines]


def test_every_command_has_one() -> None:
    assert set(EXAMPLES) == set(COMMANDS)


@pytest.mark.parametrize("line", LINES)
def test_the_command_takes_it(line: str) -> None:
    """The options exist and their values are of their kind; nothing runs."""
    program, name, *rest = shlex.split(line)
    assert program == "specmine"
    assert line in EXAMPLES[name]
    command = specmine.get_command(click.Context(specmine), name)
    assert command is not None
    context = command.make_context(name, rest)
    if isinstance(command, click.Group):
        inner, below, left = command.resolve_command(context, [*context._protected_args, *context.args])
        assert below is not None
        below.make_context(inner, left)
