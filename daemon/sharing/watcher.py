"""The file that the forwarder writes, as events: read when it changed, and only if it is a small ordinary file."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

from specmine.daemon.config.settings import SECOND
from specmine.daemon.controller.events import Assigned, Stated
from specmine.mining.fleet.statement import InheritedStatement
from specmine.model.text import escaped

from .document import MOST_BYTES, BadOrders, Received, read_received

CHECK_EVERY_NS = 2 * SECOND


Version = tuple[str, int, int, float, tuple[int, ...]]
"""What tells two statements of a function apart."""


class FleetWatcher:
    """Reads what the fleet said whenever it changes; ``turn`` returns at once."""

    def __init__(self, path: Path | None, boot_id: str, report: Callable[[str], None]) -> None:
        """Take the path of the file, None where no fleet is configured."""
        self._path, self._boot_id, self._report = path, boot_id, report
        self._version: tuple[int, int, int] | None = None
        self._checked_ns: int | None = None
        self._stated: dict[str, Version] = {}

    def turn(self, now_ns: int) -> tuple[Assigned | Stated, ...]:
        """Return what is news: duties of this boot, and statements that were not told yet."""
        if self._path is None or (self._checked_ns is not None and now_ns - self._checked_ns < CHECK_EVERY_NS):
            return ()
        self._checked_ns = now_ns
        try:
            status = self._path.stat(follow_symlinks=False)
        except OSError:
            return ()
        version = status.st_mtime_ns, status.st_ino, status.st_size
        if version == self._version:
            return ()
        self._version = version
        try:
            received = read_received(_content(self._path))
        except (BadOrders, OSError) as error:
            self._report(f"what the fleet said cannot be used: {escaped(str(error))}")
            return ()
        return self._events(received, now_ns)

    def _events(self, received: Received, now_ns: int) -> tuple[Assigned | Stated, ...]:
        news = tuple(each for each in received.statements if self._stated.get(each.function) != _version(each))
        self._stated = {each.function: _version(each) for each in received.statements}
        events: list[Assigned | Stated] = [Stated(now_ns=now_ns, statements=news)] if news else []
        if received.boot_id == self._boot_id and received.told_ns <= now_ns:
            events.append(Assigned(now_ns=now_ns, told_ns=received.told_ns, duties=received.duties, left=received.left))
        return tuple(events)


def _version(one: InheritedStatement) -> Version:
    return one.build_id, one.hosts, one.calls, one.median_ns, one.learned.edges


def _content(path: Path) -> bytes:
    """Return the content of a small ordinary file; OSError or BadOrders for anything else."""
    opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(opened, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_BYTES:
            raise BadOrders(f"{path} is no ordinary file of at most {MOST_BYTES >> 20} MiB")
        return file.read(MOST_BYTES + 1)
