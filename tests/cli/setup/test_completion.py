"""The scripts of the shells complete a command line as a user types it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from specmine.cli.setup.completion import SHELLS, script
from tests.support.paths import ROOT

TYPED = (
    "source {script}; COMP_WORDS=({words}); COMP_CWORD={at}; _specmine_completion specmine; "
    'printf "%s\\n" "${{COMPREPLY[@]}}"'
)


@pytest.fixture
def complete(tmp_path: Path) -> Callable[..., list[str]]:
    """Return what bash offers for the last of some words."""
    command = tmp_path / "bin/specmine"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m specmine.cli "$@"\n')
    command.chmod(0o755)
    (tmp_path / "script").write_text(script("bash"))

    def offered(*words: str) -> list[str]:
        quoted = " ".join(f"'{each}'" for each in ("specmine", *words))
        line = TYPED.format(script=tmp_path / "script", words=quoted, at=len(words))
        environment = {
            **os.environ, "PATH": f"{command.parent}:/usr/bin:/bin", "PYTHONPATH": str(ROOT / "src"),
        }  # fmt: skip
        done = subprocess.run(
            ["bash", "--norc", "-c", line], capture_output=True, text=True, check=True, env=environment
        )
        assert done.stderr == ""
        return done.stdout.split()

    return offered


def test_commands_options_and_choices(complete: Callable[..., list[str]]) -> None:
    """What is begun is completed, by what the command line knows itself."""
    assert complete("fun") == ["functions"]
    assert complete("show", "--bu") == ["--build"]
    assert complete("functions", "--format", "") == ["text", "json"]


def test_functions_and_programs_of_a_store_and_of_the_daemon(
    complete: Callable[..., list[str]],
    document: dict[str, Any],
    store: Path,
    asked: tuple[Path, list[Mapping[str, Any]]],
) -> None:
    """Names come from where the command would read them; what has no numbers yet is not offered."""
    states = {str(each["function"]): each["state"] for each in document["functions"]}
    plain = [name for name, state in states.items() if state not in ("candidate", "excluded", "refused")]
    begun = plain[0][:2]
    expected = [name for name in plain if name.startswith(begun)]
    assert expected
    for source in (("--store", str(store)), ("--socket", str(asked[0]))):
        found = complete("show", *source, begun)
        assert [each.strip("'") for each in found] == expected, source
        assert complete("functions", *source, "--program", "") != []


def test_without_a_daemon_nothing_is_offered_and_nothing_printed(
    complete: Callable[..., list[str]], tmp_path: Path
) -> None:
    """TAB never ends in an error."""
    assert complete("show", "--socket", str(tmp_path / "none"), "a") == []


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_reads_its_script(shell: str, tmp_path: Path) -> None:
    """The syntax is right, where the shell is there to say so."""
    text = script(shell)
    assert "_SPECMINE_COMPLETE" in text
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    (tmp_path / "script").write_text(text)
    check = subprocess.run([shell, "-n", tmp_path / "script"], capture_output=True, text=True, check=False)
    assert (check.returncode, check.stderr) == (0, "")
