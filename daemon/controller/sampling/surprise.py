"""What sampling finds more of than usual: it costs next to nothing, and tells which functions to time first. Pure.

A function's share of the samples is the number of its calls times their duration. So a slower function shows in a burst
or two of samples, long before its next window may be due. Nothing is reported for that: windows decide.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from specmine.daemon.config.settings import SECOND

from .burst import Burst

FACTORS = (1.5, 3.0)
"""Increases that are looked for."""
EVIDENCE = 5.0
"""Logarithm of the likelihood ratio from which a function is timed first. At rates that nothing changes, one function
has it once in some hundreds of bursts."""
LEAST_SECONDS = 5.0
"""Seconds of sampling before it is known what is usual ..."""
MEMORY_SECONDS = 120.0
"""... and over how many it is averaged."""
LEAST_EXPECTED = 0.2
"""Samples that a burst may bring of a function that had none."""
LEAST_FOUND = 3
MANY, ENOUGH = 5, 3.0
"""From so many functions with so many samples expected, their median tells how much more the whole program does."""
MOST_DISPERSION = 25.0
TIMED_NS = 30 * SECOND
"""So long a function is timed before others ..."""
PAUSE_NS = 120 * SECOND
"""... and so long after that it is not, for this reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usual:
    """What sampling usually finds of one function."""

    rate: float = 0.0
    """Samples in a second of sampling; time blocked counts like time on CPU."""
    seconds: float = 0.0
    """Seconds of sampling that this rests on."""
    dispersion: float = 1.0
    """Variance of the samples in a burst, over that of independent ones."""
    evidence: tuple[float, ...] = (0.0,) * len(FACTORS)
    """That it has more of them now, for each factor (CUSUM; Page, *Continuous inspection schemes*, 1954)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Surprise:
    """What the bursts of sampling found, and of which functions it was more than usual."""

    usual: Mapping[str, Usual] = field(default_factory=dict)
    """By function."""
    until_ns: Mapping[str, int] = field(default_factory=dict)
    """Until when functions that surprised are timed first."""

    def at(self, now_ns: int) -> frozenset[str]:
        """Return the functions that are to be timed first."""
        return frozenset(key for key, until_ns in self.until_ns.items() if now_ns < until_ns)


def judged(before: Surprise, burst: Burst, followed: Collection[str], hertz: int, now_ns: int) -> Surprise:
    """Return it after a burst: what is usual learned from it, and the functions it found far more of.

    Parameters
    ----------
    before : Surprise
    burst : Burst
    followed : collection of str
        Functions of which this is of interest.
    hertz : int
        Samples a second in the burst.
    now_ns : int
    """
    counts = {key: burst.times_s.get(key, 0.0) * hertz for key in followed}
    load = _load(before, counts, burst.seconds)
    until_ns = {key: until for key, until in before.until_ns.items() if now_ns < until + PAUSE_NS}
    usual = {}
    for key, count in counts.items():
        one = before.usual.get(key, Usual())
        expected = max(LEAST_EXPECTED, one.rate * burst.seconds * load)
        if one.seconds >= LEAST_SECONDS:
            evidence = _evidence(one, count, expected)
            if max(evidence) >= EVIDENCE and count >= LEAST_FOUND and key not in until_ns:
                until_ns[key] = now_ns + TIMED_NS
                evidence = (0.0,) * len(FACTORS)
            one = replace(one, evidence=evidence)
        usual[key] = _learned(one, count, expected, burst.seconds)
    return Surprise(usual=usual, until_ns=until_ns)


def _load(before: Surprise, counts: Mapping[str, float], seconds: float) -> float:
    """Return how much more of everything there is: more calls of all functions are no surprise."""
    ratios = [
        counts[key] / (one.rate * seconds)
        for key, one in before.usual.items()
        if key in counts and one.rate * seconds >= ENOUGH
    ]
    return max(1.0, statistics.median(ratios)) if len(ratios) >= MANY else 1.0


def _evidence(one: Usual, count: float, expected: float) -> tuple[float, ...]:
    """Return the evidence after a burst: the log likelihood ratio of Poisson counts, over their dispersion."""
    return tuple(
        max(0.0, gathered + (count * math.log(factor) - expected * (factor - 1)) / one.dispersion)
        for gathered, factor in zip(one.evidence, FACTORS, strict=True)
    )


def _learned(one: Usual, count: float, expected: float, seconds: float) -> Usual:
    """Return what is usual after one more burst."""
    total = min(one.seconds + seconds, MEMORY_SECONDS)
    weight, off = seconds / total, one.dispersion
    if one.seconds >= LEAST_SECONDS:
        count = min(count, 2 * expected + ENOUGH)  # a change becomes usual, but slowly
        off = min(MOST_DISPERSION, (count - expected) ** 2 / expected)
    return replace(
        one,
        rate=one.rate + weight * (count / seconds - one.rate),
        seconds=total,
        dispersion=max(1.0, one.dispersion + weight * (off - one.dispersion)),
    )
