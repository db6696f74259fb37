"""How a recording is cut into observations, and their histograms.

Without times the calls of a function, in the order of the file, are cut into ten equal parts. With times each
part is a window: ten of them, or one for every ten seconds. Where such windows hold too few calls to be judged
they are joined, as live ones go on until they hold enough. A part never reaches over two lifetimes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from specmine.mining.borders.stretch import NONE
from specmine.model.buckets import BUCKETS

from .exact import exact_durations
from .joining import joined_windows, shared
from .records import Names
from .spool import Block, Spool
from .sums import Numbers, Sums, by_first, ranks, stacked

PARTS = 10
WINDOW_NS = 10_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Part:
    """One observation of one function, in numbers."""

    number: int
    """Its place among those of the function."""
    lifetime: int
    start_ns: int
    end_ns: int
    timed: bool
    """False if start and end are only positions in the file."""
    buckets: Numbers
    """Ascending."""
    calls: Numbers
    """Calls of each of these buckets."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Placed:
    """Some calls, and what they belong to; all arrays of one length."""

    paths: Numbers
    functions: Numbers
    parts: Numbers
    buckets: Numbers


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Series:
    """The calls of one function in one lifetime: how they are cut."""

    calls: int
    first: int
    """Number of its first part among those of the function."""
    parts: int
    joined: Numbers | None
    """Part of each window of the lifetime; None if calls are cut by their rank."""


