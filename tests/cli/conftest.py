"""The fixtures of the command line, for the tests in this folder."""

from tests.support.command_line import asked, compared, document, keep, outcome, plain_terminal, store

__all__ = ["asked", "compared", "document", "keep", "outcome", "plain_terminal", "store"]
