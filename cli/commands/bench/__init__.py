"""``specmine bench``."""

from .command import command

__all__ = ["command"]
