"""``specmine fleet``: ``command`` has it and what is below it."""

from .command import command

__all__ = ["command"]
