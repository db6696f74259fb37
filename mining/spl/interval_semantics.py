"""specmine's own interpretation: intervals over lifetimes; three answers, and it holds only if that is shown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specmine.mining.regression.ratio_estimate import ratio_estimate, welch_freedom
from specmine.mining.statistics.student_t import t_quantile
from specmine.model.verdict import Verdict

from .query import Answer, Question, Term, unknown

Floats = NDArray[np.float64]


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
        return unknown(f"{few} lifetime of {_fewest(question)}: 2 are needed", lifetimes=few)
    ratio = _as_ratio(question)
    if ratio is not None:
        low, high, limit, evidence = ratio
    else:
        low, high, limit, evidence = _as_sum(question)
    return Answer(verdict=_decided(low, high, limit, question), evidence=evidence)


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
        # ratio of ratios: 1 means that the ratio of one host is that of the others
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


def _fewest(question: Question) -> str:
    return min(question.terms, key=lambda term: len(term.values)).key
