"""Which tries may be made at the same time: locks that several processes of a bench share."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path


@contextmanager
def held(path: Path, how: int) -> Iterator[None]:
    """Hold a lock, shared or alone; it is free again when its holder dies."""
    with path.open("a") as file:
        fcntl.flock(file, how)
        yield


@contextmanager
def turn(folder: Path | None, *, alone: bool) -> Iterator[None]:
    """Wait until a fault may be injected: one that all programs feel comes alone. None: nobody else tries any."""
    with ExitStack() as stack:
        if folder is not None:
            how = fcntl.LOCK_EX if alone else fcntl.LOCK_SH
            with held(folder / "next", fcntl.LOCK_EX):  # who waits to be alone is not overtaken
                stack.enter_context(held(folder / "fault", how))
        yield


@contextmanager
def lane(path: Path | None) -> Iterator[None]:
    """Wait until no other program of the same lane is tried."""
    with ExitStack() as stack:
        if path is not None:
            stack.enter_context(held(path, fcntl.LOCK_EX))
        yield
