"""The scripts of the shells complete a command line as a user types it."""

from __future__ import annotations

import os
import pty
import re
import select
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from specmine.cli.setup.completion import SHELLS, script
from tests.support.paths import ROOT
from tests.support.patience import patient

TYPED = (
    "source {script}; COMP_LINE={line}; COMP_POINT=${{#COMP_LINE}}; _specmine_completion specmine; "
    'printf "%s\\n" "${{COMPREPLY[@]}}"'
)
SHOWN = r"printf '\036%s\037' "


@pytest.fixture
def complete(tmp_path: Path) -> Callable[..., list[str]]:
    """Return what bash offers for the last of some words."""
    command = tmp_path / "bin/specmine"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m specmine.cli "$@"\n')
    command.chmod(0o755)
    (tmp_path / "script").write_text(script("bash"))

    def offered(*words: str) -> list[str]:
        line = TYPED.format(script=tmp_path / "script", line=shlex.quote(" ".join(("specmine", *words))))
        environment = {
            **os.environ, "PATH": f"{command.parent}:/usr/bin:/bin", "PYTHONPATH": str(ROOT / "src"),
        }  # fmt: skip
        done = subprocess.run(
            ["bash", "--norc", "-c", line], capture_output=True, text=True, check=True, env=environment
        )
        assert done.stderr == ""
        return [each for each in done.stdout.splitlines() if each]

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
        assert found == expected, source
        assert complete("functions", *source, "--program", "") != []


def test_without_a_daemon_nothing_is_offered_and_nothing_printed(
    complete: Callable[..., list[str]], tmp_path: Path
) -> None:
    """TAB never ends in an error."""
    assert complete("show", "--socket", str(tmp_path / "none"), "a") == []


@pytest.fixture
def typed(tmp_path: Path) -> Iterator[Callable[[str], list[str]]]:
    """Return the words that a line becomes which is typed into a bash with its TABs."""
    command = tmp_path / "typed/specmine"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m specmine.cli "$@"\n')
    command.chmod(0o755)
    (tmp_path / "typed/script").write_text(script("bash"))
    ours, theirs = pty.openpty()
    environment = {"PATH": f"{command.parent}:/usr/bin:/bin", "PYTHONPATH": str(ROOT / "src"), "TERM": "dumb"}
    shell = subprocess.Popen(
        ["bash", "--norc", "--noprofile", "-i"], stdin=theirs, stdout=theirs, stderr=theirs, env=environment,
        start_new_session=True, cwd=tmp_path,
    )  # fmt: skip
    os.close(theirs)

    def said(keys: str, until: str) -> str:
        os.write(ours, keys.encode())
        text = ""
        while until not in text:
            assert select.select([ours], [], [], patient(30))[0], text
            text += os.read(ours, 65536).decode(errors="replace")
        return text

    def line(keys: str) -> list[str]:
        said("PS1=; PS2=; stty cols 1000 -echo; source typed/script; echo re''ady\n", "ready")
        os.write(ours, keys.encode())
        # ^A goes to the beginning; what is typed behind a TAB waits until bash has completed
        return re.findall("\x1e(.*?)\x1f", said(f"\x01{SHOWN}\x05; echo en''d\n", "end"))

    yield line
    shell.kill()
    shell.wait()
    os.close(ours)


@pytest.mark.parametrize("begun", ["std::m", "std::", "st", "'std::m", '"std::map<i', "std::map\\<int"])
def test_names_with_colons_are_completed_in_a_real_bash(
    typed: Callable[[str], list[str]], store: Path, begun: str
) -> None:
    """After TAB the line holds the name as one word, quoted so that the command gets it as it is."""
    name = "std::map<int, std::string>::operator[](int const&)"
    assert typed(f"specmine show --store {store} {begun}\t") == ["specmine", "show", "--store", str(store), name]


def test_a_value_after_an_equals_sign_is_completed_in_a_real_bash(
    typed: Callable[[str], list[str]], store: Path
) -> None:
    """Readline breaks words there, too."""
    assert typed(f"specmine show --store {store} --program=ap\t")[-1] == "--program=app"


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
