"""docs/cli.md says what --help says: every command, option and exit code, and nothing else."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from specmine.analysis.wording.states import STATES
from specmine.cli.base import exit_codes
from specmine.cli.main import COMMANDS, WORDS, specmine
from specmine.daemon.controller.phase import State
from tests.support.paths import ROOT

MANUAL = (ROOT / "docs" / "cli.md").read_text()
SECTIONS = {part.split("\n", 1)[0]: part for part in MANUAL.split("\n## ")[1:]}
_OPTION = re.compile(r"(?<![\w`-])--?[a-z][a-z-]*")


def _command(name: str) -> click.Command:
    found = specmine.get_command(click.Context(specmine), name)
    assert found is not None
    return found


def _options(command: click.Command) -> set[str]:
    if isinstance(command, click.Group):
        return {name for each in command.commands.values() for name in _options(each)}
    return {name for each in command.params if isinstance(each, click.Option) for name in each.opts}


def test_every_command_has_its_section_in_order() -> None:
    """The manual has one section a command, in the order of --help."""
    assert [name for name in SECTIONS if name in COMMANDS] == list(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_section_has_the_options_of_its_command(name: str) -> None:
    """Tables and synopsis together name every option of the command and no other."""
    section = SECTIONS[name]
    synopsis = section.split("\n    ", 1)[1].split("\n", 1)[0]
    assert synopsis.startswith(f"specmine {name}")
    tables = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `-")]
    documented = {option for cell in tables for option in _OPTION.findall(cell.replace("`", " "))}
    assert documented == _options(_command(name))
    shown = set(_OPTION.findall(synopsis)) - {"--"}
    assert shown <= documented


def test_every_exit_code_is_documented() -> None:
    """The table of exit codes is the list in the code."""
    codes = {int(line.split("|")[1]) for line in SECTIONS["Exit codes"].splitlines() if re.match(r"\| \d", line)}
    named = {value for name, value in vars(exit_codes).items() if name.isupper() and isinstance(value, int)}
    assert codes == named == {0, 1, 2, 3, 4, 130}


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_80_columns(name: str, outcome: Callable[..., tuple[int, str, str]]) -> None:
    """Each command explains itself within 80 columns."""
    code, out, err = outcome(name, "--help")
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize("arguments", [(), *((name,) for name in COMMANDS), ("experiment", "run")])
def test_help_ends_with_the_glossary(arguments: tuple[str, ...], outcome: Callable[..., tuple[int, str, str]]) -> None:
    """The last line of every help names the page that defines its words."""
    code, out, _ = outcome(*arguments, "--help")
    words = out.rstrip().splitlines()[-1].strip()
    assert (code, words) == (0, WORDS)
    assert (ROOT / words.removeprefix("Words: ")).is_file()


def test_every_state_is_documented() -> None:
    """The table of states, the list in the code and the daemon's own states are the same."""
    states = re.findall(r"^\| `([a-z]+)` \|", SECTIONS["States and reason codes"].split("| code |")[0], re.MULTILINE)
    assert set(states) == set(STATES) == {each.value for each in State}


def _codes_in(path: Path) -> set[str]:
    """Return the constant codes that a source file gives as reasons."""
    calls = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
    named = (call for call in calls if ast.unparse(call.func).split(".")[-1] in _REASONS)
    values = (value for call in named for value in [*call.args, *(word.value for word in call.keywords)])
    texts = (value.value for value in values if isinstance(value, ast.Constant))
    return {text for text in texts if isinstance(text, str) and re.fullmatch(r"[a-z][a-z0-9-]+", text)}


_REASONS = {"Reason", "_because", "_refused", "_refuse"}


def test_every_reason_code_is_documented() -> None:
    """A code that the daemon or the probes give stands in the manual."""
    root = ROOT
    given = {
        code for folder in ("daemon", "probes") for path in (root / folder).rglob("*.py") for code in _codes_in(path)
    }
    documented = set(re.findall(r"^\| `([a-z0-9-]+)` \|", SECTIONS["States and reason codes"], re.MULTILINE))
    assert {"budget", "vdso", "noreturn"} <= given
    assert given <= documented, sorted(given - documented)
