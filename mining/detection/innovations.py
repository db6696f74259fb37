"""The robust e-detector of changes, for many streams at once.

A stream is a sequence of window locations, such as the mean log duration. In an unchanged program it is a baseline plus
an autoregressive process of order 1 plus the sampling error of the window; some windows are disturbed, by anything. A
Kalman filter predicts each window. Per factor of change, a CUSUM adds up the log likelihood ratio of *contaminated*
predictive densities. Its exponential has mean 1 while nothing changes, so each CUSUM is the logarithm of an e-detector:
the mean time to a false alarm at the threshold h is at least exp(h) windows, if the model is right (Shin, Ramdas,
Rinaldo, *E-detectors: a nonparametric framework for sequential change detection*, NEJSDS 2024). The contamination
bounds what one window can add, so a single window never opens anything.
"""

from __future__ import annotations

import numpy as np

from .changes import STEPS, SUSPECTED, Explained, changes_after
from .disturbances import (
    DISTURBED,
    DOWN,
    FAR,
    FAR_WINDOWS,
    LASTING_SECONDS,
    LEAST_CHANCE,
    LEAST_DISTURBED,
    LEAST_FAR,
    MOST_DISTURBED,
    MOST_FAR,
    MOST_SHARE,
    UP,
    disturbed_density,
    far_density,
    first_age,
    goes_on,
    normal_density,
)
from .streams import Floats, Streams

MOST_SURPRISE = 7.0
"""A window further from its prediction, in log units, counts as this far."""
BASELINE_SECONDS = 45 * 60.0
"""The baseline follows the daily load with this time constant ..."""
SPREAD_SECONDS = 6 * 3600.0
"""... and the spread with this one."""
BOUND = 2.5
"""Residuals count as at most so many standard deviations."""
WINSORISED = 0.933
"""What the squares of standard normals, bounded at 2.5 squared, are taken to have as mean; below the true 0.978."""
GRAIN = 0.02
"""Least standard deviation of a window in log units."""
MORE_CORRELATION = 0.04
"""Added to the estimated correlation: a slow wander must not look like a change."""
MOST_CORRELATION = 0.985
NEIGHBOURS = 0.75
"""Windows so many usual intervals apart are neighbours."""
EARLY_WINDOWS = 20
"""For about so many windows the baseline is not well known ..."""
EARLY_CORRELATION = 0.1
"""... and the wander is taken to last longer."""
YOUNG_WINDOWS = 10.0
"""A stream that has seen so many windows is predicted with twice the variance, one of ten times as many with a tenth
more: its own variance is not well known."""
PRIOR_SPREAD = 0.15
"""Spread of windows that is assumed at first ..."""
PRIOR_WINDOWS = 8.0
"""... as if so many windows had shown it."""
WIDER = 1.15
"""Factor of the predictive variance, for what is estimated."""
JUMPS = 0.005
"""Share of the windows far off their prediction, by the normal law, that are put down to the wander."""


def started(places: Floats, variances: Floats, interval: Floats) -> Streams:
    """Return streams without evidence, with these baselines and variances of windows about them."""
    count = len(places)
    zeros, rows = np.zeros(count), np.zeros((count, len(STEPS)))
    return Streams(
        baseline=places.astype(np.float64),
        variance=variances.astype(np.float64),
        lagged=0.5 * variances,
        square=variances.astype(np.float64),
        last=zeros.copy(),
        gap=zeros.copy(),
        interval=interval.astype(np.float64),
        seen=zeros.copy(),
        place=zeros.copy(),
        doubt=variances.astype(np.float64),
        outlier=zeros.copy(),
        offset=zeros.copy(),
        begun=np.ones(count),
        entry=zeros.copy(),
        age=zeros.copy(),
        moved=zeros.copy(),
        disturbed=np.full(count, DISTURBED),
        far=np.full(count, FAR * DISTURBED),
        evidence=rows.copy(),
        size=rows.copy(),
        unsure=rows.copy(),
        absorbed=rows.copy(),
        windows=rows.copy(),
        total=rows.copy(),
        lately=rows.copy(),
        since=rows.copy(),
    )


