"""What a comparison asks of lifetimes, and what is answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from specmine.mining.regression.comparison import LifetimeSample
from specmine.model.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Term:
    """A multiple of a measure with its lifetimes."""

    factor: float
    key: str
    """Text of the measure."""
    source: str
    """Build and host that the lifetimes are of: terms of one source share their lifetimes."""
    lifetimes: tuple[LifetimeSample, ...]
    values: tuple[float, ...]
    """The measure of each lifetime, in s, or a share, or a rate."""
    is_mean: bool = False
    """True if the measure is a mean of durations, the only one that the paper knows."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Question:
    """left - right + constant against 0."""

    terms: tuple[Term, ...]
    """Those of the right side with the opposite sign."""
    constant: float
    relation: str
    """<=, <, >=, > or =."""
    tolerance: float
    level: float
    left_terms: int
    """How many of the terms are the left side's."""
    right_constant: float
    """Of the constant, what stands on the right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A verdict and what it rests on."""

    verdict: Verdict
    evidence: Mapping[str, Any] = field(default_factory=dict)


def unknown(reason: str, **more: Any) -> Answer:
    """Return the answer where there is too little to decide."""
    return Answer(verdict=Verdict.UNKNOWN, evidence={"reason": reason, **more})
