"""What sampling finds more of than usual: it costs next to nothing, and tells which functions to time first. Pure.

A function's share of the samples is the number of its calls times their duration. So a slower function shows in a burst
or two of samples, long before its next window may be due. Nothing is reported for that: windows decide.

Samples of the CPU clock and time blocked are judged each by itself. The first are independent, nearly. The second is
what some looks at blocked threads saw, or a few waits that stand for many: one look or wait proves little.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from specmine.daemon.config.settings import SECOND

from .burst import Burst

Floats = NDArray[np.float64]

FACTORS = np.array([1.5, 3.0])[:, None, None]
"""Increases that are looked for."""
EVIDENCE = 6.0
"""Logarithm of the likelihood ratio from which a function is timed first. At rates that nothing changes, one function
has it once in some hundreds of bursts."""
MOST_EVIDENCE = 3 * EVIDENCE
"""More is not kept: it would stand for long after all is as usual."""
MOST_BLOCKED = 0.7 * EVIDENCE
"""A burst adds so much at most for time blocked, unless ..."""
ENOUGH_LOOKS = 3
"""... so many looks saw threads blocked in the function: one wait may last long by chance."""
MOST_AT_ONCE = 3
"""So many functions surprise at once: where a function is slower there is more of all that calls it, too. The others
come with the next burst."""
LEAST_SECONDS = 5.0
"""Seconds of sampling before it is known what is usual ..."""
MEMORY_SECONDS = 120.0
"""... and over how many it is averaged."""
LEAST_EXPECTED = 0.2
"""Samples that a burst may bring of a function that had none."""
LEAST_FOUND = 3
MANY, ENOUGH = 5, 3.0
"""From so many functions with so many samples expected in their own code, the median of these tells how much more the
whole program does. What is called in a slower function is no more of the program."""
MOST_DISPERSION = np.array([25.0, 1e4])[:, None]
IDLE_SHARE = 0.2
"""Of functions that wait for work for so much of their time, time blocked says nothing."""
TIMED_NS, WINDOWS = 30 * SECOND, 3
"""So long a function is timed before others, and for so many windows: what these say decides what follows."""
PAUSE_NS = 120 * SECOND
"""So long after that it is not, for this reason: windows did not find it slower. If they did, and it is over, it may be
again at once."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Usual:
    """What sampling usually finds of functions: a column each; rows are samples of the CPU clock, and time blocked."""

    functions: tuple[str, ...] = ()
    seconds: Floats = field(default_factory=lambda: np.zeros(0))
    """Seconds of sampling that this rests on, shape (functions,)."""
    rates: Floats = field(default_factory=lambda: np.zeros((2, 0)))
    """Seconds in a second of sampling, shape (2, functions)."""
    innermost: Floats = field(default_factory=lambda: np.zeros(0))
    """Seconds on CPU in a second with the function innermost, shape (functions,)."""
    dispersion: Floats = field(default_factory=lambda: np.ones((2, 0)))
    """Variance of the samples in a burst, over that of independent ones, shape (2, functions)."""
    evidence: Floats = field(default_factory=lambda: np.zeros((2, 2, 0)))
    """That there are more of them now, shape (factors, 2, functions) (CUSUM; Page, *Continuous inspection schemes*,
    1954)."""

    def of(self, functions: tuple[str, ...]) -> Usual:
        """Return it for other functions; of new ones nothing is known."""
        if functions == self.functions:
            return self
        at = {key: column for column, key in enumerate(self.functions)}
        columns = np.array([at.get(key, -1) for key in functions], int)
        old, at_old = columns >= 0, columns[columns >= 0]
        count = len(functions)
        made = Usual(
            functions=functions,
            seconds=np.zeros(count),
            rates=np.zeros((2, count)),
            innermost=np.zeros(count),
            dispersion=np.ones((2, count)),
            evidence=np.zeros((len(FACTORS), 2, count)),
        )
        for name in ("seconds", "rates", "innermost", "dispersion", "evidence"):
            getattr(made, name)[..., old] = getattr(self, name)[..., at_old]
        return made


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Surprise:
    """What the bursts of sampling found, and of which functions it was more than usual."""

    usual: Usual = field(default_factory=Usual)
    until_ns: Mapping[str, int] = field(default_factory=dict)
    """Until when functions that surprised are timed first, at most."""
    windows: Mapping[str, int] = field(default_factory=dict)
    """How many windows each has had since."""

    def at(self, now_ns: int) -> frozenset[str]:
        """Return the functions that are to be timed first."""
        return frozenset(
            key for key, until_ns in self.until_ns.items() if now_ns < until_ns and self.windows.get(key, 0) < WINDOWS
        )

    def with_windows(self, functions: Iterable[str]) -> Surprise:
        """Return it after a window of each of these functions."""
        had = {key: self.windows.get(key, 0) + 1 for key in functions if key in self.until_ns}
        return replace(self, windows={**self.windows, **had}) if had else self