class Cut:
    """The parts of every function of a recording."""

    def __init__(self, spool: Spool, names: Names, minimum_calls: int, above_ns: float = 0.0) -> None:
        """Look at the calls and decide where to cut; parts with fewer than ``minimum_calls`` are joined.

        Steps of clocks or of rounding are undone if they are longer than ``above_ns``.
        """
        self._spool, self._names = spool, names
        self._functions = len(names.functions)
        self._owner = np.array(names.function_of, dtype=np.int64)
        self._lifetimes = max(len(names.lifetimes), 1)
        self._calls = self._counted(self._functions * self._lifetimes, self._series_of)
        self.first_ns, self.last_ns = self._spans()
        self.timed = spool.timed and bool((self.last_ns > self.first_ns).any())
        """True if the calls have times that differ."""
        by_function = self._calls.reshape(-1, self._lifetimes).sum(axis=1)
        self.exact = exact_durations(spool, self._owner, by_function, above_ns=above_ns)
        self._windows = self._windows_of_lifetimes()
        self._series = self._cut(minimum_calls)
        self._most = max((series.first + series.parts for series in self._series.values()), default=1)

    @property
    def seconds(self) -> float:
        """Sum of the lengths of all lifetimes; 0 without times."""
        return float((self.last_ns - self.first_ns).sum()) * 1e-9 if self.timed else 0.0

    def parts(self) -> Iterator[tuple[int, list[Part]]]:
        """Yield the number of each function with its parts, oldest first; parts without a call are left out."""
        yield from self._parts()

    def stretched_parts(self, resolution_ns: float) -> Iterator[tuple[int, list[Part]]]:
        """Yield the same for functions whose durations are close together, in buckets of the stretched durations."""
        if any(stretch != NONE for stretch in self.exact.stretches):
            yield from self._parts(lambda block, functions: self.exact.stretched(block, functions, resolution_ns))

    def _parts(self, counted: Callable[[Block, Numbers], Numbers] | None = None) -> Iterator[tuple[int, list[Part]]]:
        whole = self._sums(
            self._functions * self._most * BUCKETS,
            lambda of: ((of.functions * self._most + of.parts) * BUCKETS + of.buckets)[of.buckets >= 0],
            counted,
        )
        for function, rest, calls in by_first(*whole, self._most * BUCKETS):
            yield function, [self._part(function, *each) for each in by_first(rest, calls, BUCKETS)]

    def paths(self, since: Mapping[int, int]) -> Iterator[tuple[int, Numbers, Numbers]]:
        """Yield each path with its buckets and the calls of each, for paths of these functions.

        Parameters
        ----------
        since : mapping of int to int
            Numbers of functions, and of the first part of each that counts.
        """
        first = self._first(since)
        yield from by_first(
            *self._sums(
                len(self._names.paths) * BUCKETS,
                lambda of: (of.paths * BUCKETS + of.buckets)[of.parts >= first[of.functions]],
            ),
            BUCKETS,
        )

    def groups(self, since: Mapping[int, int], group: Numbers) -> Iterator[tuple[int, dict[int, Part]]]:
        """Yield each group of paths with its parts by number.

        Parameters
        ----------
        since : mapping of int to int
            As for ``paths``.
        group : ndarray of int64
            Number of the group of each path, all paths of one function; below 0: none.
        """
        first = self._first(since)
        owner = np.zeros(int(group.max(initial=-1)) + 1, dtype=np.int64)
        owner[group[group >= 0]] = self._owner[group >= 0]

        def number(of: _Placed) -> Numbers:
            kept = (of.parts >= first[of.functions]) & (group[of.paths] >= 0)
            return ((group[of.paths] * self._most + of.parts) * BUCKETS + of.buckets)[kept]

        for which, rest, calls in by_first(
            *self._sums(len(owner) * self._most * BUCKETS, number), self._most * BUCKETS
        ):
            parts = (self._part(int(owner[which]), *each) for each in by_first(rest, calls, BUCKETS))
            yield which, {part.number: part for part in parts}

    def _first(self, since: Mapping[int, int]) -> Numbers:
        first = np.full(self._functions, np.iinfo(np.int64).max)
        for function, part in since.items():
            first[function] = part
        return first

    def _part(self, function: int, number: int, buckets: Numbers, calls: Numbers) -> Part:
        lifetime, series = next(
            (series % self._lifetimes, each)
            for series, each in self._of_function(function)
            if each.first <= number < each.first + each.parts
        )
        start_ns, end_ns = number, number + 1
        if series.joined is not None:
            windows = np.flatnonzero(series.joined == number - series.first)
            start_ns = self._edge(lifetime, int(windows[0]))
            end_ns = max(start_ns + 1, self._edge(lifetime, int(windows[-1]) + 1))
        return Part(
            number=number,
            lifetime=lifetime,
            start_ns=start_ns,
            end_ns=end_ns,
            timed=self.timed,
            buckets=buckets,
            calls=calls,
        )

    def _of_function(self, function: int) -> list[tuple[int, _Series]]:
        start = function * self._lifetimes
        return [
            (series, self._series[series]) for series in range(start, start + self._lifetimes) if series in self._series
        ]

    def _edge(self, lifetime: int, window: int) -> int:
        first, last = int(self.first_ns[lifetime]), int(self.last_ns[lifetime])
        return first + (last - first) * window // int(self._windows[lifetime])

    def _series_of(self, block: Block) -> Numbers:
        return self._owner[block.paths] * self._lifetimes + block.lifetimes

    def _counted(self, size: int, number_of: Callable[[Block], Numbers]) -> Numbers:
        total = np.zeros(size, dtype=np.int64)
        for block in self._spool.blocks():
            total += np.bincount(number_of(block), minlength=size)
        return total

    def _spans(self) -> tuple[Numbers, Numbers]:
        """Return first and last time of each lifetime."""
        first = np.full(self._lifetimes, np.iinfo(np.int64).max)
        last = np.full(self._lifetimes, np.iinfo(np.int64).min)
        if not self._spool.timed:
            return np.zeros(self._lifetimes, dtype=np.int64), np.zeros(self._lifetimes, dtype=np.int64)
        for block in self._spool.blocks():
            if block.times_ns is not None:
                np.minimum.at(first, block.lifetimes, block.times_ns)
                np.maximum.at(last, block.lifetimes, block.times_ns)
        empty = first > last
        first[empty] = last[empty] = 0
        return first, last

    def _windows_of_lifetimes(self) -> Numbers:
        """Return how many windows each lifetime has: ten in all at least, by their lengths, and one for ten seconds."""
        spans = (self.last_ns - self.first_ns).astype(np.float64)
        share = np.ceil(PARTS * spans / max(spans.sum(), 1.0))
        return np.asarray(np.maximum(np.maximum(share, np.ceil(spans / WINDOW_NS)), 1), dtype=np.int64)

    def _window_of(self, block: Block) -> Numbers:
        """Return each call's window in its lifetime."""
        assert block.times_ns is not None
        first, windows = self.first_ns[block.lifetimes], self._windows[block.lifetimes]
        spans = np.maximum(self.last_ns[block.lifetimes] - first, 1).astype(np.float64)
        place = (block.times_ns - first).astype(np.float64) / spans * windows
        return np.asarray(np.minimum(place.astype(np.int64), windows - 1), dtype=np.int64)

    def _cut(self, minimum_calls: int) -> dict[int, _Series]:
        """Return how each series is cut that has calls."""
        found: dict[int, _Series] = {}
        counts = self._counts_of_windows() if self.timed else {}
        for function in range(self._functions):
            own = np.arange(function * self._lifetimes, (function + 1) * self._lifetimes)
            live = [int(series) for series in own if self._calls[series]]
            order = (
                sorted(live, key=lambda series: int(self.first_ns[series % self._lifetimes])) if self.timed else live
            )
            first = 0
            shares = shared(PARTS, [int(self._calls[series]) for series in order])
            for series, share in zip(order, shares, strict=True):
                calls, joined, parts = int(self._calls[series]), None, share
                if self.timed:
                    lifetime = series % self._lifetimes
                    least = max(1, round(PARTS * self._part_of_time(lifetime)))
                    joined = joined_windows(int(self._windows[lifetime]), counts[series], least, minimum_calls)
                    parts = int(joined[-1]) + 1
                found[series] = _Series(calls=calls, first=first, parts=parts, joined=joined)
                first += parts
        return found

    def _part_of_time(self, lifetime: int) -> float:
        spans = self.last_ns - self.first_ns
        return float(spans[lifetime]) / max(float(spans.sum()), 1.0)

    def _counts_of_windows(self) -> dict[int, tuple[Numbers, Numbers]]:
        """Return for each series its windows with calls, and their calls."""
        most = int(self._windows.max())
        sums = Sums(self._functions * self._lifetimes * most)
        for block in self._spool.blocks():
            sums.add(self._series_of(block) * most + self._window_of(block))
        keys, calls = sums.total()
        series, window = np.divmod(keys, most)
        at = np.flatnonzero(np.diff(series, prepend=-1))
        return {
            int(series[begin]): (window[begin:end], calls[begin:end])
            for begin, end in zip(at.tolist(), np.append(at[1:], len(series)).tolist(), strict=True)
        }

    def _sums(
        self,
        size: int,
        number_of: Callable[[_Placed], Numbers],
        counted: Callable[[Block, Numbers], Numbers] | None = None,
    ) -> tuple[Numbers, Numbers]:
        """Return the numbers below ``size`` that calls have, ascending, and how many calls have each."""
        counted = counted or self.exact.buckets
        sums = Sums(size)
        seen = np.zeros(self._functions * self._lifetimes, dtype=np.int64)
        first = np.zeros(len(seen), dtype=np.int64)
        parts = np.ones(len(seen), dtype=np.int64)
        joined: dict[int, Numbers] = {}
        for number, series in self._series.items():
            first[number], parts[number] = series.first, series.parts
            if series.joined is not None:
                joined[number] = series.joined
        table, start = stacked(joined, len(seen))
        for block in self._spool.blocks():
            own = self._series_of(block)
            if self.timed:
                part = table[start[own] + self._window_of(block)]
            else:
                part = ranks(own, seen) * parts[own] // self._calls[own]
            functions = self._owner[block.paths]
            buckets = counted(block, functions)
            sums.add(
                number_of(_Placed(paths=block.paths, functions=functions, parts=first[own] + part, buckets=buckets))
            )
        return sums.total()
