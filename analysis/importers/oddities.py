"""What is odd about a recording that could be read: counted, with the functions named and what to do. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from specmine.model.text import count, escaped, listed, plural, shortened

from .records import Chunk, Names

_NAMED = 3


class Resolution:
    """Counts durations that no clock can measure."""

    def __init__(self) -> None:
        """Have seen none."""
        self.calls = 0
        """Calls of more than 0 ns."""
        self.impossible = 0
        """Those of less than 1 ns."""

    def add(self, chunk: Chunk) -> None:
        """Take in some calls."""
        durations = chunk.durations_ns[chunk.durations_ns > 0]
        self.calls += len(durations)
        self.impossible += int(np.count_nonzero(durations < 1))


def oddities(names: Names, resolution: Resolution) -> tuple[str, ...]:
    """Return a sentence for each kind of oddity, with its remedy."""
    found = []
    if resolution.impossible > resolution.calls / 2:
        found.append(
            f"{count(resolution.impossible)} of {plural(resolution.calls, 'call')} took less than 1 ns, which no clock"
            " resolves; duration_ns is in nanoseconds: if these are seconds, multiply them by 1e9"
        )
    if names.rings:
        found.append(
            f"{plural(names.rings.total(), 'span')} of {_named(names, names.rings)} are each other's parents, so what"
            " called them is unknown; correct parentSpanId in what writes the spans"
        )
    missing = _without(names.censored, names)
    if missing:
        found.append(
            f"{count(missing.total())} entries of {_named(names, missing)} have no return, so no call has a duration;"
            " record the returns too (perf probe 'NAME%return', uretprobe)"
        )
    late = _without(names.unentered, names)
    if late:
        found.append(
            f"{count(late.total())} returns of {_named(names, late)} have no entry, so no call has a duration; record"
            " the entries too (perf probe NAME, uprobe)"
        )
    return tuple(found)


def _without(cut: Mapping[int, int], names: Names) -> Counter[int]:
    """Return the functions of which no call is whole."""
    whole = set(names.function_of)
    return Counter({number: calls for number, calls in cut.items() if number not in whole})


def _named(names: Names, functions: Counter[int]) -> str:
    """Return the functions with the most, by name."""
    shown = [shortened(escaped(names.functions[number].name)) for number, _ in functions.most_common(_NAMED)]
    more = len(functions) - len(shown)
    return listed([*shown, f"{more} more"] if more else shown)
