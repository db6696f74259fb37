"""A lock that the kernel takes back when its holder dies: one daemon a host, one writer a store."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from specmine.model.errors import InputError

MODE = 0o600
"""Whoever can open the file can lock it, also for reading only."""


class LockTaken(InputError):
    """Another process holds the lock."""


class FileLock:
    """An exclusive lock on a file, held until ``release`` or the end of the process.

    The file stays behind on purpose: to delete it would let two processes lock two files of one name.
    """

    def __init__(self, path: str | Path, *, what: str, remedy: str) -> None:
        """Take the lock.

        Parameters
        ----------
        path : path
            The file; it is made if missing, its folder too.
        what, remedy : str
            For the message: what is taken already, and what to do then.

        Raises
        ------
        LockTaken
            If another process holds it.
        InputError
            If the file cannot be opened.
        """
        self.path = Path(path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, MODE)
        except OSError as error:
            raise InputError(
                f"cannot open the lock {self.path} of {what}: {error.strerror}", remedy="choose a folder to write in"
            ) from error
        with suppress(OSError):  # of another owner: whoever may write to it may lock it
            os.fchmod(self._fd, MODE)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._fd, 32, 0).decode("ascii", "replace").strip()
            os.close(self._fd)
            by = f" by process {holder}" if holder.isdigit() else ""
            raise LockTaken(f"{what} is in use{by} (lock {self.path})", remedy=remedy) from None
        with suppress(OSError):  # the process id is for people; on a full disk the lock holds without it
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Give the lock back."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
