"""How a comparison of sums is decided: specmine's own way, and the three of the paper.

Bulej et al., definitions 4.5 (Welch), 4.8 (parametric over runs) and 4.10 (bootstrap with a learned
distribution). Theirs have two answers and hold unless rejected; ours has three and holds only if shown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specmine.mining.change.ratio import ratio_estimate, welch_freedom
from specmine.mining.change.sample import Sample, mean, variance
from specmine.mining.change.student import normal_quantile, t_quantile
from specmine.mining.change.verdicts import LifetimeSample
from specmine.mining.verify import Verdict

from .data import Missing

Floats = NDArray[np.float64]
ROUNDS = 2_000
SEED = 20_110


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


def specmine(question: Question) -> Answer:
    """Decide by the interval over lifetimes: holds if all of it does, violated if none, else unknown.

    Notes
    -----
    Terms of one build and host have their sum taken per lifetime, so that what they share cancels. A ratio of
    two measures, and a measure against a constant, are taken on the log scale; other sums as they are. t with
    Satterthwaite's degrees of freedom.
    """
    few = min(len(term.values) for term in question.terms)
    if few < 2:
        return _unknown(f"{few} lifetime of {_fewest(question)}: 2 are needed", lifetimes=few)
    ratio = _as_ratio(question)
    if ratio is not None:
        low, high, limit, evidence = ratio
    else:
        low, high, limit, evidence = _as_sum(question)
    return Answer(verdict=_decided(low, high, limit, question), evidence=evidence)


def welch(question: Question) -> Answer:
    """Decide by Welch's t over all calls, as if they were independent (definition 4.5)."""
    left, right = _paper_sides(question)
    parts = [_pooled(left), _pooled(right)]
    error = math.sqrt(sum(square / calls for _, square, calls in parts))
    dfs = [(square / calls, calls - 1.0) for _, square, calls in parts if square > 0 and calls > 1]
    freedom = welch_freedom(*dfs[0], *dfs[1]) if len(dfs) == 2 else (dfs[0][1] if dfs else 1.0)
    quantile = t_quantile(question.level, freedom)
    return _paper_answer(question, parts[0][0] - parts[1][0], (quantile * error, quantile * error), freedom=freedom)


def parametric(question: Question) -> Answer:
    """Decide by the normal approximation over runs (definition 4.8); runs of unequal length by their means."""
    left, right = _paper_sides(question)
    few = min((len(side.runs) for side in (left, right) if side.runs), default=0)
    if few < 2:
        return _unknown(f"{few} run on a side: its variance between runs is not known", lifetimes=few)
    error = math.sqrt(_run_variance(left) + _run_variance(right))
    limit = normal_quantile(question.level) * error
    return _paper_answer(question, _grand(left) - _grand(right), (limit, limit))


def bootstrap(question: Question) -> Answer:
    """Decide by the bootstrapped distribution of the difference of means of runs (definition 4.10)."""
    left, right = _paper_sides(question)
    rng = np.random.default_rng(SEED)
    drawn = [_bootstrapped(side, rng) for side in (left, right)]
    difference = _grand(left) - _grand(right)
    # shifted to equal means
    null = (drawn[0] - drawn[0].mean()) - (drawn[1] - drawn[1].mean())
    low, high = np.quantile(null, [1.0 - question.level, question.level])
    return _paper_answer(question, difference, (float(-low), float(high)))


INTERPRETATIONS: Mapping[str, Callable[[Question], Answer]] = {
    "specmine": specmine,
    "welch": welch,
    "parametric": parametric,
    "bootstrap": bootstrap,
}


def _decided(low: float, high: float, limit: tuple[float, float], question: Question) -> Verdict:
    """Return what an interval says; ``limit``: the largest value that <= allows, the smallest that >= does."""
    at_most = _order(low, high, limit[0])
    at_least = _order(-high, -low, -limit[1])
    match question.relation:
        case "<=" | "<":
            return at_most
        case ">=" | ">":
            return at_least
    both = {at_most, at_least}
    if both == {Verdict.HOLDS}:
        return Verdict.HOLDS
    return Verdict.VIOLATED if Verdict.VIOLATED in both else Verdict.UNKNOWN


def _order(low: float, high: float, limit: float) -> Verdict:
    if high <= limit:
        return Verdict.HOLDS
    return Verdict.VIOLATED if low > limit else Verdict.UNKNOWN


