"""Worse, better, equivalent or undecided: the fixed-sample rule of ``specmine compare``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeVar

from .ratio_estimate import RatioEstimate, ratio_estimate
from .sample import FEWEST_CALLS, SUMMARIES, Sample, granularity_ns
from .sample_size import needed_lifetimes, smallest_detectable

Key = TypeVar("Key")


class Change(StrEnum):
    """What a comparison says about new against base."""

    WORSE = "worse"
    BETTER = "better"
    EQUIVALENT = "equivalent"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """How to compare."""

    summary: str = "median"
    level: float = 0.95
    tolerance: float = 0.02

    def __post_init__(self) -> None:
        """Refuse what makes no sense, by name."""
        if self.summary not in SUMMARIES:
            raise ValueError(f"summary is one of {', '.join(SUMMARIES)}, not {self.summary}")
        if not 0.0 < self.level < 1.0:
            raise ValueError(f"level lies between 0 and 1, not {self.level}")
        if self.tolerance < 0.0 or not math.isfinite(self.tolerance):
            raise ValueError(f"tolerance is at least 0, not {self.tolerance}")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LifetimeSample:
    """One lifetime's calls of one function, warm-up already left out."""

    lifetime: str
    host: str
    sample: Sample
    rate: float | None = None
    """Calls per watched second, if known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The verdict on one function, with all that it rests on."""

    verdict: Change
    estimate: RatioEstimate | None
    lifetimes: tuple[int, int]
    """Lifetimes of base and new that have the summary."""
    left_out: int
    """Lifetimes with too few calls for it."""
    smallest_detectable: float | None
    needed: int | None
    """Lifetimes a side with which it would be decided; only if undecided."""
    reason: str
    q_value: float | None = None


def compare(base: Sequence[LifetimeSample], new: Sequence[LifetimeSample], rule: Rule) -> Comparison:
    """Compare one function's lifetimes of two sides.

    Returns
    -------
    Comparison
        Equivalent: the interval lies within [1 / (1 + t), 1 + t]; this wins. Else worse or better: it lies
        wholly above or below 1. Else undecided.
    """
    fewest = FEWEST_CALLS[rule.summary]
    kept = [[each for each in side if each.sample.calls >= fewest] for side in (base, new)]
    left_out = len(base) + len(new) - len(kept[0]) - len(kept[1])
    counts = len(kept[0]), len(kept[1])
    if min(counts) == 0:
        why = f"{'base' if counts[0] == 0 else 'new'} has no lifetime with {_calls(fewest)} of it"
        return _undecided(counts, left_out, why, needed=2)
    summary = SUMMARIES[rule.summary]
    values = [_by_host([(each.host, summary(each.sample)) for each in side]) for side in kept]
    if any(number <= 0.0 for side in values for numbers in side.values() for number in numbers):
        return _undecided(counts, left_out, f"its {rule.summary} is 0 in some lifetime, which has no ratio")
    step = granularity_ns([each.sample for side in kept for each in side])
    found = ratio_estimate(values[0], values[1], level=rule.level, step=step)
    if found is None:
        few = min(counts)
        why = f"{few} lifetime{'s' if few > 1 else ''} on a side cannot tell a change from a restart"
        return _undecided(counts, left_out, why, needed=2)
    shared = set(values[0]) & set(values[1])
    confounded = not shared and min(len(values[0]), len(values[1])) < 2
    verdict = Change.UNDECIDED if confounded else verdict_of(found, rule)
    return Comparison(
        verdict=verdict,
        estimate=found,
        lifetimes=counts,
        left_out=left_out,
        smallest_detectable=smallest_detectable(found.error, found.freedom, rule.level),
        needed=_needed(found, rule) if verdict is Change.UNDECIDED else None,
        reason="base and new ran on different hosts: a change of build cannot be told from one of host"
        if confounded
        else _reason(verdict, found, rule),
    )


def verdict_of(found: RatioEstimate, rule: Rule) -> Change:
    """Return what an interval says."""
    limit = 1.0 + rule.tolerance
    if 1.0 / limit <= found.low and found.high <= limit:
        return Change.EQUIVALENT
    if found.low > 1.0:
        return Change.WORSE
    if found.high < 1.0:
        return Change.BETTER
    return Change.UNDECIDED


def with_discoveries(comparisons: Mapping[Key, Comparison], rule: Rule) -> dict[Key, Comparison]:
    """Return the comparisons with q-values; worse and better need q <= 1 - level as well.

    Notes
    -----
    Benjamini and Hochberg 1995 over all functions that have a p-value.
    """
    from .false_discovery_rate import q_values  # noqa: PLC0415

    tested = {key: each.estimate.p_value for key, each in comparisons.items() if each.estimate is not None}
    found = dict(zip(tested, q_values(list(tested.values())), strict=True))
    return {key: _discovered(each, found.get(key), rule) for key, each in comparisons.items()}


def _discovered(each: Comparison, q_value: float | None, rule: Rule) -> Comparison:
    if q_value is None:
        return each
    if each.verdict in (Change.WORSE, Change.BETTER) and q_value > 1.0 - rule.level + 1e-12:
        assert each.estimate is not None
        return replace(
            each,
            verdict=Change.UNDECIDED,
            q_value=q_value,
            needed=_needed(each.estimate, rule),
            reason=f"{each.verdict.value} on its own, but so many functions give as much at random (q {q_value:.2g})",
        )
    return replace(each, q_value=q_value)


def _by_host(rows: Sequence[tuple[str, float]]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for host, value in rows:
        found.setdefault(host, []).append(value)
    return found


def _needed(found: RatioEstimate, rule: Rule) -> int:
    """Return the lifetimes a side, more than there are: those there are did not decide it."""
    deviations = [0.0 if math.isnan(each) else each for each in found.deviations]
    number = needed_lifetimes(math.log(found.ratio), deviations, rule.level, rule.tolerance)
    return max(number, min(found.lifetimes) + 1)


def _undecided(counts: tuple[int, int], left_out: int, why: str, needed: int | None = None) -> Comparison:
    return Comparison(
        verdict=Change.UNDECIDED,
        estimate=None,
        lifetimes=counts,
        left_out=left_out,
        smallest_detectable=None,
        needed=needed,
        reason=why,
    )


def _reason(verdict: Change, found: RatioEstimate, rule: Rule) -> str:
    share = f"{100 * abs(found.ratio - 1.0):.3g} %"
    match verdict:
        case Change.WORSE:
            return f"{share} longer, beyond random variation"
        case Change.BETTER:
            return f"{share} shorter, beyond random variation"
        case Change.EQUIVALENT:
            return f"any change is smaller than {100 * rule.tolerance:.3g} %"
    return "the interval holds both no change and one that matters"


def _calls(number: int) -> str:
    return "a call" if number == 1 else f"{number} calls"
