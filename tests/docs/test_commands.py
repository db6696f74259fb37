"""Every command line that a page shows is one that specmine takes: its command, options and kinds of values exist."""

from __future__ import annotations

import argparse
import re
import shlex
from pathlib import Path

import click
import pytest

from specmine.cli.main import specmine
from specmine.daemon.main import parser
from tests.support.paths import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_LINE = re.compile(r"^\s*(?:\$ |#: )?(?:sudo )?(?:[\w./]*/)?(specmined?) (.*)$")
_SYNOPSIS = re.compile(r"\[(?!\[)|\.\.\.| \| ")
_NUMBER = {"PID": "1", "S": "1"}


def blocks(text: str) -> list[str]:
    """Return the lines of code of a page, and its spans; a backslash joins two lines."""
    lines: list[str] = []
    fenced = code = False
    before = ""
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        code = line.startswith("    ") and (code or not before.strip())
        if fenced or code:
            lines.append(line)
        before = line
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines()
    return joined + re.findall(r"`(specmined? [^`\n]+)`", text)


def commands(page: Path) -> list[tuple[str, list[str]]]:
    """Return the command lines of a page: the program and its arguments. A synopsis is none."""
    found = []
    for line in blocks(page.read_text(encoding="utf-8")):
        match = _LINE.match(line)
        if match is None or _SYNOPSIS.search(match[2].partition(" #")[0]):
            continue
        try:
            lexer = shlex.shlex(re.sub(r"\$\([^)]*\)", "1", match[2]), posix=True, punctuation_chars=True)
            lexer.commenters, lexer.whitespace_split = "#", True
            words = list(lexer)
        except ValueError:  # a sentence of the output with an apostrophe
            continue
        ends = [at for at, word in enumerate(words) if set(word) <= set("|&;<>()")]
        arguments = [_NUMBER.get(word, word) for word in words[: ends[0] if ends else None]]
        found.append((match[1], arguments))
    return found


def takes(arguments: list[str]) -> None:
    """Parse a command line of specmine; nothing runs."""
    name, *rest = arguments
    command = specmine.get_command(click.Context(specmine), name)
    assert command is not None, name
    if rest in (["--help"], ["-h"]):
        return
    context = command.make_context(name, rest)
    if isinstance(command, click.Group):
        inner, below, left = command.resolve_command(context, [*context._protected_args, *context.args])
        assert below is not None
        below.make_context(inner, left)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_its_command_lines_are_taken(page: Path) -> None:
    """A line that begins with specmine in a block of code."""
    for program, arguments in commands(page):
        if program == "specmined":
            parser().parse_args(arguments)
        elif arguments and re.fullmatch(r"[a-z][a-z-]*", arguments[0]):
            try:
                takes(arguments)
            except (click.MissingParameter, click.exceptions.NoArgsIsHelpError):
                continue  # prose names a command without all that it needs
            except click.ClickException as error:
                pytest.fail(f"specmine {shlex.join(arguments)}: {error.format_message()}")


def test_lines_are_found_and_a_wrong_one_is_not_taken() -> None:
    """The pages show some, and the check can fail."""
    total = sum(len(commands(page)) for page in PAGES)
    assert total > 90
    with pytest.raises(click.NoSuchOption):
        takes(["mine", "--durration", "60"])
    with pytest.raises((SystemExit, argparse.ArgumentError)):
        parser().parse_args(["--nonsense"])
