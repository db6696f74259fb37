"""A lock file is its owner's alone: whoever may open it may lock it."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from specmine.experiments.runner.lock import exclusive
from specmine.store.lock import FileLock


def take_file_lock(path: Path) -> None:
    """Take and release the lock of a host or a store."""
    FileLock(path, what="it", remedy="").release()


def take_experiments_lock(path: Path) -> None:
    """Take and release the lock of experiments."""
    with exclusive(path):
        pass


@pytest.mark.parametrize("take", [take_file_lock, take_experiments_lock])
@pytest.mark.parametrize("before", [None, 0o644, 0o666])
def test_nobody_else_can_open_a_lock(take: Callable[[Path], None], before: int | None, tmp_path: Path) -> None:
    """Whatever the umask, and whatever the mode of the file that an earlier version left."""
    path = tmp_path / "lock"
    if before is not None:
        path.touch()
        path.chmod(before)
    umask = os.umask(0)
    try:
        take(path)
    finally:
        os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
