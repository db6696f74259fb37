"""The lock that lets one run of experiments at a time use this host: two would measure each other."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from specmine.model.errors import InputError
from specmine.model.function import Reason

BUSY = Reason(code="busy-lock", text="another run of experiments is going on", remedy="one runs at a time: try again")


class LockTaken(Exception):
    """Another run is going on."""


def default_path() -> Path:
    """Return the one lock of this host for root, the user's own for others, who have no control group to share."""
    if os.geteuid() == 0:
        return Path("/run/specmine/experiments.lock")
    return Path(os.environ.get("XDG_RUNTIME_DIR") or "/tmp") / f"specmine-experiments-{os.geteuid()}.lock"


@contextlib.contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the lock; the kernel takes it back when the holder dies.

    Raises
    ------
    LockTaken
        If another process holds it.
    InputError
        If the file cannot be opened.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise InputError(f"cannot open the lock {path} of experiments: {error.strerror}") from error
    try:
        with contextlib.suppress(OSError):  # of another owner
            os.fchmod(fd, 0o600)  # whoever can open the file can lock it
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LockTaken from None
        yield
    finally:
        os.close(fd)


def is_taken(path: Path) -> bool:
    """Return True if another process holds the lock."""
    try:
        with exclusive(path):
            return False
    except LockTaken:
        return True
