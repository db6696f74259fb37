"""The threshold follows from the peaks of unchanged functions, and keeps the promised rate of false pages."""

from __future__ import annotations

import math

import numpy as np
import pytest

from specmine.mining.detection.threshold import FIRST, FROM, MORE, Calibration, more_evidence, with_peak, with_time

DAY = 86_400 * 10**9


def _calibrated(rate: float, a_day: int, days: int, seed: int = 1) -> Calibration:
    rng = np.random.default_rng(seed)
    known = with_time(Calibration(), 1)
    for day in range(days):
        for number in range(a_day):
            known = with_time(known, 1 + day * DAY + DAY * (number + 1) // a_day)
            known = with_peak(known, FROM + float(rng.exponential(1 / rate)))
    return known


@pytest.mark.parametrize(("rate", "a_day"), [(0.6, 30), (1.0, 2_000), (0.7, 60)])
def test_one_false_page_a_month_is_kept(rate: float, a_day: int) -> None:
    """After two weeks the true rate of peaks beyond the threshold is 0.3 to 3 a month, whatever the tail."""
    known = _calibrated(rate, a_day, 14)
    true_rate = 30 * a_day * math.exp(-rate * (known.threshold - FROM))
    assert 0.3 < true_rate < 3
    assert known.pages_a_month() == pytest.approx(1.0, rel=0.01)
    assert known.pages_a_month(known.threshold + 1) < known.pages_a_month()


def test_until_a_day_was_seen_the_threshold_is_the_simulated_one() -> None:
    """A host that starts has the threshold that simulated hosts need."""
    assert Calibration().threshold == FIRST
    assert _calibrated(0.5, 100, 1).threshold > FIRST
    assert with_peak(Calibration(), FROM) == Calibration()


def test_what_was_seen_long_ago_fades() -> None:
    """A noisy day counts for little three weeks later."""
    noisy = _calibrated(0.5, 500, 1)
    later = with_time(noisy, noisy.told_ns + 21 * DAY)
    assert later.threshold < noisy.threshold - 2
    assert later.seconds <= 7 * 86_400


def test_only_streams_that_vary_widely_need_more() -> None:
    """None up to 12.5 %, all of it from 17.5 % on; a variance below that of sampling counts as none."""
    needed = [more_evidence(spread**2) for spread in (0.0, 0.1, 0.125, 0.14, 0.16, 0.175, 0.5)]
    assert needed[:3] == [0.0, 0.0, 0.0] and needed[-2:] == [MORE, MORE]
    assert 0 < needed[3] < needed[4] < MORE
    assert more_evidence(-0.01) == 0.0
