"""The verdict: from what is known of a difference, and from what matters, to holds, violated or unknown.

The daemon, ``check`` and the metrics ask these functions and no others. *Holds* is said only if the interval of the
difference lies within what does not matter: then a change that matters would have been seen (equivalence: Schuirmann,
Journal of Pharmacokinetics and Biopharmaceutics 15, 1987). *Violated* is said only if it lies wholly beyond what is
usual, and beyond what does not matter. Everything else is unknown.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from specmine.mining.statistics.class_shares import Dispersion, agreement
from specmine.mining.statistics.student_t import normal_quantile, t_quantile
from specmine.model.level import Level, Quantile
from specmine.model.verdict import Verdict

from .estimate import COVERED, places_of
from .variation import variation
from .window import Window

MARGIN = 0.25
"""Relative change of a level that does not matter."""
CONFIDENCE = 0.95
"""Of the intervals of factors."""
PRIOR_WINDOWS = 4.0
"""How many observed windows the asserted range is worth as evidence of how far windows vary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """Observed over expected, with its interval."""

    value: float
    low: float
    high: float


def verdict_of(factor: Factor, usual: tuple[float, float] | None, *, margin: float = MARGIN) -> Verdict:
    """Return the verdict on a level.

    Parameters
    ----------
    factor : Factor
        Observed over expected.
    usual : (float, float), optional
        Where this factor stays in an unchanged program; None: not known, then nothing is violated.
    margin : float
        A change by less than the factor 1 + ``margin``, either way, does not matter.
    """
    least, most = 1 / (1 + margin), 1 + margin
    if least <= factor.low and factor.high <= most:
        return Verdict.HOLDS
    if usual is None:
        return Verdict.UNKNOWN
    if factor.low > max(most, usual[1]) or factor.high < min(least, usual[0]):
        return Verdict.VIOLATED
    return Verdict.UNKNOWN


def usual_factors(expected: Quantile) -> tuple[float, float] | None:
    """Return between which factors windows of an unchanged program stay; None if the level has no range."""
    if expected.low_ns is None or expected.high_ns is None or expected.ns <= 0:
        return None
    return expected.low_ns / expected.ns, expected.high_ns / expected.ns


def factor_of(level: Level, windows: Sequence[Window], name: str) -> Factor | None:
    """Return by which factor the windows observed differ from a level.

    Parameters
    ----------
    level : Level
        What is expected.
    windows : sequence of Window
        Observed later, in the order of time within each lifetime.
    name : str
        Which quantile: p50, p90 or p99.

    Returns
    -------
    Factor or None
        None without a call, or if nothing is expected. The variance between windows is pooled with that of the
        asserted range. So a single window has an interval too.
    """
    windows = [one for one in windows if one.histogram.total]
    expected = level.quantile(name)
    if not windows or expected is None or expected.ns <= 0:
        return None
    places = places_of(windows, name)
    seen = variation(places.values, places.sampling, places.lifetimes, lifetime_sd=0.0)
    usual = usual_factors(expected)
    prior = 0.0
    if usual is not None:
        width = math.log(usual[1] / max(usual[0], 1e-9))
        quantile = t_quantile(0.5 + COVERED / 2, max(1, level.windows - 1))
        prior = max(0.0, (0.5 * width / quantile) ** 2 - seen.sampling_variance)
    freedom = max(0.0, seen.independent - 1)
    window = (PRIOR_WINDOWS * prior + freedom * seen.window_variance) / (PRIOR_WINDOWS + freedom)
    error = window / seen.independent + seen.sampling_variance / seen.windows
    error += seen.lifetime_variance / seen.lifetimes
    half = t_quantile(0.5 + CONFIDENCE / 2, PRIOR_WINDOWS + freedom) * math.sqrt(error)
    uncertainty = max(one.uncertainty_ns for one in windows) / expected.ns
    middle = seen.mean - math.log(expected.ns)
    return Factor(
        value=math.exp(middle),
        low=max(0.0, math.exp(middle - half) - uncertainty),
        high=math.exp(middle + half) + uncertainty,
    )


def level_verdict(
    level: Level, windows: Sequence[Window], name: str, *, margin: float = MARGIN
) -> tuple[Verdict, Factor | None]:
    """Return the verdict on one quantile of a level, and the factor that it rests on."""
    factor, expected = factor_of(level, windows, name), level.quantile(name)
    if factor is None or expected is None:
        return Verdict.UNKNOWN, None
    return verdict_of(factor, usual_factors(expected), margin=margin), factor


def shares_verdict(
    expected: Sequence[int], observed: Sequence[int], noise: Dispersion, *, level: float, margin: float
) -> Verdict:
    """Return the verdict on class shares.

    Parameters
    ----------
    expected, observed : sequence of int
        Calls per class, as learned and as observed.
    noise : Dispersion
        Between windows.
    level : float
        False positive rate of *violated*.
    margin : float
        A difference of a share by less does not matter.

    Returns
    -------
    Verdict
        Violated: the shares differ significantly, and one by at least ``margin``. Holds: the interval of each
        difference, in units of the dispersion, lies within the margin. Else unknown.
    """
    before, now = np.asarray(expected, dtype=np.float64), np.asarray(observed, dtype=np.float64)
    if not before.sum() or not now.sum():
        return Verdict.UNKNOWN
    if len(before) < 2:
        return Verdict.HOLDS
    difference = np.abs(now / now.sum() - before / before.sum())
    if agreement(expected, observed, noise) < level and difference.max() >= margin:
        return Verdict.VIOLATED
    # shares by the rule of Agresti and Coull, so that a class without a call has an error too
    errors = sum(
        (row + 2) / (row.sum() + 4) * (1 - (row + 2) / (row.sum() + 4)) / (row.sum() + 4) for row in (before, now)
    )
    quantile = normal_quantile(0.975) if math.isinf(noise.freedom) else t_quantile(0.975, noise.freedom)
    half = quantile * np.sqrt(noise.factor * np.minimum(errors, 1.0))
    return Verdict.HOLDS if float((difference + half).max()) <= margin else Verdict.UNKNOWN
