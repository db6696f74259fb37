"""The host's environment as an event: its vector, and when experiments ran on it, whoever ran them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from specmine.daemon.controller.events import Mark, Surveyed
from specmine.experiments.host.environment import environment_of
from specmine.experiments.results.journal import Journal, read_journal
from specmine.experiments.types import SECOND, Host

CHECK_EVERY_NS = 2 * SECOND
MOST_MARKS = 100


class EnvironmentWatcher:
    """Reads the journal of experiments when it changes; ``turn`` returns at once."""

    def __init__(self, path: Path, host: Callable[[], Host]) -> None:
        """Take the path of the journal, and the function that reads the facts of this host."""
        self._path, self._host = path, host
        self._version: tuple[int, int] | None = None
        self._checked_ns: int | None = None

    def turn(self, now_ns: int) -> Surveyed | None:
        """Return the environment at the first turn and after each change of the journal, else None."""
        first = self._checked_ns is None
        if self._checked_ns is not None and now_ns - self._checked_ns < CHECK_EVERY_NS:
            return None
        self._checked_ns = now_ns
        try:
            status = self._path.stat()
            version = status.st_mtime_ns, status.st_ino
        except OSError:
            version = None
        if version == self._version and not first:
            return None
        self._version = version
        host, journal = self._host(), read_journal(self._path)
        return Surveyed(
            now_ns=now_ns,
            environment=environment_of(journal.entries, host).document(),
            marks=marks_of(journal, host.boot_id),
        )


def marks_of(journal: Journal, boot_id: str) -> tuple[Mark, ...]:
    """Return when load ran in this boot, the newest, oldest first."""
    windows = [each for each in journal.windows if each["boot_id"] == boot_id]
    return tuple(
        Mark(name=each["name"], start_ns=each["window_ns"][0], end_ns=each["window_ns"][1], cpus=tuple(each["cpus"]))
        for each in windows[-MOST_MARKS:]
    )
