"""The robust e-detector of changes, for many streams at once.

A stream is a sequence of window locations, such as the mean log duration. In an unchanged program it is a baseline plus
an autoregressive process of order 1 plus the sampling error of the window; some windows are disturbed, by anything. A
Kalman filter predicts each window. Per factor of change, a CUSUM adds up the log likelihood ratio of *contaminated*
predictive densities. Its exponential has mean 1 while nothing changes, so each CUSUM is the logarithm of an e-detector:
the mean time to a false alarm at the threshold h is at least exp(h) windows, if the model is right (Shin, Ramdas,
Rinaldo, *E-detectors: a nonparametric framework for sequential change detection*, NEJSDS 2024). The contamination
bounds what one window can add, so a single window never opens anything.

A lock that is held now and then pauses some calls in some of the windows: the others are as usual. So some factors are
looked for in a part of the windows only. That many windows of a stream are far off is known only from its past, so
such a window counts as one of a usual share of them against one of the larger share.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SLOWER = {1.35: 0.12, 1.7: 0.15, 2.3: 0.2, 3.5: 0.25, 6.0: 0.35, 15.0: 0.6, 80.0: 1.2}
FASTER = {1.35: 0.12, 1.7: 0.15, 2.3: 0.2, 4.0: 0.35, 15.0: 0.9}
"""Factors of change that are looked for at first, each with a spread in log units, so that those in between are found
too. The windows since then tell the factor better and better."""
PAUSED, PAUSED_PART = {6.0: 0.35, 15.0: 0.6, 80.0: 1.2}, 0.25
"""Those that are also looked for in this share of the windows, where the others stay as they are."""
STEPS = np.log(np.array([*SLOWER, *(1 / factor for factor in FASTER), *PAUSED]))
SLABS = np.array([*SLOWER.values(), *FASTER.values(), *PAUSED.values()])
PARTS = np.repeat([1.0, PAUSED_PART], [len(SLOWER) + len(FASTER), len(PAUSED)])
LEAST_STEP = 0.2
"""Changes smaller than this, in log units, are not looked for."""
LEAST_SLAB = 0.03
"""The factor stays unsure by this, in log units, however many windows it is known from."""
FADED, FADED_PART, FADED_WINDOWS = 0.1, 0.3, 8.0
"""A change is over if its newest windows, about so many, are off by less than this on average, in log units, or by less
than this part of it. Else the filter would take it for granted that they came back by chance."""
SUSPECTED = 3.0
"""Evidence from which windows come fast, and teach by their time. Else they would soon outweigh all others: a function
that was learned from few windows would take the change for its usual spread."""
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
DISTURBED = 0.04
"""Share of disturbed windows assumed until a stream's own is known."""
LEAST_DISTURBED, MOST_DISTURBED, MOST_SHARE = 0.003, 0.1, 0.75
LASTING_SECONDS = 10.0
"""A disturbance lasts at most so long, ..."""
LONG_SECONDS, LONG = 30.0, 0.002
"""... but this share of them about three times as long."""
JUMPS = 0.005
"""Share of the windows far off their prediction, by the normal law, that are put down to the wander."""
LEAST_CHANCE = 1e-300
"""After a pause of hours no disturbance goes on: its age does not matter then, but must stay a number."""
UP, UP_MOST, UP_EDGE = 0.8, 1.7, 0.2
"""Most disturbances make calls slower: by any factor up to exp(1.7) equally likely, in log units ..."""
DOWN, DOWN_SCALE = 0.15, 0.4
"""... some make them faster ..."""
FAR, FAR_SCALE = 0.05, 3.0
"""... and some are far off, either way, until the share of such windows of a stream is known: ..."""
FAR_WINDOWS = 100.0
"""... that counts as if so many windows had shown it. ..."""
LEAST_FAR, MOST_FAR = 5e-4, 0.1
"""... It is at least this, and at most that."""


