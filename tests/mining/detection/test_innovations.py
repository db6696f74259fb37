"""The evidence is that of an e-detector: on average a factor of 1 while nothing changes, whatever was before."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from specmine.mining.detection import changes, disturbances
from specmine.mining.detection import innovations as model
from specmine.mining.detection.changes import STEPS
from specmine.mining.detection.innovations import started, step
from specmine.mining.detection.streams import Streams
from tests.support.autoregression import autoregressive

COUNT = 200_000
SAMPLING = 0.001
FRESH = 1e-9
"""Evidence so small that it counts for nothing, but windows that add none are not left out."""


def _streams(count: int, seen: float = 1e6) -> Streams:
    streams = started(np.zeros(count), np.full(count, 0.01), np.full(count, 10.0))
    streams.seen[:] = seen
    return streams


def _step(streams: Streams, places: NDArray[np.float64], elapsed: float = 10.0) -> Streams:
    count = len(places)
    return step(streams, places, np.full(count, SAMPLING), np.full(count, elapsed), np.zeros(count), np.zeros(count))


def _logistic_edge(rng: np.random.Generator, count: int) -> NDArray[np.float64]:
    """Draw from a density that is flat and falls off as a logistic function, by rejection."""
    most = disturbances.UP_MOST + 20 * disturbances.UP_EDGE
    found = rng.uniform(0, most, 8 * count)
    kept = rng.random(8 * count) < 1 / (1 + np.exp((found - disturbances.UP_MOST) / disturbances.UP_EDGE))
    return np.asarray(found[kept][:count])


def _draw(rng: np.random.Generator, count: int, disturbed: float, width: float) -> NDArray[np.float64]:
    """Draw windows from the density that the detector assumes of an unchanged stream, written down anew here."""
    kind = rng.choice(3, count, p=[disturbances.UP, disturbances.DOWN, disturbances.FAR])
    off = np.select(
        [kind == 0, kind == 1],
        [_logistic_edge(rng, count), -rng.exponential(disturbances.DOWN_SCALE, count)],
        rng.laplace(0, disturbances.FAR_SCALE, count),
    )
    return np.asarray(np.where(rng.random(count) < disturbed, off, rng.normal(0, math.sqrt(width), count)))


def test_evidence_has_mean_one_under_no_change() -> None:
    """Exp of the evidence of one window averages 1 for each factor, over windows of the assumed density.

    For what is looked for in a part of the windows it is less: how far off a window is does not count.
    """
    rng = np.random.default_rng(1)
    kept = 0.5 + model.MORE_CORRELATION  # lagged over square is 0.5; sampling is a tenth of the variance
    kept = 0.5 * 0.01 / (0.01 - SAMPLING) + model.MORE_CORRELATION
    doubt = kept**2 * 0.01 + (0.01 - SAMPLING) * (1 - kept**2)
    places = _draw(rng, COUNT, disturbances.DISTURBED, model.WIDER * (doubt + SAMPLING))
    places = np.clip(places, -model.MOST_SURPRISE, model.MOST_SURPRISE)
    streams = _streams(COUNT)
    streams.evidence[:] = FRESH
    streams.size[:], streams.unsure[:] = STEPS, changes.SLABS**2
    ratios = np.exp(_step(streams, places).evidence - FRESH)
    error = ratios.std(axis=0) / math.sqrt(COUNT)
    off = ratios.mean(axis=0) - 1
    assert np.all(off < 4 * error + 0.01)
    assert np.all(off[changes.PARTS == 1] > -4 * error[changes.PARTS == 1] - 0.01)


def test_the_filter_is_that_of_gaussian_conditioning() -> None:
    """Without disturbed windows the estimate after five windows is the conditional mean of the joint normal law."""
    rng = np.random.default_rng(2)
    streams = _streams(1)
    streams.disturbed[:] = 0.0
    kept = 0.5 * 0.01 / (0.01 - SAMPLING) + model.MORE_CORRELATION
    places = rng.normal(0, 0.05, 5)
    for place in places:
        streams.disturbed[:] = 1e-12
        streams.variance[:], streams.lagged[:], streams.square[:] = 0.01, 0.005, 0.01
        streams = _step(streams, np.array([place]))
    lags = np.abs(np.subtract.outer(np.arange(5), np.arange(5)))
    wander = (0.01 - SAMPLING) * kept**lags
    # the first state has the variance of a window, as ``started`` sets it
    wander += np.outer(kept ** np.arange(1, 6), kept ** np.arange(1, 6)) * SAMPLING
    wanted = wander[-1] @ np.linalg.solve(wander + SAMPLING * np.eye(5), places)
    assert streams.place[0] == pytest.approx(wanted, rel=1e-3)


def test_unchanged_streams_have_little_evidence() -> None:
    """Of 300 wandering streams of 3,000 windows, 2 % of them disturbed, evidence exceeds 16 less than five times."""
    rng = np.random.default_rng(3)
    count, windows = 300, 3_000
    wander = np.stack([autoregressive(rng, windows, 0.7, 0.1) for _ in range(count)], axis=1)
    streams = started(np.zeros(count), np.full(count, 0.02), np.full(count, 10.0))
    beyond = 0
    for number in range(windows):
        off = np.where(rng.random(count) < 0.02, rng.uniform(0.2, 1.6, count), 0.0)
        places = wander[number] + off + rng.normal(0, math.sqrt(SAMPLING), count)
        ones = np.ones(count)
        before = streams.evidence.max(axis=1)
        streams = step(streams, places, SAMPLING * ones, 10 * ones, 10.0 * number * ones, ones)
        if number > 300:
            beyond += int(((streams.evidence.max(axis=1) > 16) & (before <= 16)).sum())
    assert beyond < 5
    ratio = streams.lagged / streams.square
    assert np.median(ratio) == pytest.approx(0.7, abs=0.1)
    assert np.median(streams.variance) == pytest.approx(0.01 + SAMPLING, rel=0.4)
    assert np.median(streams.disturbed) == pytest.approx(0.02, abs=0.015)


def test_a_wander_that_jumps_and_fades_is_less_evidence_than_a_change() -> None:
    """Eight windows off by a factor of 2 are evidence; each alone adds at most some 8."""
    streams = _streams(1)
    gained = []
    for _ in range(8):
        before = streams.evidence.max()
        streams = _step(streams, np.array([math.log(2)]), 5.0)
        gained.append(float(streams.evidence.max() - before))
    assert 0 < max(gained) < 8
    assert streams.evidence.argmax() == int(np.argmin(np.abs(STEPS - math.log(2))))
    assert streams.evidence.max() > 15


def test_the_baseline_follows_a_slow_wave_however_often_windows_come() -> None:
    """In 45 minutes of suspicion, with windows each 5 s instead of 60, the baseline goes 63 % of the way."""
    streams = _streams(1)
    streams.interval[:] = 60.0
    one = np.ones(1)
    for number in range(round(model.BASELINE_SECONDS / 5)):
        streams.evidence[:, 0] = changes.SUSPECTED + 1
        streams = step(streams, 0.2 * one, SAMPLING * one, 5 * one, 5.0 * number * one, one)
    assert streams.baseline[0] == pytest.approx(0.2 * (1 - math.exp(-1)), rel=0.05)


def test_windows_of_a_suspicion_count_by_their_time_in_a_young_stream() -> None:
    """Twelve windows of 5 s count as one of 60: a newcomer does not take a change for its usual level."""
    streams = _streams(1, seen=9.0)
    streams.interval[:] = 60.0
    one = np.ones(1)
    for number in range(12):
        streams.evidence[:, 0] = changes.SUSPECTED + 1
        streams = step(streams, 0.2 * one, SAMPLING * one, 5 * one, 5.0 * number * one, one)
    assert streams.seen[0] == pytest.approx(10.0)
    assert 0 < streams.baseline[0] < 0.2 * 1.5 / 10
