"""Which functions call which, directly or not, as sampled stacks show it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .function import FunctionState


class Ancestry:
    """The callers of functions; each is followed once."""

    def __init__(self, functions: Mapping[str, FunctionState]) -> None:
        """Look at the profiles of these functions, by key."""
        self._functions = functions
        self._known: dict[str, frozenset[str]] = {}

    def of(self, key: str) -> frozenset[str]:
        """Return all functions that are known to call a function, directly or through others."""
        if key not in self._known:
            found: set[str] = set()
            ahead = [key]
            while ahead:
                function = self._functions.get(ahead.pop())
                callers = {caller for caller, _ in function.profile.callers} if function is not None else set()
                ahead += callers - found
                found |= callers
            self._known[key] = frozenset(found)
        return self._known[key]

    def is_apart(self, key: str, others: Iterable[str]) -> bool:
        """Tell whether a function neither calls one of these nor is called by it."""
        return not any(other in self.of(key) or key in self.of(other) for other in others)
