"""Whether the lifetimes of two sides took turns in time.

If they did not, whatever else changed meanwhile looks like the build.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

Starts = Mapping[str, Sequence[int]]
"""Host to the times at which its lifetimes of one side began; 0: unknown."""

_ENOUGH = 10
"""Lifetimes on a host from which the number of exchanges is compared with that of a random order."""
_FEW = -1.645
"""Fewer exchanges than 95 % of random orders have, in standard deviations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interleaving:
    """How the sides follow each other in time, over the hosts that ran both."""

    interleaved: bool | None
    """None if times are unknown, or no host ran both."""
    exchanges: int
    """How often a lifetime of one side followed one of the other on its host."""
    expected: float
    """How often it would in a random order."""


def interleaving(base: Starts, new: Starts) -> Interleaving:
    """Return how the lifetimes of two sides follow each other.

    Notes
    -----
    Not interleaved: one side is over before the other begins, on each host; or there are fewer exchanges than in 95 %
    of random orders (Wald and Wolfowitz, On a test whether two samples are from the same population, 1940).
    Lifetimes that began at the same time count as exchanged.
    """
    shared = sorted(host for host in set(base) & set(new) if base[host] and new[host])
    if not shared or any(not start for side in (base, new) for host in shared for start in side[host]):
        return Interleaving(interleaved=None, exchanges=0, expected=0.0)
    exchanges, expected, variance, one_after_the_other, total = 0, 0.0, 0.0, True, 0
    for host in shared:
        times = sorted([(start, 0) for start in base[host]] + [(start, 1) for start in new[host]])
        found = sum(first[1] != second[1] or first[0] == second[0] for first, second in pairwise(times))
        exchanges += found
        one_after_the_other &= found == 1
        count, product = len(times), 2.0 * len(base[host]) * len(new[host])
        total += count
        expected += product / count
        variance += product * (product - count) / (count * count * (count - 1.0))
    few = total >= _ENOUGH and variance > 0.0 and (exchanges + 0.5 - expected) / math.sqrt(variance) < _FEW
    return Interleaving(interleaved=not (one_after_the_other or few), exchanges=exchanges, expected=expected)