@dataclass(slots=True)
class Streams:
    """The state of streams; each array has one entry or row a stream. Owned by whoever calls ``step``."""

    baseline: Floats
    variance: Floats
    """Of a window about the baseline, sampling included."""
    lagged: Floats
    """Mean product of neighbouring residuals, bounded ..."""
    square: Floats
    """... and their mean square."""
    last: Floats
    """The residual that the next is compared with, bounded ..."""
    gap: Floats
    """... and the seconds since then."""
    interval: Floats
    """Usual seconds between windows."""
    seen: Floats
    """Windows that something was learned from."""
    place: Floats
    """The filter's estimate of the wander about the baseline ..."""
    doubt: Floats
    """... and its variance."""
    outlier: Floats
    """Probability that the last window was disturbed ..."""
    offset: Floats
    """... by how much ..."""
    begun: Floats
    """... with which probability by something that began with this window ..."""
    entry: Floats
    """... and had lasted for so many seconds ..."""
    age: Floats
    """... and for how many seconds if it is what disturbed the window before."""
    moved: Floats
    """Probability that it was not disturbed, and that the wander jumped."""
    disturbed: Floats
    """Share of disturbed windows."""
    far: Floats
    """Share of windows that are far off."""
    evidence: Floats
    """The CUSUM of each factor, shape (streams, factors)."""
    size: Floats
    """How large such a change is, by the windows since it began, in log units ..."""
    unsure: Floats
    """... and the variance of that."""
    absorbed: Floats
    """How much of the change the filter has taken into its estimate."""
    windows: Floats
    """Windows since the CUSUM was last 0."""
    total: Floats
    """Sum of their residuals ..."""
    lately: Floats
    """... and the mean of the newest."""
    since: Floats
    """When the first of them began, s."""

    def take(self, rows: NDArray[np.intp]) -> Streams:
        """Return some streams, copied."""
        return Streams(*(getattr(self, field.name)[rows] for field in fields(Streams)))

    def put(self, rows: NDArray[np.intp], other: Streams) -> None:
        """Replace some streams."""
        for field in fields(Streams):
            getattr(self, field.name)[rows] = getattr(other, field.name)


_OF_CHANGES = ("evidence", "size", "unsure", "absorbed", "windows", "total", "lately", "since")


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
    young = before.begun * _goes_on(before.entry, elapsed)
    aged = (1 - before.begun) * _goes_on(before.age, elapsed)
    lasting = np.minimum(before.outlier * (young + aged), MOST_SHARE)
    begins = before.disturbed * np.minimum(1.0, elapsed / LASTING_SECONDS)
    quiet = 1 - begins * (UP + DOWN) - before.far - lasting
    far = before.far * np.exp(-np.abs(surprise) / FAR_SCALE) / (2 * FAR_SCALE)
    new = begins * _disturbed(surprise) + far
    old = lasting * _normal(surprise - before.offset, 2 * width)
    heavy = new + old
    # of a window far off its prediction, the wander itself may have jumped there: then it stays
    stay = 1 - before.moved
    jump_width = WIDER * (wander * (1 - kept**2) + 2 * sampling)
    jump = before.moved * _normal(surprise - kept * before.offset, jump_width)
    here = quiet * _normal(surprise, width) + heavy
    usual = stay * here + jump
    outlier, moved = heavy / here, jump / usual
    is_far = stay * far / usual
    full = doubt / (doubt + sampling)
    gain = np.where(moved > 0.5, full, np.where(outlier > 0.5, 0.0, full * (1 - outlier)))
    outlier = np.where(moved > 0.5, 0.0, outlier)

    found = _changes(before, surprise, width, began, residual, _Explained(quiet, heavy, stay, jump, usual, kept, gain))

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
        entry=_first_age(elapsed),
        age=elapsed + (young * before.entry + aged * before.age) / np.maximum(young + aged, LEAST_CHANCE),
        moved=np.where((moved > 0.5) | (outlier <= 0.5), 0.0, moved + (1 - moved) * (1 - outlier) * JUMPS),
        disturbed=np.clip(before.disturbed + slower * (outlier - before.disturbed), LEAST_DISTURBED, MOST_DISTURBED),
        far=np.clip(before.far + slowest * (is_far - before.far), LEAST_FAR, MOST_FAR),
        **found,
    )


@dataclass(frozen=True, slots=True)
class _Explained:
    """What an unchanged program says of a window: the densities of its parts, and what the filter takes over."""

    quiet: Floats
    heavy: Floats
    stay: Floats
    jump: Floats
    usual: Floats
    kept: Floats
    gain: Floats

    def take(self, rows: NDArray[np.intp]) -> tuple[Floats, ...]:
        """Return columns of some streams."""
        return tuple(getattr(self, field.name)[rows, None] for field in fields(_Explained))


