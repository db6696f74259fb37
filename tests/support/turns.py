"""Tests that share a host: most run beside each other, some need the host for themselves."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def turn(folder: Path, *, alone: bool) -> Iterator[None]:
    """Wait until no test that is alone runs, or no test at all; hold others off for as long.

    Parameters
    ----------
    folder : path
        The same for all processes that run tests.
    alone : bool
        No other test may run meanwhile.
    """
    with _open(folder / "door") as door, _open(folder / "room") as room:
        fcntl.flock(door, fcntl.LOCK_EX)  # who waits to be alone keeps others from going in before
        fcntl.flock(room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(door, fcntl.LOCK_UN)
        yield


@contextmanager
def _open(path: Path) -> Iterator[int]:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield fd
    finally:
        os.close(fd)