def judged(
    before: Surprise,
    burst: Burst,
    followed: Collection[str],
    now_ns: int,
    *,
    known: Collection[str],
    idle: Mapping[str, float],
    disturbed: bool = False,
    recovered: Collection[str] = (),
) -> Surprise:
    """Return it after a burst: what is usual learned from it, and the functions it found far more of.

    Parameters
    ----------
    before : Surprise
    burst : Burst
    followed : collection of str
        Functions of which it is learned what is usual.
    now_ns : int
    known : collection of str
        Those that can be judged once they are timed.
    idle : mapping of str to float
        The share of the time of functions that waits for work.
    disturbed : bool
        A violation is open: nothing becomes usual.
    recovered : collection of str
        Those that a violation was open of since they surprised, and is no more.
    """
    functions = tuple(followed)
    usual = before.usual.of(functions)
    busy = _times(burst.cpus_s, functions) + _times(burst.jumped_s, functions)
    innermost = _times(burst.innermost_s, functions)
    # time blocked counts like time on CPU
    counts = np.stack([busy, np.maximum(_times(burst.times_s, functions) - busy, 0.0)]) * burst.hertz
    samples = burst.seconds * burst.hertz
    load = _load(usual, innermost, burst)
    expected = np.maximum(LEAST_EXPECTED, usual.rates * samples * load)
    waits = np.array([idle.get(key, 0.0) > IDLE_SHARE for key in functions], bool)
    looks = np.array([burst.looks.get(key, 0) for key in functions], int)
    usual = replace(usual, evidence=_evidence(usual, counts, expected, waits, looks))
    over = before.until_ns.keys() & set(recovered)
    usual.evidence[..., [at for at, key in enumerate(functions) if key in over]] = 0.0
    until_ns = {key: until for key, until in before.until_ns.items() if now_ns < until + PAUSE_NS and key not in over}
    most = usual.evidence.max(axis=(0, 1), initial=0.0)
    found = (most >= EVIDENCE) & (counts.max(axis=0, initial=0.0) >= LEAST_FOUND)
    columns = [int(at) for at in np.flatnonzero(found) if functions[at] in known and functions[at] not in until_ns]
    # of functions on the same stacks the one that does least besides has most
    columns.sort(key=lambda at: (-most[at], expected[:, at].sum(), functions[at]))
    for at in columns[:MOST_AT_ONCE]:
        until_ns[functions[at]] = now_ns + TIMED_NS
        usual.evidence[..., at] = 0.0
    return Surprise(
        usual=usual if disturbed else _learned(usual, counts, expected, innermost, burst),
        until_ns=until_ns,
        windows={key: had for key, had in before.windows.items() if before.until_ns[key] == until_ns.get(key)},
    )


def _times(times_s: Mapping[str, float], functions: tuple[str, ...]) -> Floats:
    return np.array([times_s.get(key, 0.0) for key in functions], float)


def _load(usual: Usual, innermost: Floats, burst: Burst) -> float:
    """Return how much more of everything there is: more calls of all functions are no surprise."""
    expected = usual.innermost * burst.seconds
    enough = expected * burst.hertz >= ENOUGH
    if enough.sum() < MANY:
        return 1.0
    return max(1.0, float(np.median(innermost[enough] / expected[enough])))


def _evidence(
    usual: Usual, counts: Floats, expected: Floats, waits: NDArray[np.bool_], looks: NDArray[np.int_]
) -> Floats:
    """Return the evidence after a burst: the log likelihood ratio of Poisson counts, over their dispersion."""
    more = (counts * np.log(FACTORS) - expected * (FACTORS - 1)) / usual.dispersion
    more[:, 1] = np.minimum(more[:, 1], np.where(looks >= ENOUGH_LOOKS, MOST_EVIDENCE, MOST_BLOCKED))
    evidence: Floats = np.clip(usual.evidence + more, 0.0, MOST_EVIDENCE)
    evidence[..., usual.seconds < LEAST_SECONDS] = 0.0
    evidence[:, 1, waits] = 0.0
    return evidence


def _learned(usual: Usual, counts: Floats, expected: Floats, innermost: Floats, burst: Burst) -> Usual:
    """Return what is usual after one more burst: a change becomes usual, but slowly."""
    total = np.minimum(usual.seconds + burst.seconds, MEMORY_SECONDS)
    weight, steady, samples = burst.seconds / total, usual.seconds >= LEAST_SECONDS, burst.seconds * burst.hertz
    bounded = np.where(steady, np.minimum(counts, 2 * expected + ENOUGH), counts)
    off = np.minimum(MOST_DISPERSION, (bounded - expected) ** 2 / expected)
    dispersion = np.maximum(1.0, usual.dispersion + weight * (off - usual.dispersion))
    most = 2 * usual.innermost * burst.seconds + ENOUGH / burst.hertz
    inner = np.where(steady, np.minimum(innermost, most), innermost)
    return replace(
        usual,
        seconds=total,
        rates=usual.rates + weight * (bounded / samples - usual.rates),
        innermost=usual.innermost + weight * (inner / burst.seconds - usual.innermost),
        dispersion=np.where(steady, dispersion, usual.dispersion),
    )