def _changes(
    before: Streams, surprise: Floats, width: Floats, began: Floats, residual: Floats, explained: _Explained
) -> dict[str, Floats]:
    """Return the evidence of each change after a window, and what is known of the change.

    If the program changed by d, the filter's surprise is d times what the filter has not absorbed yet, plus the usual
    noise: a regression, whose coefficient d is estimated on line (Willsky and Jones, *A generalized likelihood ratio
    approach to the detection and estimation of jumps in linear systems*, IEEE TAC 21, 1976). Each window is predicted
    from the windows before it, so the evidence remains that of an e-detector.
    """
    found = {name: np.zeros_like(before.evidence) for name in _OF_CHANGES}
    # a window without evidence before it adds some only if it is off by more than the least slab
    off = surprise**2 > width * np.log1p(SLABS.min() ** 2 / width)
    rows = np.flatnonzero(off | (before.evidence > 0).any(axis=1))
    if not len(rows):
        return found
    evidence = before.evidence[rows]
    fresh = evidence <= 0
    quiet, heavy, stay, jump, usual, kept, gain = explained.take(rows)
    size = np.where(fresh, STEPS, before.size[rows])
    unsure = np.where(fresh, SLABS**2, before.unsure[rows])
    absorbed = np.where(fresh, 0.0, before.absorbed[rows])
    left = 1 - kept * absorbed
    apart = surprise[rows, None] - size * left
    spread = width[rows, None] + unsure * left**2
    there = quiet * _normal(apart, spread)
    changed = PARTS * (stay * (there + heavy) + jump) + (1 - PARTS) * usual
    told = PARTS * stay * there / changed * unsure * left / spread
    size = size + told * apart
    windows = np.where(fresh, 0.0, before.windows[rows]) + 1
    total = np.where(fresh, 0.0, before.total[rows]) + residual[rows, None]
    newest = 1 / np.minimum(windows, FADED_WINDOWS)
    lately = np.where(fresh, 0.0, before.lately[rows])
    lately = lately + newest * (residual[rows, None] - lately)
    least = np.maximum(FADED, FADED_PART * PARTS * np.abs(size))
    over = (windows >= FADED_WINDOWS) & (np.sign(STEPS) * lately < least)
    # how far off such a window is says nothing of how many are
    more = np.minimum(np.log(changed / usual), np.where(PARTS < 1, np.log(PARTS / before.far[rows, None]), np.inf))
    found["evidence"][rows] = np.where(over, 0.0, np.where(fresh, 0.0, evidence) + more)
    found["size"][rows] = np.where(STEPS > 0, np.maximum(size, LEAST_STEP), np.minimum(size, -LEAST_STEP))
    found["unsure"][rows] = np.maximum(unsure * (1 - told * left), LEAST_SLAB**2)
    found["absorbed"][rows] = np.where(PARTS < 1, 0.0, kept * absorbed + gain * left)
    found["windows"][rows] = windows
    found["total"][rows] = total
    found["lately"][rows] = lately
    found["since"][rows] = np.where(fresh, began[rows, None], before.since[rows])
    return found


def _correlation(streams: Streams, sampling: Floats) -> Floats:
    """Return the correlation of the wander over the usual interval, rather too high than too low."""
    ratio = streams.lagged / np.maximum(streams.square, 1e-12)
    clean = streams.variance / np.maximum(streams.variance - sampling, 1e-6)
    more = MORE_CORRELATION + EARLY_CORRELATION * np.exp(-streams.seen / EARLY_WINDOWS)
    return np.clip(ratio * clean + more, 1e-6, MOST_CORRELATION)


def _goes_on(age: Floats, elapsed: Floats) -> Floats:
    """Return the probability that a disturbance of this age still lasts after so many seconds more.

    Most last for half of ``LASTING_SECONDS`` at least, and for all of it at most, any time in between equally likely.
    """
    still = np.minimum(1.0, np.maximum(0.0, LASTING_SECONDS - age - elapsed) / (0.5 * LASTING_SECONDS))
    before = np.minimum(1.0, np.maximum(1e-3, LASTING_SECONDS - age) / (0.5 * LASTING_SECONDS))
    return np.asarray((1 - LONG) * np.minimum(1.0, still / before) + LONG * np.exp(-elapsed / LONG_SECONDS))


def _first_age(elapsed: Floats) -> Floats:
    """Return how long a disturbance has lasted by the window that shows it first; more if windows are far apart."""
    return np.asarray(np.minimum(0.5 * np.maximum(elapsed - 0.5 * LASTING_SECONDS, 0.0), 0.25 * LASTING_SECONDS))


def _disturbed(surprise: Floats) -> Floats:
    """Return the density of windows that are newly disturbed, but not far off."""
    distance = np.abs(surprise)
    up = UP / UP_MOST / (1 + np.exp(np.minimum((distance - UP_MOST) / UP_EDGE, 50.0)))
    down = DOWN / DOWN_SCALE * np.exp(-distance / DOWN_SCALE)
    return np.asarray(np.where(surprise > 0, up, down))


def _normal(distance: Floats, variance: Floats) -> Floats:
    return np.asarray(np.exp(-0.5 * distance**2 / variance) / np.sqrt(2 * np.pi * variance))
