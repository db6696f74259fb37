"""The style sheet of the pages, which a report holds too."""

from __future__ import annotations

from importlib.resources import files


def style_sheet() -> str:
    """Return the one style sheet."""
    return (files(__package__) / "style.css").read_text(encoding="utf-8")