def step(before: Streams, places: Floats, sampling: Floats, elapsed: Floats, began: Floats, learn: Floats) -> Streams:
    """Return the streams after one window each.

    Parameters
    ----------
    before : Streams
    places, sampling : ndarray, shape (streams,)
        Location of the window in log units, and its sampling variance.
    elapsed : ndarray, shape (streams,)
        Seconds since the window before.
    began : ndarray, shape (streams,)
        When the window began, s.
    learn : ndarray, shape (streams,)
        1, or 0 where nothing must be learned, as while a violation is open or suspected.
    """
    doubted = (before.evidence > SUSPECTED).any(axis=1)
    counts = np.where(doubted, np.minimum(1.0, elapsed / before.interval), 1.0)
    residual = places - before.baseline
    spread = np.sqrt(before.variance)
    bounded = np.clip(residual, -BOUND * spread, BOUND * spread)
    correlation = _correlation(before, sampling)
    kept = correlation ** (elapsed / before.interval)
    wander = np.maximum(before.variance - sampling, 1e-6)
    doubt = kept**2 * before.doubt + wander * (1 - kept**2)
    predicted = kept * before.place
    width = WIDER * (1 + YOUNG_WINDOWS / (before.seen + 1)) * (doubt + sampling)
    surprise = np.clip(residual - predicted, -MOST_SURPRISE, MOST_SURPRISE)
    young = before.begun * goes_on(before.entry, elapsed)
    aged = (1 - before.begun) * goes_on(before.age, elapsed)
    lasting = np.minimum(before.outlier * (young + aged), MOST_SHARE)
    begins = before.disturbed * np.minimum(1.0, elapsed / LASTING_SECONDS)
    quiet = 1 - begins * (UP + DOWN) - before.far - lasting
    far = before.far * far_density(surprise)
    new = begins * disturbed_density(surprise) + far
    old = lasting * normal_density(surprise - before.offset, 2 * width)
    heavy = new + old
    # of a window far off its prediction, the wander itself may have jumped there: then it stays
    stay = 1 - before.moved
    jump_width = WIDER * (wander * (1 - kept**2) + 2 * sampling)
    jump = before.moved * normal_density(surprise - kept * before.offset, jump_width)
    here = quiet * normal_density(surprise, width) + heavy
    usual = stay * here + jump
    outlier, moved = heavy / here, jump / usual
    is_far = stay * far / usual
    full = doubt / (doubt + sampling)
    gain = np.where(moved > 0.5, full, np.where(outlier > 0.5, 0.0, full * (1 - outlier)))
    outlier = np.where(moved > 0.5, 0.0, outlier)

    explained = Explained(quiet, heavy, stay, jump, usual, kept, gain)
    found = changes_after(before, surprise, width, began, residual, explained)

    slow = np.maximum(-np.expm1(-elapsed / BASELINE_SECONDS), counts / (before.seen + 1)) * learn
    slower = np.maximum(-np.expm1(-elapsed / SPREAD_SECONDS), counts / (before.seen + PRIOR_WINDOWS)) * learn
    slowest = np.maximum(-np.expm1(-elapsed / SPREAD_SECONDS), counts / (before.seen + FAR_WINDOWS)) * learn
    gap = before.gap + elapsed
    due = gap >= NEIGHBOURS * before.interval  # fast windows must not choose which neighbours are compared
    regular = slower * due * (1 - outlier)
    squared = np.minimum(residual**2, BOUND**2 * before.variance) / WINSORISED
    variance = before.variance + slower * (squared - before.variance)
    return Streams(
        baseline=before.baseline + slow * bounded,
        variance=np.maximum(variance, 1.02 * sampling + GRAIN**2),
        lagged=before.lagged + regular * (bounded * before.last - before.lagged),
        square=before.square + regular * (bounded**2 - before.square),
        last=np.where(due, bounded, before.last),
        gap=np.where(due, 0.0, gap),
        interval=before.interval,
        seen=before.seen + counts * learn,
        place=predicted + gain * surprise,
        doubt=doubt * (1 - gain),
        outlier=outlier,
        offset=surprise,
        begun=new / heavy,
        entry=first_age(elapsed),
        age=elapsed + (young * before.entry + aged * before.age) / np.maximum(young + aged, LEAST_CHANCE),
        moved=np.where((moved > 0.5) | (outlier <= 0.5), 0.0, moved + (1 - moved) * (1 - outlier) * JUMPS),
        disturbed=np.clip(before.disturbed + slower * (outlier - before.disturbed), LEAST_DISTURBED, MOST_DISTURBED),
        far=np.clip(before.far + slowest * (is_far - before.far), LEAST_FAR, MOST_FAR),
        **found,
    )


def _correlation(streams: Streams, sampling: Floats) -> Floats:
    """Return the correlation of the wander over the usual interval, rather too high than too low."""
    ratio = streams.lagged / np.maximum(streams.square, 1e-12)
    clean = streams.variance / np.maximum(streams.variance - sampling, 1e-6)
    more = MORE_CORRELATION + EARLY_CORRELATION * np.exp(-streams.seen / EARLY_WINDOWS)
    return np.clip(ratio * clean + more, 1e-6, MOST_CORRELATION)
