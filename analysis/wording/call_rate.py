"""How often a function is called, in words."""

from __future__ import annotations

from typing import Any

from specmine.analysis.documents import Entry
from specmine.model.text import rate


def call_rate(entry: Entry) -> str:
    """Return calls a second; ``>90,000`` where they are too fast to count, '' where none were counted."""
    known: Any = entry.get("rate_per_second")
    if not isinstance(known, int | float):
        return ""
    return f">{rate(known)}" if entry.get("rate_is_least") else rate(known)
