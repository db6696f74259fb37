"""The limit of series: which functions have series of their own, under which names. The others are one sum."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .counters import ClassCounters
from .families import OF_A_SCRAPE, OF_CHANGES, OF_EXPERIMENTS, OF_FUNCTIONS, OF_THE_DAEMON
from .family import Row, label_text, rows
from .snapshot import FunctionSnapshot

OTHER = "other"
_FOLDED = tuple(family for family in OF_FUNCTIONS if family.folded)
_MOST_CHANGES = 50  # ten series each


class SeriesLimit:
    """Turns snapshots into rows; holds what must last between scrapes: counters, names, and functions shown before."""

    def __init__(self) -> None:
        """Begin with nothing shown."""
        self._counters = ClassCounters()
        self._names = _Names()
        self._shown: set[str] = set()
        self._other = _Other()

    def rows(self, snapshots: Sequence[FunctionSnapshot], status: Mapping[str, Any], *, series: int) -> list[Row]:
        """Return the rows of a scrape, at most ``series``, and advance the counters."""
        found = list(rows(OF_THE_DAEMON, status))
        for name, experiment in status["experiments"].items():
            found += rows(OF_EXPERIMENTS, experiment, (label_text(name),))
        for change in status.get("changes", ())[:_MOST_CHANGES]:
            label = tuple(label_text(str(change[name])) for name in ("function", "module", "base", "new"))
            found += rows(OF_CHANGES, change, label)
        left = series - len(found) - len(_FOLDED) - len(OF_A_SCRAPE)
        shown, folded = [], []
        # those shown before go first, so that a function does not come and go with its rank
        ranked = sorted(snapshots, key=lambda each: (not each.behaviours, each.key not in self._shown))
        for function in self._counters.advance(ranked):
            of_function = list(rows(OF_FUNCTIONS, function, self._names.of(function)))
            if len(of_function) <= left:
                left -= len(of_function)
                found += of_function
                shown.append(function)
            else:
                folded.append(function)
        self._shown = {each.key for each in shown}
        return [*found, *self._other.rows(folded), *rows(OF_A_SCRAPE, folded)]


class _Names:
    """Labels of functions, stable and unique: of two with one name the later one gets a mark."""

    def __init__(self) -> None:
        self._by_key: dict[str, tuple[str, str]] = {}
        self._taken: dict[tuple[str, str], str] = {}

    def of(self, function: FunctionSnapshot) -> tuple[str, str]:
        """Return the values of the labels function and module."""
        label = self._by_key.get(function.key)
        if label is None:
            name, module = label_text(function.name), label_text(function.module)
            label, number = (name, module), 2
            while self._taken.get(label, function.key) != function.key or label[0] == OTHER:
                label = f"{name}~{number}", module
                number += 1
            self._taken[label] = function.key
            self._by_key[function.key] = label
        return label


class _Other:
    """The sums of the folded functions; each grows by what the functions grow, whichever they are."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], float] = {}
        self._sums = {family.name: 0.0 for family in _FOLDED}

    def rows(self, folded: Sequence[FunctionSnapshot]) -> Iterator[Row]:
        """Return the series of function="other", none if nothing was ever folded."""
        for function in folded:
            for name, _, value in rows(_FOLDED, function):
                self._sums[name] += max(0.0, value - self._last.get((name, function.key), 0.0))
                self._last[name, function.key] = value
        if self._last:
            yield from ((name, (OTHER, ""), value) for name, value in self._sums.items())