def _as_ratio(question: Question) -> tuple[float, float, tuple[float, float], dict[str, Any]] | None:
    """Return interval and limits of a ratio, None if the question is not one."""
    plus = [term for term in question.terms if term.factor > 0]
    minus = [term for term in question.terms if term.factor < 0]
    positive = all(value > 0 for term in question.terms for value in term.values)
    slack = 1.0 + question.tolerance
    if not positive:
        return None
    if len(plus) == len(minus) == 1 and question.constant == 0.0:
        limit = -minus[0].factor / plus[0].factor
        found = _ratio_of(plus[0], minus[0], question.level)
        if found is None:
            return None
        evidence, low, high = found
    elif len(question.terms) == 1 and question.terms[0].factor * question.constant < 0.0:
        (term,) = question.terms
        limit = -question.constant / term.factor
        values = np.log(np.array(term.values))
        centre, low, high = _interval(float(values.mean()), float(values.var(ddof=1)) / len(values),
                                      len(values) - 1.0, question.level)  # fmt: skip
        low, high = math.exp(low), math.exp(high)
        evidence = {"value": math.exp(centre), "interval": [low, high], "lifetimes": [len(values)]}
        if term.factor < 0.0:  # c <= f is f >= c
            limits = limit / slack, limit * slack
            return -high, -low, (-limits[0], -limits[1]), {**evidence, "limit": limit}
    else:
        return None
    return low, high, (limit * slack, limit / slack), {**evidence, "limit": limit}


def _ratio_of(first: Term, second: Term, level: float) -> tuple[dict[str, Any], float, float] | None:
    if first.source == second.source:
        pairs = _paired([first, second])
        if len(pairs) < 2:
            return None
        values = np.log(pairs[:, 0]) - np.log(pairs[:, 1])
        centre, low, high = _interval(float(values.mean()), float(values.var(ddof=1)) / len(values),
                                      len(values) - 1.0, level)  # fmt: skip
        low, high = math.exp(low), math.exp(high)
        return {"ratio": math.exp(centre), "interval": [low, high], "lifetimes": [len(values)] * 2}, low, high
    sides = [_by_host(second), _by_host(first)]
    found = ratio_estimate(sides[0], sides[1], level=level)
    if found is None:
        return None
    evidence: dict[str, Any] = {
        "ratio": found.ratio,
        "interval": [found.low, found.high],
        "lifetimes": [found.lifetimes[1], found.lifetimes[0]],
    }
    shared = sorted(set(sides[0]) & set(sides[1]))
    if len(shared) > 1:
        ratios = {host: math.exp(float(np.mean(np.log(sides[1][host])) - np.mean(np.log(sides[0][host]))))
                  for host in shared}  # fmt: skip
        # ratio of ratios: 1 means that what is said on one host is true on the others
        evidence |= {"ratio_by_host": ratios, "portability": max(ratios.values()) / min(ratios.values())}
    return evidence, found.low, found.high


def _as_sum(question: Question) -> tuple[float, float, tuple[float, float], dict[str, Any]]:
    """Return interval and limits of left - right."""
    groups: dict[str, list[Term]] = {}
    for term in question.terms:
        groups.setdefault(term.source, []).append(term)
    centre, parts = question.constant, []
    for terms in groups.values():
        values = _paired(terms) @ np.array([term.factor for term in terms])
        if len(values) < 2:
            values = np.array([np.nan, np.nan])
        centre += float(values.mean())
        parts.append((float(values.var(ddof=1)) / len(values), len(values) - 1.0))
    square, freedom = parts[0]
    for other, df in parts[1:]:
        square, freedom = square + other, welch_freedom(square, freedom, other, df)
    _, low, high = _interval(centre, square, freedom, question.level)
    right = question.right_constant + sum(
        -term.factor * float(np.mean(term.values)) for term in question.terms[question.left_terms :]
    )
    slack = question.tolerance * abs(right)
    evidence = {"difference": centre, "interval": [low, high], "limit": 0.0, "slack": slack,
                "lifetimes": [len(term.values) for term in question.terms]}  # fmt: skip
    return low, high, (slack, -slack), evidence


def _interval(centre: float, square: float, freedom: float, level: float) -> tuple[float, float, float]:
    half = t_quantile(0.5 + 0.5 * level, freedom) * math.sqrt(square) if square > 0 else 0.0
    return centre, centre - half, centre + half


def _paired(terms: Sequence[Term]) -> Floats:
    """Return one row per lifetime that all terms have, one column per term."""
    tables = [
        {(each.host, each.lifetime): value for each, value in zip(term.lifetimes, term.values, strict=True)}
        for term in terms
    ]
    shared = sorted(set.intersection(*(set(table) for table in tables)))
    return np.array([[table[key] for table in tables] for key in shared], dtype=np.float64).reshape(-1, len(terms))


