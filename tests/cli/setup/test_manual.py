"""Manual pages: one a command, from the texts of the help, in the format of man."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import click
import pytest

from specmine.cli.main import COMMANDS, specmine
from specmine.cli.setup.manual import pages


def test_every_command_has_a_page() -> None:
    """The overview names each, and each names its options."""
    made = pages()
    others = {"specmine.1", "specmined.8", "specmined-forward.8", "specmined.yaml.5"}
    assert set(made) == others | {f"specmine-{each}.1" for each in COMMANDS}
    for name in COMMANDS:
        assert rf"specmine\-{name.replace('-', chr(92) + '-')}(1)" in made["specmine.1"]
        command = specmine.get_command(click.Context(specmine), name)
        assert command is not None
        for option in (each for each in command.params if isinstance(each, click.Option) and not each.hidden):
            assert option.opts[-1].replace("-", r"\-") in made[f"specmine-{name}.1"], (name, option.opts)


def test_no_text_is_taken_for_a_request() -> None:
    """Every line that begins with a point is one of the few requests that these pages use."""
    known = {".TH", ".SH", ".TP", ".B", ".PP", ".nf", ".fi"}
    lines = [line for text in pages().values() for line in text.splitlines()]
    assert {line.split()[0] for line in lines if line.startswith(".")} == known
    assert not [line for line in lines if line.startswith("'")]


ENVIRONMENT = {"LC_ALL": "C.UTF-8", "MANWIDTH": "100", "PATH": "/usr/bin:/bin"}


@pytest.mark.skipif(shutil.which("man") is None, reason="there is no man here")
def test_man_reads_them_without_a_warning(tmp_path: Path) -> None:
    """groff, as man calls it, finds nothing wrong, and shows what the help says."""
    for name, text in pages().items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    done = subprocess.run(
        ["man", "--warnings", "--local-file", *sorted(tmp_path.iterdir())],
        capture_output=True,
        text=True,
        check=False,
        env=ENVIRONMENT,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "--duration S" in done.stdout
    assert "budget:" in done.stdout
