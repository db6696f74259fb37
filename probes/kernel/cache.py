"""The folder that holds compiled programs, prices and unwind rows: whether it can be used, and what is removed from it.

What lies there goes into the kernel, so nobody else may be able to write it.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
from pathlib import Path
from typing import Any

DEFAULT = "/var/cache/specmine"
KEPT = 16
"""Of each kind: more than the links, settings and versions that take turns on one host."""
_KINDS = ("[0-9a-f]" * 32 + ".json", "prices-*.json", "loaded-*.json")


def prepare(folder: Path) -> bool:
    """Make the folder if it is missing and remove what is old.

    False, and no cache then, if we cannot write there, or if it is another user's or anybody else may write there.
    """
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not is_ours(folder):
        return False
    prune(folder)
    return True


def default_folder() -> Path:
    """Return the folder that systemd gives a service, else the usual one."""
    return Path(os.environ.get("CACHE_DIRECTORY", DEFAULT))


def is_ours(folder: Path) -> bool:
    """Tell whether this is a folder of ours, no link, that only we can write."""
    try:
        status = folder.lstat()
    except OSError:
        return False
    safe = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022
    return safe and os.access(folder, os.R_OK | os.W_OK | os.X_OK)


def this_boot() -> str:
    """Return the identity of this boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def read_json(path: Path) -> dict[str, Any]:
    """Return what a file of the folder holds; nothing if it is missing or damaged."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Write a file of the folder as a whole; what cannot be written is not kept."""
    temporary = path.with_suffix(f".{os.getpid()}")
    try:
        temporary.write_text(json.dumps(value), encoding="utf-8")
        temporary.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def prune(folder: Path) -> None:
    """Remove all but the newest files of each kind; what cannot be removed stays, since it does no harm."""
    for kind in _KINDS:
        with contextlib.suppress(OSError):
            by_age = sorted(folder.glob(kind), key=lambda path: path.stat().st_mtime)
            for old in by_age[:-KEPT]:
                old.unlink(missing_ok=True)
