"""Private folders for a moment's work; what a killed process left of its own is removed by the next one."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

PREFIX = "specmine-work-"
YOUNG_S = 60.0
"""A folder of this age may have been made and not been locked yet."""


@contextlib.contextmanager
def work_folder() -> Iterator[str]:
    """Give a folder of our own; it is gone at the end, or removed by the next use of this after a SIGKILL."""
    remove_abandoned(Path(tempfile.gettempdir()))
    with tempfile.TemporaryDirectory(prefix=PREFIX) as folder, _locked(folder):
        yield folder


def remove_abandoned(parent: Path) -> None:
    """Remove the folders here that are ours and that no process works in.

    Parameters
    ----------
    parent : path
        Where others may write too: a link, a file or a folder of another user is left alone.
    """
    with contextlib.suppress(OSError):
        for folder in parent.glob(f"{PREFIX}*"):
            with contextlib.suppress(OSError):
                status = folder.lstat()
                ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
                if ours and time.time() - status.st_mtime >= YOUNG_S:
                    with _locked(folder):
                        shutil.rmtree(folder)


@contextlib.contextmanager
def _locked(folder: str | Path) -> Iterator[None]:
    """Hold the lock of a folder that a living process works in. OSError if another process holds it."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(fd)
