"""How the calls of one lifetime depend on each other, and whether the lifetime only shifts their durations."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .impact_factor import autocorrelation, impact_factor, is_dependent
from .sample import TRIMMED_SHARE

LAGS = 10
FEWEST_IN_A_ROW = 50
FEWEST_SAMPLED = 30
FEWEST_LIFETIMES = 5
"""Fewer draw three calls at a time or less: two of one class of durations make any shift look large."""
_ROUNDS = 2_000

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Within:
    """What single calls of several lifetimes of one build say."""

    ordered: int
    """Lifetimes with enough calls in a row."""
    dependent: int
    """Those of them in which a call's duration depends on one of the ``LAGS`` calls before it."""
    autocorrelation: tuple[float, ...]
    """Of the ranks at lags 1 .. ``LAGS``, of each the median over lifetimes; empty if there are none."""
    sampled: int
    """Lifetimes with a sample large enough."""
    impact: float | None
    """Spread over lifetimes to the spread inside one (``impact_factor``); None with too few lifetimes."""
    centred: float | None
    """The same once each lifetime's trimmed mean is taken off."""


def within_of(in_a_row: Sequence[Floats], samples: Sequence[Floats]) -> Within:
    """Judge single calls of lifetimes of one build.

    Parameters
    ----------
    in_a_row : sequence of array
        Per lifetime durations of calls in a row, in their order.
    samples : sequence of array
        Per lifetime a fair sample of its durations, in any order.

    Returns
    -------
    Within
        The same whenever the input is: chance is drawn from its hash.

    Notes
    -----
    A call that was preempted takes a hundred times as long as its like. One such call hides any autocorrelation of
    durations, so their ranks are taken; and it moves a mean by more than lifetimes do, so the trimmed mean.
    """
    ordered = [_ranks(each) for each in in_a_row if len(each) >= FEWEST_IN_A_ROW]
    lags = [autocorrelation(each, LAGS) for each in ordered]
    enough = [each for each in samples if len(each) >= FEWEST_SAMPLED]
    impact = inner = None
    if len(enough) >= FEWEST_LIFETIMES:
        seed = zlib.crc32(b"".join(np.ascontiguousarray(each).tobytes() for each in enough))
        rng = np.random.default_rng(seed)
        impact = impact_factor(enough, rng, _ROUNDS)
        inner = impact_factor([each - _trimmed_mean(each) for each in enough], rng, _ROUNDS)
    return Within(
        ordered=len(ordered),
        dependent=sum(is_dependent(each, LAGS) for each in ordered),
        autocorrelation=tuple(np.median(lags, axis=0).tolist()) if lags else (),
        sampled=len(enough),
        impact=impact,
        centred=inner,
    )


def _ranks(values: Floats) -> Floats:
    """Return ranks, equal values their mean rank."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - 0.5 * counts)[place], dtype=np.float64)


def _trimmed_mean(values: Floats) -> float:
    cut = int(TRIMMED_SHARE * len(values))
    return float(np.sort(values)[cut : len(values) - cut].mean())
