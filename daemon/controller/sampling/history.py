"""How much CPU time sampling finds of each function: lately, burst by burst, and usually before. Pure.

Bursts are a few samples each, and see every function on a stack, timed or not. What is usual is learned only from
bursts that are older than a change that may yet be found, and from none while a violation is open.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from specmine.daemon.config.settings import SECOND

from .burst import Burst

KEPT_NS = 150 * SECOND
"""Bursts of so long are kept one by one: a violation began before it was found."""
MOST_KEPT = 40
MEMORY_SECONDS = 180.0
"""Seconds of sampling over which what is usual is averaged."""
LEAST_CPUS = 1e-4
"""What takes less of a CPU is forgotten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """The CPU time that samples find of one function, callees included, beside what is usual."""

    cpus: float
    """CPUs that it keeps busy, ..."""
    usual_cpus: float
    """... and usually."""
    evidence: float
    """That it is more than usual: the logarithm of the likelihood ratio of two Poisson counts; 0: it is not."""

    @property
    def factor(self) -> float:
        """How many times as much as usual; what has no usual counts as ``LEAST_CPUS`` of it."""
        return self.cpus / max(self.usual_cpus, LEAST_CPUS)

    @property
    def more(self) -> float:
        """CPUs that it keeps busy more than usual."""
        return self.cpus - self.usual_cpus

    def least_part_of(self, other: Growth) -> float:
        """Return what it has of another one's evidence, or of its growth, whichever is less."""
        return min(self.evidence / max(other.evidence, 1e-9), self.more / max(other.more, 1e-9))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SampleHistory:
    """What is usual, and the newest bursts."""

    usual: Mapping[str, float] = field(default_factory=dict)
    """CPUs that each function keeps busy, callees included."""
    seconds: float = 0.0
    """Seconds of sampling that this rests on."""
    newest: tuple[Burst, ...] = ()
    """Oldest first."""
    disturbed: bool = False
    """A violation was open at the last burst."""

    def growth_since(self, moment_ns: int) -> dict[str, Growth]:
        """Return what was found in the bursts that began after a moment; {} if there was none, or nothing is usual."""
        bursts = [one for one in self.newest if one.ended_ns - one.seconds * SECOND >= moment_ns]
        seconds, hertz = sum(one.seconds for one in bursts), max((one.hertz for one in bursts), default=0)
        if not seconds or not self.seconds:
            return {}
        found: dict[str, float] = {}
        for one in bursts:
            for key, cpus_s in one.cpus_s.items():
                found[key] = found.get(key, 0.0) + cpus_s
        return {
            key: Growth(
                cpus=cpus_s / seconds,
                usual_cpus=self.usual.get(key, 0.0),
                evidence=_evidence(
                    cpus_s * hertz, seconds, self.usual.get(key, 0.0) * self.seconds * hertz, self.seconds
                ),
            )
            for key, cpus_s in found.items()
        }


def with_burst(
    before: SampleHistory, burst: Burst, known: Collection[str] | None = None, *, disturbed: bool
) -> SampleHistory:
    """Return the history with one more burst that is over.

    Parameters
    ----------
    before : SampleHistory
    burst : Burst
    known : collection of str, optional
        Functions that are not forgotten: builds that ran once would stay for hours.
    disturbed : bool
        A violation is open: nothing becomes usual. Once none is, what was found meanwhile is forgotten.
    """
    if before.disturbed and not disturbed:
        return replace(before, newest=(burst,), disturbed=False)
    kept = (*before.newest, burst)
    old = [at for at, each in enumerate(kept) if burst.ended_ns - each.ended_ns > KEPT_NS or at < len(kept) - MOST_KEPT]
    history = replace(before, newest=kept[len(old) :], disturbed=disturbed)
    for each in () if disturbed else kept[: len(old)]:
        history = _learned(history, each)
    if known is None or all(key in known for key in history.usual):
        return history
    return replace(history, usual={key: cpus for key, cpus in history.usual.items() if key in known})


def _learned(before: SampleHistory, burst: Burst) -> SampleHistory:
    seconds = min(before.seconds + burst.seconds, MEMORY_SECONDS)
    weight = burst.seconds / seconds
    usual = {
        key: (1 - weight) * before.usual.get(key, 0.0) + weight * burst.cpus_s.get(key, 0.0) / burst.seconds
        for key in before.usual.keys() | burst.cpus_s.keys()
    }
    usual = {key: cpus for key, cpus in sorted(usual.items()) if cpus >= LEAST_CPUS}
    return replace(before, usual=usual, seconds=seconds)


def _evidence(count: float, seconds: float, usual_count: float, usual_seconds: float) -> float:
    """Return the log likelihood ratio of two Poisson rates, the second larger, over one.

    Given their sum the counts are binomial (Przyborowski and Wilenski, *Homogeneity of results in testing samples from
    Poisson series*, Biometrika 31, 1940).
    """
    part, total = seconds / (seconds + usual_seconds), count + usual_count
    if not total or count <= part * total:
        return 0.0
    usual_term = usual_count * math.log(usual_count / ((1 - part) * total)) if usual_count else 0.0
    return count * math.log(count / (part * total)) + usual_term
