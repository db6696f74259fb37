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


@pytest.mark.parametrize(
    ("found", "hidden", "words", "count"),
    [
        ({}, 0, "All probes are off.", 0),
        ({}, 1, "1 process may not be looked at: run as root to see.", None),
        ({}, 3, "3 processes may not be looked at: run as root to see.", None),
        ({7: 2, 9: 1}, 0, "but 3 breakpoints are in the code of 7, 9: of another tool", 3),
    ],
)
def test_no_more_is_said_than_was_seen(
    tmp_path: Path,
    default: Path,
    outcome: Outcome,
    monkeypatch: pytest.MonkeyPatch,
    found: dict[int, int],
    hidden: int,
    words: str,
    count: int | None,
) -> None:
    """Without a daemon to ask, the code of all processes is looked at."""
    monkeypatch.setattr("specmine.cli.runners.probes_switch.CONFIRMED_S", 0.1)
    monkeypatch.setattr("specmine.probes.safety.breakpoints.breakpoints_everywhere", lambda: (found, hidden))
    code, out, _ = outcome("off", "--file", tmp_path / "other")
    assert code == 0 and words in out
    assert json.loads(outcome("off", "--file", tmp_path / "other", "--format", "json")[1])["breakpoints"] == count


def test_the_file_may_be_named(tmp_path: Path, default: Path, outcome: Outcome) -> None:
    """With --file nothing is asked, and JSON says that nobody confirmed it."""
    code, out, _ = outcome("off", "--file", tmp_path / "other", "--format", "json")
    assert (code, (tmp_path / "other").exists(), default.exists()) == (0, True, False)
    assert {name: value for name, value in json.loads(out).items() if name != "breakpoints"} == {
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


def test_folders_that_are_not_there_are_not_made(tmp_path: Path, outcome: Outcome) -> None:
    """A misspelt --file is a mistake, and leaves nothing. One folder is made: that of a daemon that does not run."""
    code, out, err = outcome("off", "--file", tmp_path / "no" / "folder" / "off")
    assert (code, out) == (2, "") and "there is no folder" in err
    assert not list(tmp_path.iterdir())
