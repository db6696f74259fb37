"""What a killed process left is removed by the next one, and nothing else."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from specmine.probes.kernel.work_folder import PREFIX, YOUNG_S, remove_abandoned, work_folder
from tests.support.paths import ROOT

WORKING = """
import sys, time
sys.path.insert(0, sys.argv[1])
from specmine.probes.kernel.work_folder import work_folder
with work_folder() as folder:
    print(folder, flush=True)
    time.sleep(600)
"""


def aged(path: Path) -> Path:
    """Make a folder or file seem older than one that is only being made."""
    old_s = time.time() - 2 * YOUNG_S
    os.utime(path, (old_s, old_s), follow_symlinks=False)
    return path


def test_what_a_killed_process_left_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While it works its folder stays, however old; after SIGKILL the next use of another folder removes it."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    command = [sys.executable, "-c", WORKING, str(ROOT / "src")]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as child:
        assert child.stdout is not None
        left = Path(child.stdout.readline().strip())
        aged(left)
        with work_folder() as own:
            assert left.is_dir() and Path(own).is_dir()
        child.send_signal(signal.SIGKILL)
    assert left.is_dir()
    with work_folder() as own:
        assert not left.exists()
        assert list(tmp_path.iterdir()) == [Path(own)]
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_ours_or_in_use_stays(tmp_path: Path) -> None:
    """A young folder, a locked one, a file, a link to a folder, and folders of other names."""
    young, locked, other = (tmp_path / f"{PREFIX}young", tmp_path / f"{PREFIX}locked", tmp_path / "specmine-other")
    for each in (young, locked, other):
        each.mkdir()
    aged(other)
    (file := tmp_path / f"{PREFIX}file").touch()
    (link := tmp_path / f"{PREFIX}link").symlink_to(other)
    (inside := other / "kept").touch()
    for each in (file, link, locked, other):
        aged(each)
    fd = os.open(locked, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        remove_abandoned(tmp_path)
        assert set(tmp_path.iterdir()) == {young, locked, other, file, link}
        assert inside.exists()
    finally:
        os.close(fd)
    remove_abandoned(tmp_path)
    assert not locked.exists()
