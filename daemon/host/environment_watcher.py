"""What is known of the host as an event: its vector, and when experiments ran on it, whoever ran them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from specmine.daemon.controller.events import Mark, Surveyed
from specmine.experiments.host.environment import environment_of
from specmine.experiments.results.journal import Journal, read_journal
from specmine.experiments.types import SECOND, Host

LOOK_EVERY_NS = 2 * SECOND
MOST_MARKS = 100


class Survey:
    """Looks at the journal of experiments; ``turn`` returns at once."""

    def __init__(self, path: Path, host: Callable[[], Host]) -> None:
        """Take where the journal is, and what reads the facts of this host."""
        self._path, self._host = path, host
        self._seen: tuple[int, int] | None = None
        self._looked_ns: int | None = None

    def turn(self, now_ns: int) -> Surveyed | None:
        """Return what is known at the first turn, and when the journal was written since; else None."""
        first = self._looked_ns is None
        if self._looked_ns is not None and now_ns - self._looked_ns < LOOK_EVERY_NS:
            return None
        self._looked_ns = now_ns
        try:
            found = self._path.stat()
            seen = found.st_mtime_ns, found.st_ino
        except OSError:
            seen = None
        if seen == self._seen and not first:
            return None
        self._seen = seen
        host, journal = self._host(), read_journal(self._path)
        return Surveyed(
            now_ns=now_ns,
            environment=environment_of(journal.entries, host).document(),
            marks=marks_of(journal, host.boot_id),
        )


def marks_of(journal: Journal, boot_id: str) -> tuple[Mark, ...]:
    """Return when load ran in this boot, the newest, oldest first."""
    own = [each for each in journal.windows if each["boot_id"] == boot_id]
    return tuple(
        Mark(name=each["name"], start_ns=each["window_ns"][0], end_ns=each["window_ns"][1], cpus=tuple(each["cpus"]))
        for each in own[-MOST_MARKS:]
    )
