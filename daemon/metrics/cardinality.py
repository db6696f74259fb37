"""Which functions have series of their own, under which names; the others are folded into one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .counters import Counters, Reading
from .samples import Row, changes, of_function, plain, whole

OTHER = "other"


class Folding:
    """Holds what must last between scrapes: counters, names, and which functions were shown."""

    def __init__(self) -> None:
        """Begin with nothing shown."""
        self._counters = Counters()
        self._names = _Names()
        self._shown: set[str] = set()
        self._other = _Other()

    def rows(self, found: Sequence[Reading], status: Mapping[str, Any], *, series: int) -> list[Row]:
        """Return the rows of a snapshot, at most ``series``, and advance the counters."""
        rows = [*whole(status), *changes(status)]
        self._counters.advance(found)
        left = series - len(rows) - 5  # what folding itself needs
        shown, folded = [], []
        # those shown before go first, so that a function does not come and go with its rank
        for each in sorted(found, key=lambda each: (not each.behaviours, each.key not in self._shown)):
            label = self._names.of(each)
            own = list(of_function(each, label, self._counters))
            if len(own) <= left:
                left -= len(own)
                rows += own
                shown.append(each)
            else:
                folded.append(each)
        self._shown = {each.key for each in shown}
        rows += self._other.rows(folded)
        rows.append(("functions_folded", (), len(folded)))
        return rows


class _Names:
    """Labels of functions, stable and unique: of two with one name the later one gets a mark."""

    def __init__(self) -> None:
        self._by_key: dict[str, tuple[str, str]] = {}
        self._taken: dict[tuple[str, str], str] = {}

    def of(self, reading: Reading) -> tuple[str, str]:
        """Return the values of the labels function and module."""
        label = self._by_key.get(reading.key)
        if label is None:
            label = plain(reading.name), plain(reading.module)
            number = 2
            while self._taken.get(label, reading.key) != reading.key or label[0] == OTHER:
                label = f"{plain(reading.name)}~{number}", plain(reading.module)
                number += 1
            self._taken[label] = reading.key
            self._by_key[reading.key] = label
        return label


class _Other:
    """The folded functions together; grows by what they grow, whichever they are."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[float, ...]] = {}
        self._sums = [0.0, 0.0, 0.0, 0.0]

    def rows(self, folded: Sequence[Reading]) -> Iterator[Row]:
        """Return the series of function="other", none if nothing was ever folded."""
        now = {each.key: (each.calls, each.timed, each.watched_ns / 1e9, each.cost_ns / 1e9) for each in folded}
        for key, values in now.items():
            before = self._last.get(key, (0.0,) * len(values))
            for index, (new, old) in enumerate(zip(values, before, strict=True)):
                self._sums[index] += max(0.0, new - old)
        self._last |= now
        names = ("function_calls", "function_timed_calls", "watched_seconds", "function_overhead_seconds")
        if self._last:
            yield from ((name, (OTHER, ""), value) for name, value in zip(names, self._sums, strict=True))
