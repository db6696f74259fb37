"""The kill switch: a file. While it exists no probe is attached; the holder checks for it five times a second.

It is a file so that it works when nothing else does: it needs neither the daemon's loop, nor its socket, nor the
command. The signals and the command only create and remove it.
"""

from __future__ import annotations

from pathlib import Path

from specmine.model.errors import HostError

DEFAULT = Path("/run/specmine/off")


def switch(path: Path, *, off: bool) -> None:
    """Create or remove the file; nothing happens if that is done already.

    Raises
    ------
    HostError
        If it cannot be.
    """
    try:
        if off:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        what = "make" if off else "remove"
        raise HostError(f"cannot {what} {path}: {error.strerror}", remedy="run as root") from error


def check_on(path: Path) -> None:
    """Raise HostError if the kill switch is on."""
    try:
        path.lstat()
    except OSError:
        return
    raise HostError(f"all probes are switched off by {path}", remedy="`specmine on` ends that")
