"""How many pages of code probes change: each becomes a private copy in every process that it is probed in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from specmine.probes.process.mappings import FileId

MAX_PAGES = 256
"""Pages of code, of all functions together, that may be changed at once in a process: 1 MiB."""
_SHIFT = 12


class TextPages:
    """The pages that the probes of each function change now, over all files."""

    def __init__(self, most: int = MAX_PAGES) -> None:
        """Change none."""
        self._most = most
        self._of: dict[str, set[tuple[FileId, int]]] = {}
        self._users: Counter[tuple[FileId, int]] = Counter()

    def add(self, function: str, places: Iterable[tuple[FileId, int]]) -> bool:
        """Take in probes at (file, offset) for a function; False, and nothing taken, if there is no room for them."""
        own = self._of.get(function, set())
        new = {(file, offset >> _SHIFT) for file, offset in places} - own
        if len(self._users) + sum(page not in self._users for page in new) > self._most:
            return False
        self._of[function] = own | new
        self._users.update(new)
        return True

    def remove(self, function: str) -> None:
        """Give up all pages of a function."""
        for page in self._of.pop(function, set()):
            self._users[page] -= 1
            if not self._users[page]:
                del self._users[page]

    def __len__(self) -> int:
        """Return the number of pages changed."""
        return len(self._users)
