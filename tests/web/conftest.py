"""The fixtures of the command line's sample, for the pages."""

from tests.support.command_line import document, keep, outcome

__all__ = ["document", "keep", "outcome"]
