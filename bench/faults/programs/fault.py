"""What a fault is: how it is injected into a running program, how it is undone, and what is true of it."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

Account = Callable[[], tuple[float, float]]
"""Calls, or requests, and the seconds that they took, since it began."""
VARYING = "harmless: a rate that varies"
"""The fault of each program that is none: its load varies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault of one program."""

    name: str
    inject: Callable[[], None]
    undo: Callable[[], None]
    functions: tuple[str, ...] = ()
    """Globs of the functions that are slower by themselves; empty: any."""
    causes: tuple[str, ...] = ()
    """The kinds of cause that are true."""
    factor: float | None = None
    """By how much the first function is slower, where that is known from what is injected."""
    harmless: bool = False
    """Nothing takes longer by it: nothing may be opened."""
    alone: bool = False
    """All programs of the host feel it: it fills CPUs, or the disk."""
    account: Account | None = None
    """What the program itself says of the first function."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A program under a bounded load, and its faults."""

    name: str
    exe: str
    pid: int
    by_exe: bool = False
    """It is chosen by its executable, as one that is started anew must be."""
    faults: tuple[Fault, ...] = field(default=())
    clients: Account | None = None
    """What its clients say of the requests that were answered."""


def replaced(path: Path, text: str) -> None:
    """Write a file such that nobody reads half of it."""
    new = path.with_suffix(".new")
    new.write_text(text)
    new.replace(path)


class Wandering:
    """A load that varies: every few seconds a factor between a half and two, until it is stopped."""

    SECONDS = 5.0

    def __init__(self, put: Callable[[float], None]) -> None:
        """Remember how a factor of the usual load is set."""
        self._put, self._end, self._thread = put, threading.Event(), threading.Thread()

    def start(self) -> None:
        """Begin."""
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Return to the usual load."""
        self._end.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._put(1.0)

    def _run(self) -> None:
        chance = random.Random(1)
        while not self._end.wait(self.SECONDS):
            self._put(2.0 ** chance.uniform(-1, 1))


@contextmanager
def wandering(put: Callable[[float], None]) -> Iterator[tuple[Fault, ...]]:
    """Give faults that slow nothing: twice the rate, a fifth of it, and a rate that varies; stopped at the end."""
    load = Wandering(put)
    try:
        yield (
            Fault(name="harmless: twice the rate", inject=lambda: put(2.0), undo=lambda: put(1.0), harmless=True),
            Fault(name="harmless: a fifth of the rate", inject=lambda: put(0.2), undo=lambda: put(1.0), harmless=True),
            Fault(name=VARYING, inject=load.start, undo=load.stop, harmless=True),
        )
    finally:
        load.stop()
