"""What a fault is: how it is injected into a running program, how it is undone, and what is true of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


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
    account: Callable[[], tuple[float, float]] | None = None
    """What the program itself says of the first function: calls and seconds in them, since it started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A program under a bounded load, and its faults."""

    name: str
    exe: str
    pid: int
    faults: tuple[Fault, ...] = field(default=())
