"""What earlier versions, kernels and boots left in the cache's folder: compiled programs, and prices."""

from __future__ import annotations

import contextlib
from pathlib import Path

KEPT = 16
"""Of each kind: more than the links, settings and versions that take turns on one host."""
_KINDS = ("[0-9a-f]" * 32 + ".json", "prices-*.json")


def prune(folder: Path) -> None:
    """Remove all but the newest files of each kind; what cannot be removed stays, since it does no harm."""
    for kind in _KINDS:
        with contextlib.suppress(OSError):
            by_age = sorted(folder.glob(kind), key=lambda path: path.stat().st_mtime)
            for old in by_age[:-KEPT]:
                old.unlink(missing_ok=True)
