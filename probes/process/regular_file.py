"""Open files that others have named: regular files only, and nothing is waited for."""

from __future__ import annotations

import errno
import os
import stat


def open_regular(path: str | os.PathLike[str], *, follow: bool = False) -> int:
    """Open a regular file for reading.

    The path is first resolved without opening what it names, because to open a FIFO waits for a writer and to open a
    device can start something. ``O_NONBLOCK`` refuses a file with a lease, whose holder could let us wait.

    Parameters
    ----------
    path : str or path
    follow : bool
        Whether the last part of the path may be a link.

    Returns
    -------
    int
        An fd, the caller's to close. OSError if it cannot be opened, or is no regular file.
    """
    named = os.open(path, os.O_PATH | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW))
    try:
        if not stat.S_ISREG(os.fstat(named).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
        return os.open(f"/proc/self/fd/{named}", os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    finally:
        os.close(named)
