"""Which functions are worth measuring: where wall-clock time goes, and in what order to look at them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from specmine.daemon.config.settings import SECOND, Settings
from specmine.model.batch import Prices

from .function import Knowledge
from .profile import Where

FIRST_LOOK_NS = 1_500 * 1_000_000
"""Sampling lasts this long before the first function is chosen."""
FIND_NS = 15 * SECOND
"""So long sampling goes on; then it comes in bursts, since it costs every process of the host a little."""
BURST_NS, PAUSE_NS = 2 * SECOND, 30 * SECOND
"""Length of a burst, and from one to the next; under pressure up to ten times as far apart."""
WORTH_SHARE = 0.005
"""Share of wall-clock or of CPU time from which a function is worth a probe."""
_CALLED = 0.02
"""Weight of time in the functions that a function calls, beside its own."""
HALF_LIFE_NS = 60 * SECOND
"""What sampling said fades by half in this time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """All the time that sampling saw."""

    wall_ns: float
    cpu_ns: float


def total_of(known: Iterable[Knowledge], runtime: Where | None = None) -> Total:
    """Add up the time of all functions, and of code made at run time."""
    every = [each.where for each in known] + ([] if runtime is None else [runtime])
    return Total(wall_ns=sum(each.own_ns for each in every), cpu_ns=sum(each.cpu_ns for each in every))


def share(known: Knowledge, total: Total) -> float:
    """Return the share of wall-clock time with the function on the stack, at most 1."""
    return min(1.0, known.where.inclusive_ns / total.wall_ns) if total.wall_ns > 0 else 0.0


def is_worth_it(known: Knowledge, total: Total) -> bool:
    """Tell whether a function is hot, waits much, was named by the user, calls a finished one, or has inherited."""
    if known.hinted or known.climbed or known.inherited is not None:
        return True
    cpu = known.where.cpu_ns / total.cpu_ns if total.cpu_ns > 0 else 0.0
    return known.where.samples >= 2 and max(share(known, total), cpu) >= WORTH_SHARE


def variation(known: Knowledge) -> float:
    """Return calls times spread, ns per second: the rate times the standard deviation of the durations."""
    return (known.rate or 0.0) * known.spread_ns


def sampling_hertz(now_ns: int, looking_ns: int, burst_ns: int, prices: Prices, settings: Settings) -> int:
    """Return the samples a second on each busy CPU: at most a tenth of the budget; 0 between bursts.

    With functions named by the user there is no sampling.

    Parameters
    ----------
    now_ns : int
    looking_ns : int
        Since when functions are looked for: the start, or now while none was found.
    burst_ns : int
        Start of the last burst.
    prices : Prices
    settings : Settings
    """
    if settings.watch:
        return 0
    if now_ns - looking_ns >= FIND_NS and now_ns - burst_ns >= BURST_NS:
        return 0
    affordable = 0.1 * settings.overhead * SECOND / max(prices.sample_ns, 1.0)
    return max(1, min(settings.sampling_hertz, int(affordable)))


def next_burst_ns(burst_ns: int, pressure: float) -> int:
    """Return when the burst after one begins."""
    return burst_ns + round(PAUSE_NS * (1 + 9 * pressure))


def own_share(known: Knowledge, total: Total) -> float:
    """Return the share of CPU or of wall-clock time, whichever is more, inside the function itself.

    With a little of what it calls, as far as that does not lie in one function only: who does nothing but call another
    has nothing to tell that the other does not.
    """
    if total.wall_ns <= 0:
        return 0.0
    where = known.where
    cpu = where.cpu_ns / total.cpu_ns if total.cpu_ns > 0 else 0.0
    beyond = max(0.0, where.inclusive_ns - where.callee_ns) / total.wall_ns
    return max(where.own_ns / total.wall_ns, cpu) + _CALLED * beyond


def in_order(known: Mapping[str, Knowledge], total: Total) -> list[Knowledge]:
    """Return functions not yet counted, the most promising first; waits of a main loop last."""
    return sorted(
        known.values(),
        key=lambda each: (
            not each.hinted,
            each.where.loop_bottom,
            -own_share(each, total),
            each.function.key,
        ),
    )
