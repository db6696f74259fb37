"""Worse, better, equivalent or undecided: the fixed-sample rule of ``specmine compare`` for one summary of some calls.

``mining/comparison`` applies it to the parts of a function.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from .host_drift import HostDrift, allowing_for
from .ratio_estimate import RatioEstimate, ratio_estimate
from .sample import FEWEST_CALLS, SUMMARIES, Sample, granularity_ns, joined
from .sample_size import MOST_LIFETIMES, lifetimes_for_change, lifetimes_for_equivalence, smallest_detectable


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
class LeftOut:
    """A lifetime that a comparison could not use."""

    side: int
    """0: base, 1: new."""
    lifetime: str
    host: str
    calls: int
    code: str
    """Stable: too-few-calls."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The verdict on one summary of some calls, with all that it rests on."""

    verdict: Change
    ratio: float | None
    """New over base, also where nothing is decided; None if a side has no calls or takes no time."""
    centres_ns: tuple[float | None, float | None]
    """Geometric means over lifetimes of base and new."""
    estimate: RatioEstimate | None
    """None where too few lifetimes repeat to give an interval."""
    lifetimes: tuple[int, int]
    """Lifetimes of base and new that have the summary."""
    left_out: tuple[LeftOut, ...]
    smallest_detectable: float | None
    needed_change: int | None
    """Lifetimes a side with which a change as estimated would be worse or better; None if no number is known."""
    needed_equivalence: int | None
    """Lifetimes a side with which it would be equivalent; None if no number is known."""
    reason: str

    @property
    def needed(self) -> int | None:
        """Lifetimes a side with which it would be decided; only if undecided."""
        known = [each for each in (self.needed_change, self.needed_equivalence) if each is not None]
        return min(known, default=None)

    @property
    def changed(self) -> bool:
        """Whether it is worse or better."""
        return self.verdict in (Change.WORSE, Change.BETTER)


def compare(
    base: Sequence[LifetimeSample],
    new: Sequence[LifetimeSample],
    rule: Rule,
    *,
    change_level: float | None = None,
    drift: HostDrift | None = None,
) -> Comparison:
    """Compare one summary of some calls over the lifetimes of two sides.

    Parameters
    ----------
    base, new : sequence of LifetimeSample
    rule : Rule
    change_level : float, optional
        Worse and better need an interval of this level that excludes 1, where several comparisons share the risk.
    drift : HostDrift, optional
        How functions of unchanged code changed; the interval then holds the ratio with and without it.

    Returns
    -------
    Comparison
        Equivalent: the interval lies within [1 / (1 + t), 1 + t]; this wins. Else worse or better: it lies
        wholly above or below 1. Else undecided.
    """
    fewest = FEWEST_CALLS[rule.summary]
    sides = [list(base), list(new)]
    kept = [[each for each in side if each.sample.calls >= fewest] for side in sides]
    facts = _Facts(
        (len(kept[0]), len(kept[1])),
        tuple(_too_few(each, at, fewest) for at, side in enumerate(sides) for each in side
              if each.sample.calls < fewest),
        change_level or rule.level,
    )  # fmt: skip
    if min(facts.counts) == 0:
        ratio, centres = _pooled_ratio(sides, rule.summary)
        why = f"{'base' if facts.counts[0] == 0 else 'new'} has no lifetime with {_calls(fewest)} of it"
        return facts.undecided(why, ratio, centres, needed=2)
    summary = SUMMARIES[rule.summary]
    values = [[summary(each.sample) for each in side] for side in kept]
    if any(number <= 0.0 for side in values for number in side):
        ratio, centres = _pooled_ratio(kept, rule.summary)
        why = f"its {rule.summary} is 0 in some lifetime, which has no ratio"
        return facts.undecided(why, ratio, centres)
    centre = [sum(map(math.log, side)) / len(side) for side in values]
    centres = math.exp(centre[0]), math.exp(centre[1])
    step = granularity_ns([each.sample for side in kept for each in side])
    by_host = [_by_host(side, numbers) for side, numbers in zip(kept, values, strict=True)]

    def estimated(level: float) -> RatioEstimate | None:
        found = ratio_estimate(by_host[0], by_host[1], level=level, step=step)
        if found is None or drift is None:
            return found
        keyed = [
            {(each.host, each.lifetime): number for each, number in zip(side, numbers, strict=True)}
            for side, numbers in zip(kept, values, strict=True)
        ]
        return allowing_for(drift, found, keyed[0], keyed[1], level)

    found = estimated(rule.level)
    if found is None:
        few = min(facts.counts)
        why = f"{few} lifetime{'s' if few > 1 else ''} on a side cannot distinguish a change from a restart"
        return facts.undecided(why, math.exp(centre[1] - centre[0]), centres, needed=2)
    surely = found if facts.change_level == rule.level else estimated(facts.change_level)
    shared = set(by_host[0]) & set(by_host[1])
    confounded = not shared and min(len(by_host[0]), len(by_host[1])) < 2
    verdict = Change.UNDECIDED if confounded else verdict_of(found, rule, surely)
    undecided = verdict is Change.UNDECIDED and not confounded
    needed = _needed(found, rule, facts.change_level) if undecided else (None, None)
    return Comparison(
        verdict=verdict,
        ratio=found.ratio,
        centres_ns=centres,
        estimate=found,
        lifetimes=facts.counts,
        left_out=facts.left_out,
        smallest_detectable=smallest_detectable(found.error, found.freedom, facts.change_level),
        needed_change=needed[0],
        needed_equivalence=needed[1],
        reason="base and new ran on different hosts: a change of build cannot be distinguished from one of host"
        if confounded
        else _reason(verdict, found, rule, drift),
    )


