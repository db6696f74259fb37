"""Lifetimes that a source knows, whether a function was timed in them or not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .lifetime import FunctionLifetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenLifetime:
    """One lifetime of a program."""

    lifetime: str
    build: str
    label: str | None
    host: str
    start_ns: int
    """When it began or was first seen, UTC; 0: unknown."""
    timed: bool = True
    """False if no call of any function was timed in it."""
    not_counted: frozenset[tuple[str, str]] = frozenset()
    """Functions and their modules that were timed in it, but by another kind of probe than most lifetimes."""

    @property
    def shown(self) -> str:
        """The build as people call it."""
        return self.label or self.build[:12]

    @property
    def run(self) -> tuple[str, str, str]:
        """What distinguishes it from other lifetimes of the same source."""
        return self.build, self.host, self.lifetime


def seen_in(observed: Iterable[FunctionLifetime]) -> list[SeenLifetime]:
    """Return the lifetimes in which functions were observed, each once, in the order of their appearance."""
    found: dict[tuple[str, str, str], SeenLifetime] = {}
    for each in observed:
        run = each.build, each.host, each.lifetime
        before = found.get(run)
        if before is None or 0 < each.start_ns < before.start_ns:
            found[run] = SeenLifetime(
                lifetime=each.lifetime, build=each.build, label=each.label, host=each.host, start_ns=each.start_ns
            )
    return list(found.values())