def _by_host(term: Term) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for each, value in zip(term.lifetimes, term.values, strict=True):
        found.setdefault(each.host, []).append(value)
    return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Side:
    """factor * observation + shift, over runs; a constant has no runs."""

    factor: float
    shift: float
    runs: tuple[Sample, ...]


def _paper_sides(question: Question) -> tuple[_Side, _Side]:
    """Return both sides as the paper has them: one method each, transformed linearly."""
    left, right = question.terms[: question.left_terms], question.terms[question.left_terms :]
    if len(left) > 1 or len(right) > 1 or not all(term.is_mean for term in question.terms):
        raise Missing("this interpretation compares the means of two functions, or of one and a constant")
    return (
        _paper_side(left, question.constant + question.right_constant, 1.0),
        _paper_side(right, question.right_constant, -1.0),
    )


def _paper_side(terms: Sequence[Term], shift: float, sign: float) -> _Side:
    if not terms:
        return _Side(factor=0.0, shift=shift, runs=())
    return _Side(factor=sign * terms[0].factor, shift=shift, runs=tuple(each.sample for each in terms[0].lifetimes))


def _pooled(side: _Side) -> tuple[float, float, float]:
    """Return mean, variance and number of all transformed calls, in s."""
    if not side.runs:
        return side.shift, 0.0, 1.0
    calls = float(sum(run.calls for run in side.runs))
    centre = sum(run.calls * mean(run) for run in side.runs) / calls
    squares = sum((run.calls - 1) * variance(run) + run.calls * (mean(run) - centre) ** 2 for run in side.runs)
    square = squares / (calls - 1.0) if calls > 1 else 0.0
    return side.factor * centre * 1e-9 + side.shift, square * (side.factor * 1e-9) ** 2, calls


def _grand(side: _Side) -> float:
    """Return the mean of the means of runs."""
    if not side.runs:
        return side.shift
    return side.factor * float(np.mean([mean(run) for run in side.runs])) * 1e-9 + side.shift


def _run_variance(side: _Side) -> float:
    """Return the variance of the mean of means: (o R^2 + S^2) / (r o), o the mean length of runs."""
    if not side.runs:
        return 0.0
    means = np.array([mean(run) for run in side.runs])
    inside = float(np.mean([variance(run) for run in side.runs]))
    length = float(np.mean([run.calls for run in side.runs]))
    return (float(means.var(ddof=1)) + inside / length) / len(means) * (side.factor * 1e-9) ** 2


def _bootstrapped(side: _Side, rng: np.random.Generator) -> Floats:
    """Return bootstrap means of means of runs: runs drawn anew, and calls in each of them."""
    if not side.runs:
        return np.full(ROUNDS, side.shift)
    count = len(side.runs)
    table = np.stack([_run_means(run, rng) for run in side.runs])
    runs = rng.integers(count, size=(ROUNDS, count))
    draws = rng.integers(table.shape[1], size=(ROUNDS, count))
    means: Floats = table[runs, draws].mean(axis=1)
    return side.factor * 1e-9 * means + side.shift


def _run_means(run: Sample, rng: np.random.Generator, rounds: int = 400) -> Floats:
    """Return means of a run's calls drawn with replacement."""
    shares = run.counts / run.calls
    return np.asarray(rng.multinomial(run.calls, shares, size=rounds) @ run.middle / run.calls, dtype=np.float64)


def _paper_answer(question: Question, difference: float, limits: tuple[float, float], **more: float) -> Answer:
    """Hold unless rejected; ``limits``: how far the difference may lie below and above 0."""
    right = question.right_constant + sum(
        -term.factor * float(np.mean(term.values)) for term in question.terms[question.left_terms :]
    )
    slack = question.tolerance * abs(right)
    at_most, at_least = difference - slack <= limits[1], -difference - slack <= limits[0]
    holds = {"<=": at_most, "<": at_most, ">=": at_least, ">": at_least}.get(question.relation, at_most and at_least)
    evidence = {
        "difference": difference,
        "limits": [-limits[0] - slack, limits[1] + slack],
        "lifetimes": [len(term.values) for term in question.terms],
        **more,
    }
    return Answer(verdict=Verdict.HOLDS if holds else Verdict.VIOLATED, evidence=evidence)


def _unknown(reason: str, **more: Any) -> Answer:
    return Answer(verdict=Verdict.UNKNOWN, evidence={"reason": reason, **more})


def _fewest(question: Question) -> str:
    return min(question.terms, key=lambda term: len(term.values)).key
