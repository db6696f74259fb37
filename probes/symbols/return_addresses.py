"""Where the calls of functions return to, as sampled stacks show it: known before the first of them is timed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise

MOST_EACH = 16
"""Return addresses noted of one function; the first ones seen are those seen most."""
MOST_FUNCTIONS = 5000
Place = tuple[int, int]
"""Layout and address."""


class ReturnAddresses:
    """The return addresses of each function, by its key."""

    def __init__(self) -> None:
        """Know none."""
        self._known: dict[str, dict[Place, None]] = {}

    def of(self, function: str) -> tuple[Place, ...]:
        """Return what is known of a function, the first one seen first."""
        return tuple(self._known.get(function, ()))

    def note(self, function: str, place: Place) -> None:
        """Take in one return address."""
        known = self._known.setdefault(function, {})
        if len(known) < MOST_EACH:
            known[place] = None
        if len(self._known) > MOST_FUNCTIONS:
            del self._known[next(iter(self._known))]

    def note_stack(self, functions: Sequence[str], places: Sequence[Place]) -> None:
        """Take in a stack, innermost first: key of each frame's function ('': none), and where each frame stands."""
        for function, (_, caller) in zip(functions, pairwise(places), strict=False):
            if function:
                self.note(function, caller)

    def forget(self, functions: Collection[str]) -> None:
        """Forget functions whose files were closed."""
        for key in functions:
            self._known.pop(key, None)

    def forget_layouts(self, layouts: Collection[int]) -> None:
        """Forget addresses in layouts whose numbers others get."""
        for known in self._known.values():
            for place in [place for place in known if place[0] in layouts]:
                del known[place]
