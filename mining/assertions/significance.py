"""Whether a grouping of call paths explains, or only follows how paths vary.

Paths have class shares of their own, and edges enough are found for any of them. So an explanation is stated only
under three conditions: each behaviour differs from the others by more than paths of one behaviour do; the statement is
shorter than a list of the paths; and it fits nearly all calls.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from specmine.mining.statistics.gamma import log_sum_exp

from .candidate import Candidate, ObservedPaths
from .description_length import log_partitions

_LEVEL = 0.001  # probability that one law of variation passes for behaviours
_LEAST_FITTING = 0.9  # share of the calls that must lie on paths that their behaviour fits
_EXCEPTIONS = 0.1  # share of the paths that edges need not explain
_PRIOR_ODDS = 10.0  # that edges decide, not the lot, where the paths of a function plainly differ
_LISTED = 10  # paths that a person reads as a list
_NEARLY_ALL = 0.99  # share of the calls by which paths are counted


def alike(candidate: Candidate, observed: ObservedPaths) -> tuple[int, int] | None:
    """Return the two groups that differ least beyond what their paths do among themselves; None if all differ.

    Notes
    -----
    Each pair is tested (``PathVariation.p_value``). There were as many ways to split the two as edges, or as their
    paths allow, whichever is less. So many times larger is the p-value (Bonferroni).
    """
    sizes = np.bincount(candidate.variation.labels, minlength=candidate.groups)
    edges = math.log(max(observed.present.shape[1], 1))
    found: tuple[int, int] | None = None
    most = math.log(_LEVEL)
    for one in range(candidate.groups):
        for other in range(one):
            ways = min(edges, log_partitions(int(sizes[one] + sizes[other]), 2))
            log_p = _log(candidate.variation.p_value(observed.noise, (other, one))) + ways
            if log_p > most:
                found, most = (other, one), log_p
    return found


def shortcoming(candidate: Candidate, observed: ObservedPaths) -> str:
    """Return why a candidate explains nothing although its groups differ; '' if it explains."""
    ways = min(candidate.description, log_partitions(len(observed.paths), candidate.groups))
    if _log(candidate.variation.p_value(observed.noise)) + ways > math.log(_LEVEL):
        return "path-variation"
    if _number(observed.calls) > _LISTED and log_odds(candidate, observed) < 0:
        return "by-lot"
    return "poor-fit" if candidate.fitting < _LEAST_FITTING else ""


def log_odds(candidate: Candidate, observed: ObservedPaths) -> float:
    """Return the logarithm of the odds that edges decide the behaviour of the paths, not the lot.

    Notes
    -----
    By lot, the behaviour of each path must be told; by edges, only the statement. So the statement must be shorter
    than a list of the paths, as far as their calls show a behaviour at all (minimum description length: Rissanen,
    Automatica 14, 1978). A few paths may be exceptions.
    """
    prior, by_lot = observed.usual.log_prior(), candidate.variation.by_lot()
    by_edges = np.logaddexp(
        math.log(1 - _EXCEPTIONS) + candidate.variation.log_likelihoods(), math.log(_EXCEPTIONS) + by_lot
    )
    gain = log_sum_exp(prior + by_edges.sum(axis=1)) - log_sum_exp(prior + by_lot.sum(axis=1))
    return float(gain) - candidate.description + math.log(_PRIOR_ODDS)


def _number(calls: NDArray[np.int64]) -> int:
    """Return how many paths have nearly all calls."""
    reached = np.cumsum(np.sort(calls)[::-1])
    return 1 + int(np.searchsorted(reached, _NEARLY_ALL * float(calls.sum())))


def _log(p_value: float) -> float:
    return math.log(max(p_value, 1e-300))
