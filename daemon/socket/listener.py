"""The socket file: made with its rights, in place of one that a dead daemon left behind."""

from __future__ import annotations

import shutil
import socket
import stat
from pathlib import Path

from specmine.model.errors import InputError

BACKLOG = 64
"""Clients that wait to be accepted."""


def listening(path: Path, mode: int, group: str | None) -> socket.socket:
    """Return a listening socket at a path, for whom mode and group allow. Raises InputError."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _clear(path)
        listener.bind(str(path))
    except InputError:
        listener.close()
        raise
    except OSError as error:
        listener.close()
        reason = error.strerror or error
        raise InputError(f"cannot make the socket {path}: {reason}", remedy="change socket.path") from error
    try:
        # Before listen() nobody can connect, so nobody slips in under the first mode
        if group is not None:
            _give_to(path, group)
        path.chmod(mode)
        listener.listen(BACKLOG)
    except (OSError, InputError) as error:
        listener.close()
        path.unlink(missing_ok=True)
        if isinstance(error, InputError):
            raise
        raise InputError(f"cannot make the socket {path}: {error.strerror}", remedy="change socket.path") from error
    return listener


def _give_to(path: Path, group: str) -> None:
    try:
        shutil.chown(path, group=group)
    except (OSError, LookupError) as error:
        reason = getattr(error, "strerror", None) or f"there is no group {group!r}"
        raise InputError(
            f"cannot give the socket {path} to the group: {reason}", remedy="change socket.group"
        ) from error


def _clear(path: Path) -> None:
    """Remove the socket of a dead daemon; anything else stays."""
    try:
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise InputError(f"{path} is not a socket", remedy="change socket.path, or move the file away")
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
    raise InputError(f"another daemon answers at {path}", remedy="stop it, or change socket.path")
