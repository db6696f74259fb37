"""Tail probabilities of F and chi-squared without scipy, which takes 140 MB on disk and too much memory.

Both are the regularised incomplete beta or gamma function. They are evaluated by the continued fractions of
Abramowitz and Stegun 26.5.8 and 6.5.31 (modified Lentz) and the power series 6.5.29.
"""

from __future__ import annotations

import math
from functools import lru_cache

_TINY = 1e-300
_PRECISION = 1e-15
_STEPS = 10_000


def beta_cdf(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b) for a, b > 0 and x in [0, 1]."""
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    if x > (a + 1) / (a + b + 2):
        return 1.0 - beta_cdf(1.0 - x, b, a)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    c, d = 1.0, 1.0 / _away_from_zero(1.0 - (a + b) * x / (a + 1))
    fraction = d
    for m in range(1, _STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1.0 / _away_from_zero(1.0 + term * d)
            c = _away_from_zero(1.0 + term / c)
            fraction *= c * d
        if abs(c * d - 1.0) < _PRECISION:
            break
    return min(front * fraction / a, 1.0)


def chi2_sf(value: float, df: float) -> float:
    """Return P(X > value) for chi-squared X with df > 0 degrees of freedom."""
    a, x = 0.5 * df, 0.5 * value
    if x <= 0.0:
        return 1.0
    front = math.exp(a * math.log(x) - x - math.lgamma(a))
    if x < a + 1:
        term = total = 1.0 / a
        n = a
        while term > total * _PRECISION:
            n += 1.0
            term *= x / n
            total += term
        return max(1.0 - front * total, 0.0)
    b = x + 1.0 - a
    c, d = 1.0 / _TINY, 1.0 / _away_from_zero(b)
    fraction = d
    for m in range(1, _STEPS):
        b += 2.0
        d = 1.0 / _away_from_zero(-m * (m - a) * d + b)
        c = _away_from_zero(b - m * (m - a) / c)
        fraction *= c * d
        if abs(c * d - 1.0) < _PRECISION:
            break
    return front * fraction


def f_sf(value: float, df1: float, df2: float) -> float:
    """Return P(X > value) for F-distributed X; df2 may be math.inf."""
    if value <= 0.0:
        return 1.0
    if math.isinf(df2):
        return chi2_sf(value * df1, df1)
    return beta_cdf(df2 / (df2 + df1 * value), 0.5 * df2, 0.5 * df1)


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


@lru_cache(maxsize=8192)
def f_quantile(probability: float, first: int, second: int) -> float:
    """Return a quantile of the F distribution, by bisection of the beta variable x = d1 F / (d1 F + d2)."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if beta_cdf(middle, 0.5 * first, 0.5 * second) < probability else (low, middle)
    place = 0.5 * (low + high)
    return second * place / (first * (1.0 - place))
