"""Errors by their origin: the user's input, the host, or too little data; each carries its exit code."""

from __future__ import annotations


class SpecmineError(Exception):
    """Root of all errors that a user sees as one line."""

    exit_code = 2

    def __init__(self, message: str, *, remedy: str = "") -> None:
        """Keep the sentence and the advice apart, so that each front end can lay them out."""
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        """Return one line: what was wrong and what to do."""
        return f"{self.message}; {self.remedy}" if self.remedy else self.message


class InputError(SpecmineError):
    """The user named something that is not there or not usable: pid, file, key, store."""


class NoData(SpecmineError):
    """There are not enough data to state anything."""

    exit_code = 3


class HostError(SpecmineError):
    """This host cannot do it, or the privilege is missing; ``specmine doctor`` gives the reason."""

    exit_code = 4


class HelperError(HostError):
    """One of specmine's own processes broke: trying again may help, so a service is started anew."""


class ProbeError(HostError):
    """The kernel refused a program, a map or a link."""
