"""``setup-service``: the files are there, the user's configuration is not touched, and all can be removed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from specmine.cli.setup.files import UNITS, configuration_text
from specmine.daemon.config.loader import parse_config
from specmine.daemon.config.tree import Config, default_text

Run = Callable[..., tuple[int, str, str]]


def below(root: Path) -> set[str]:
    """Return every file below a folder, as paths of the host."""
    return {f"/{path.relative_to(root)}" for path in root.rglob("*") if path.is_file()}


def test_each_file_is_named_and_there(outcome: Run, tmp_path: Path) -> None:
    """The list is what was written; a second time nothing changes."""
    code, out, _ = outcome("setup-service", "--root", tmp_path, "--commands", "/opt/s/bin")
    named = {line.split()[1] for line in out.splitlines() if line.startswith("written")}
    assert code == 0
    assert named == below(tmp_path)
    assert {"/etc/specmine/specmined.yaml", "/etc/systemd/system/specmined.service"} <= named
    unit = (tmp_path / "etc/systemd/system/specmined.service").read_text()
    assert "ExecStart=/opt/s/bin/specmined\n" in unit
    assert "/usr/local/bin" not in unit
    code, out, _ = outcome("setup-service", "--root", tmp_path, "--commands", "/opt/s/bin", "--format", "json")
    actions = {each["action"] for each in json.loads(out)["files"]}
    assert (code, actions) == (0, {"unchanged", "kept"})


def test_a_configuration_stays_as_the_user_wrote_it(outcome: Run, tmp_path: Path) -> None:
    """Neither a second set-up nor --remove touches it; everything else is removed."""
    outcome("setup-service", "--root", tmp_path)
    own = tmp_path / "etc/specmine/specmined.yaml"
    own.write_text("programs: [{exe: /bin/app}]\n")
    assert "kept      /etc/specmine/specmined.yaml" in outcome("setup-service", "--root", tmp_path)[1]
    outcome("setup-service", "--root", tmp_path, "--remove")
    assert below(tmp_path) == {"/etc/specmine/specmined.yaml"}
    assert own.read_text() == "programs: [{exe: /bin/app}]\n"


def test_the_commented_configuration_changes_nothing_and_each_line_can_be_taken() -> None:
    """As it is, it is the defaults; with every key uncommented, too."""
    text = configuration_text()
    assert parse_config(text) == Config()
    keys = [line.removeprefix("#") for line in text.splitlines() if line.startswith("#") and line[1:2] not in (" ", "")]
    assert keys[0].startswith("programs: [{")
    written = [line for line in default_text().splitlines() if line and not line.lstrip().startswith("#")]
    assert [line for line in keys[1:] if not line.startswith("#")][: len(written)] != []
    taken = [line.removeprefix("#") for line in text.splitlines() if line.startswith("#programs: [{")]
    assert parse_config(taken[0]).programs[0].exe == "/usr/sbin/apache2"


def test_nothing_is_written_where_there_is_no_right(outcome: Run, tmp_path: Path) -> None:
    """A root that cannot be written is one line and exit code 2 or 4."""
    file = tmp_path / "file"
    file.write_text("")
    code, out, err = outcome("setup-service", "--root", file)
    assert (code, out, err.count("\n")) == (2, "", 1)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
def test_systemd_reads_the_units(outcome: Run, tmp_path: Path) -> None:
    """No unknown key, no wrong value."""
    commands = tmp_path / "bin"
    commands.mkdir()
    for name in ("specmine", "specmined", "specmined-forward"):
        (commands / name).write_text("#!/bin/sh\n")
        (commands / name).chmod(0o755)
    outcome("setup-service", "--root", tmp_path, "--commands", commands)
    for unit in UNITS:
        said = subprocess.run(
            ["systemd-analyze", "verify", "--man=no", tmp_path / "etc/systemd/system" / unit],
            capture_output=True, text=True, check=False, env={**os.environ, "SYSTEMD_LOG_LEVEL": "warning"},
        )  # fmt: skip
        assert [line for line in said.stderr.splitlines() if unit in line] == [], said.stderr