def verdict_of(found: RatioEstimate, rule: Rule, surely: RatioEstimate | None = None) -> Change:
    """Return what an interval says; ``surely`` has the interval that worse and better need, if it is another."""
    limit = 1.0 + rule.tolerance
    if 1.0 / limit <= found.low and found.high <= limit:
        return Change.EQUIVALENT
    sure = surely or found
    if min(found.low, sure.low) > 1.0:
        return Change.WORSE
    if max(found.high, sure.high) < 1.0:
        return Change.BETTER
    return Change.UNDECIDED


@dataclass(frozen=True, slots=True)
class _Facts:
    """What every answer contains."""

    counts: tuple[int, int]
    left_out: tuple[LeftOut, ...]
    change_level: float

    def undecided(
        self, why: str, ratio: float | None, centres: tuple[float | None, float | None], needed: int | None = None
    ) -> Comparison:
        """Return the answer where there is no interval."""
        return Comparison(
            verdict=Change.UNDECIDED,
            ratio=ratio,
            centres_ns=centres,
            estimate=None,
            lifetimes=self.counts,
            left_out=self.left_out,
            smallest_detectable=None,
            needed_change=needed,
            needed_equivalence=needed,
            reason=why,
        )


def _too_few(one: LifetimeSample, side: int, fewest: int) -> LeftOut:
    text = f"{_calls(one.sample.calls) if one.sample.calls else 'no call'} of it was timed, {fewest} are needed"
    return LeftOut(
        side=side,
        lifetime=one.lifetime,
        host=one.host,
        calls=one.sample.calls,
        code="too-few-calls",
        text=text if one.sample.calls < 2 else text.replace(" was ", " were "),
    )


def _pooled_ratio(
    sides: Sequence[Sequence[LifetimeSample]], name: str
) -> tuple[float | None, tuple[float | None, float | None]]:
    """Return the ratio of all calls together: a number for people where lifetimes do not give one."""
    whole = [joined([each.sample for each in side]) for side in sides]
    centres = [SUMMARIES[name](each) if each.calls else None for each in whole]
    base, new = centres
    return (new / base if base and new else None), (base, new)


def _by_host(side: Sequence[LifetimeSample], values: Sequence[float]) -> Mapping[str, list[float]]:
    found: dict[str, list[float]] = {}
    for each, value in zip(side, values, strict=True):
        found.setdefault(each.host, []).append(value)
    return found


def _needed(found: RatioEstimate, rule: Rule, change_level: float) -> tuple[int | None, int | None]:
    """Return the lifetimes a side for a change and for equivalence, more than there are; None: no number will do."""
    deviations = [0.0 if math.isnan(each) else each for each in found.deviations]
    log_ratio = math.log(found.ratio)
    numbers = (
        lifetimes_for_change(log_ratio, deviations, change_level),
        lifetimes_for_equivalence(log_ratio, deviations, rule.level, rule.tolerance),
    )
    least = min(found.lifetimes) + 1
    change, equivalence = (max(each, least) if each < MOST_LIFETIMES else None for each in numbers)
    return change, equivalence


def _reason(verdict: Change, found: RatioEstimate, rule: Rule, drift: HostDrift | None) -> str:
    share = f"{100 * abs(found.ratio - 1.0):.3g} %"
    match verdict:
        case Change.WORSE:
            return f"{share} longer, beyond random variation"
        case Change.BETTER:
            return f"{share} shorter, beyond random variation"
        case Change.EQUIVALENT:
            return f"any change is smaller than {100 * rule.tolerance:.3g} %"
    if not found.low <= 1.0 <= found.high:
        return "it is as far from 1 as one of so many comparisons is at random"
    if drift is not None and not drift.low <= 1.0 <= drift.high:
        share = f"{100 * abs(drift.ratio - 1.0):.2g} % {'longer' if drift.ratio > 1.0 else 'shorter'}"
        return f"functions of unchanged code took {share} too: the host may be the cause"
    return "the interval holds both no change and one that matters"


def _calls(number: int) -> str:
    return "a call" if number == 1 else f"{number} calls"
