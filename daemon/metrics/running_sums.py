"""Sums of counters over functions that come and go: each grows by what its functions grow, whichever they are."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from .family import Row


class RunningSums:
    """Counters by name and labels, each the sum over several functions."""

    def __init__(self) -> None:
        """Begin at nothing."""
        self._last: dict[tuple[str, str, tuple[str, ...]], float] = {}
        """Key of the function, name, labels of its own."""
        self._sums: dict[tuple[str, tuple[str, ...]], float] = {}

    def keep(self, functions: Collection[str]) -> None:
        """Forget the last values of all functions but these; what they added stays in the sums."""
        self._last = {key: value for key, value in self._last.items() if key[0] in functions}

    def with_values(self, values: Iterable[tuple[str, Row]]) -> Iterator[Row]:
        """Add what the counters of functions grew by, and return the sums that these belong to.

        Parameters
        ----------
        values : iterable of (str, Row)
            Key of the function, and the row with its own value. The first three labels say to which sum it belongs
            now; what was added to another one stays there. A value below the last one has begun anew.
        """
        named: dict[tuple[str, tuple[str, ...]], None] = {}
        for key, (name, labels, value) in values:
            last = self._last.get((key, name, labels[3:]), 0.0)
            grown = value - last if value >= last else value
            self._sums[name, labels] = self._sums.get((name, labels), 0.0) + grown
            self._last[key, name, labels[3:]] = value
            named[name, labels] = None
        for name, labels in named:
            yield name, labels, self._sums[name, labels]
