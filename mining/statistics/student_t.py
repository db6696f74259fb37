"""Tail probability and quantile of Student's t without scipy, which would take too much memory in the daemon."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

from .distributions import beta_cdf

if TYPE_CHECKING:
    from statistics import NormalDist

_LARGEST_DF = 1e7  # beyond, t and the normal agree to 7 digits


@lru_cache(maxsize=1)
def _normal() -> NormalDist:
    from statistics import NormalDist  # noqa: PLC0415  not at import: decimal and fractions come with it

    return NormalDist()


def two_sided_p(value: float, df: float) -> float:
    """Return P(|T| >= |value|)."""
    if math.isinf(value):
        return 0.0
    if df >= _LARGEST_DF:
        return 2.0 * _normal().cdf(-abs(value))
    return _beyond(value, df)


def _beyond(value: float, df: float) -> float:
    """Return P(|T| >= |value|) by the incomplete beta function of whichever argument is far from 1."""
    square = value * value
    if square < min(1.0, df):
        return 1.0 - beta_cdf(square / (df + square), 0.5, 0.5 * df)
    return min(1.0, beta_cdf(df / (df + square), 0.5 * df, 0.5))


@lru_cache(maxsize=4096)  # a daemon asks with ever new degrees of freedom, and each answer kept takes 190 bytes
def t_quantile(probability: float, df: float) -> float:
    """Return the value below which T lies with a probability in (0, 1).

    Notes
    -----
    Newton's method on log P(T > x) as a function of log x, which is nearly straight for every df.
    """
    if not 0.0 < probability < 1.0:
        raise ValueError(f"a probability lies between 0 and 1, not {probability}")
    if df <= 0.0:
        raise ValueError(f"degrees of freedom are above 0, not {df}")
    if probability == 0.5:
        return 0.0
    if probability < 0.5:
        return -t_quantile(1.0 - probability, df)
    if df >= _LARGEST_DF:
        return _normal().inv_cdf(probability)
    tail = 2.0 * (1.0 - probability)
    log_constant = math.lgamma(0.5 * (df + 1)) - math.lgamma(0.5 * df) - 0.5 * math.log(df * math.pi)
    value = max(_normal().inv_cdf(probability), 1e-6)
    for _ in range(100):
        reached = two_sided_p(value, df)
        density = 2.0 * math.exp(log_constant - 0.5 * (df + 1) * math.log1p(value * value / df))
        step = math.log(reached / tail) * reached / (value * density)
        value *= math.exp(max(-1.0, min(1.0, step)))
        if abs(step) < 1e-13:
            break
    return value


def normal_quantile(probability: float) -> float:
    """Return the value below which a standard normal lies with a probability in (0, 1)."""
    return _normal().inv_cdf(probability)
