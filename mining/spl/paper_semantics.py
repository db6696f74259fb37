"""The paper's interpretations: Welch, parametric over runs, bootstrap; two answers, and it holds unless rejected.

Bulej et al., definitions 4.5, 4.8 and 4.10 (bootstrap with a learned distribution).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specmine.mining.regression.ratio_estimate import welch_freedom
from specmine.mining.regression.sample import Sample, mean, variance
from specmine.mining.statistics.student_t import normal_quantile, t_quantile
from specmine.model.verdict import Verdict

from .data import Missing
from .query import Answer, Question, Term, unknown

Floats = NDArray[np.float64]
ROUNDS = 2_000
SEED = 20_110


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
        return unknown(f"{few} run on a side: its variance between runs is not known", lifetimes=few)
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
