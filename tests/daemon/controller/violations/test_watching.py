"""A thread without work is in its main loop all the time: longer waits of which there are fewer cost nobody time."""

from __future__ import annotations

import numpy as np
import pytest

from specmine.daemon.config.settings import SECOND
from specmine.daemon.controller.violations.asserted import Asserted
from specmine.daemon.controller.violations.function_violations import FunctionViolations
from specmine.daemon.controller.violations.lifecycle import watched
from specmine.daemon.controller.violations.usual import Usual
from specmine.daemon.controller.violations.watching import Watching, total_variance
from specmine.model.histogram import Histogram
from specmine.model.observation import Kind, Observation


def after_a_change(
    idle_share: float, longer: float, rarer: float, *, calls_a_window: int = 1000, spread: float = 0.2, seed: int = 3
) -> FunctionViolations:
    """Return what is known of a function whose calls take 8 ms, and from half of the time on change."""
    rng, held, violations = np.random.default_rng(seed), list[Observation](), FunctionViolations()
    for at in range(60):
        changed = at >= 30
        calls = round(calls_a_window / (rarer if changed else 1.0) * rng.uniform(0.97, 1.03))
        durations = 8e6 * (longer if changed else 1.0) * rng.lognormal(0, spread, min(calls, 400))
        window = Observation(
            function="f", lifetime="l", kind=Kind.TIME, start_ns=10 * at * SECOND, end_ns=10 * (at + 1) * SECOND,
            histogram=Histogram.from_durations(durations.astype(np.int64)), calls=calls, watched_ns=10 * SECOND,
        )  # fmt: skip
        held.append(window)
        around = Watching(
            function="f", build_id="b", asserted=Asserted(), idle_share=idle_share, newest=tuple(held[-40:])
        )
        violations = watched(violations, window, around)
    return violations


@pytest.mark.parametrize(("longer", "rarer"), [(4.0, 4.0), (4.0, 3.7), (0.5, 0.5)])
def test_another_load_of_what_mostly_waits_for_work_is_no_news(longer: float, rarer: float) -> None:
    """No violation, and no time is lost; of a function that works the same is slower, or faster."""
    idle = after_a_change(0.9, longer, rarer)
    assert idle.all == () and idle.lost.total_ns == 0
    works = after_a_change(0.1, longer, rarer)
    assert len(works.open) == 1
    assert (works.lost.total_ns > 0) == (longer > 1)


def test_how_far_totals_vary_is_that_of_drawn_ones() -> None:
    """Of two thousand windows with some 300 calls each, as the totals of the draws themselves vary."""
    rng = np.random.default_rng(1)
    windows = [1e6 * rng.lognormal(0, 1.0, rng.poisson(300)) for _ in range(2000)]
    totals = np.array([each.sum() for each in windows])
    mean = np.mean(
        [total_variance(Usual(calls=len(each), histogram=Histogram.from_durations(each))) for each in windows[:400]]
    )
    assert mean == pytest.approx(totals.var() / totals.mean() ** 2, rel=0.15)


@pytest.mark.parametrize("seed", [3, 8])
def test_how_much_time_few_calls_take_in_a_second_is_known_roughly(seed: int) -> None:
    """Windows of a hundred waits, most short and some long: by the luck of the draw some have half as much again."""
    assert after_a_change(1.0, 5.0, 5.0, calls_a_window=550, spread=1.3, seed=seed).all == ()
    assert len(after_a_change(1.0, 5.0, 1.0, calls_a_window=550, spread=1.3, seed=seed).open) == 1


def test_what_waits_longer_at_the_same_rate_is_slower_however_much_it_waits() -> None:
    """An answer that comes late costs its caller time."""
    assert len(after_a_change(0.9, 4.0, 1.0).open) == 1
    assert len(after_a_change(0.9, 4.0, 2.0).open) == 1
