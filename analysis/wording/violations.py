"""Which violations still stand, and which of them somebody has to look at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Entry = Mapping[str, Any]
"""One violation of ``specmine.violations/1``."""


def is_open(entry: Entry) -> bool:
    """Return whether a violation still stands."""
    return entry.get("state") == "open"


def is_problem(entry: Entry) -> bool:
    """Return whether an open violation means that calls are slower."""
    return is_open(entry) and entry.get("direction") == "slower"
