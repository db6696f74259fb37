"""``specmine off`` and ``on`` say what they did, and never that probes are off where nobody knows."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from functools import partialmethod
from pathlib import Path

import pytest

from specmine.daemon.socket.client import DaemonConnection

Outcome = Callable[..., tuple[int, str, str]]


@pytest.fixture
def default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put the usual kill switch where it harms nobody."""
    path = tmp_path / "run" / "off"
    monkeypatch.setattr("specmine.daemon.system.kill_switch.DEFAULT", path)
    return path


def test_without_a_daemon_the_file_is_switched(tmp_path: Path, default: Path, outcome: Outcome) -> None:
    """What is said of the file is true, also if it was so before."""
    nobody = tmp_path / "nobody.sock"
    for verb, there in (("off", True), ("off", True), ("on", False), ("on", False)):
        code, out, err = outcome(verb, "--socket", nobody)
        assert (code, err) == (0, "")
        assert out.endswith(f"No daemon was asked; {default} is {'there' if there else 'not there'}.\n")
        assert default.exists() == there


def test_the_file_may_be_named(tmp_path: Path, default: Path, outcome: Outcome) -> None:
    """With --file nothing is asked, and JSON says that nobody confirmed it."""
    code, out, _ = outcome("off", "--file", tmp_path / "other", "--format", "json")
    assert (code, (tmp_path / "other").exists(), default.exists()) == (0, True, False)
    assert json.loads(out) == {
        "schema": "specmine.switch/1",
        "probes": "off",
        "kill_switch": str(tmp_path / "other"),
        "confirmed": False,
    }


def test_a_daemon_that_hangs_has_not_told_its_file(
    tmp_path: Path, default: Path, outcome: Outcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The usual file is made, but nothing is claimed: the configuration may name another."""
    monkeypatch.setattr(DaemonConnection, "__init__", partialmethod(DaemonConnection.__init__, timeout_s=0.1))
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "s.sock"))
        silent.listen()
        code, out, err = outcome("off", "--socket", tmp_path / "s.sock")
    assert (code, out) == (3, "")
    assert f"{default} is there; if its configuration names another one: --file FILE\n" in err
    assert default.exists()
