"""The folder that holds compiled programs and prices: whether it can be used, and what is removed from it."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

KEPT = 16
"""Of each kind: more than the links, settings and versions that take turns on one host."""
_KINDS = ("[0-9a-f]" * 32 + ".json", "prices-*.json")


def prepare(folder: Path) -> bool:
    """Make the folder if it is missing and remove what is old; False if we cannot write there: no cache then."""
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        return False
    prune(folder)
    return True


def prune(folder: Path) -> None:
    """Remove all but the newest files of each kind; what cannot be removed stays, since it does no harm."""
    for kind in _KINDS:
        with contextlib.suppress(OSError):
            by_age = sorted(folder.glob(kind), key=lambda path: path.stat().st_mtime)
            for old in by_age[:-KEPT]:
                old.unlink(missing_ok=True)
