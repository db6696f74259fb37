"""Sampling finds more of a function than usual: how often it is right, and how often it is wrong."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

from specmine.daemon.config.settings import SECOND
from specmine.daemon.controller.sampling.burst import Burst, with_samples
from specmine.daemon.controller.sampling.surprise import PAUSE_NS, TIMED_NS, Surprise, judged
from specmine.model.batch import Batch, HotSample

HERTZ = 100
EVERY_NS = 15 * SECOND
Rates = Callable[[int], dict[str, float]]


def found(counts: dict[str, float]) -> Batch:
    """Return so many samples of each function."""
    samples = (
        HotSample(
            function=key, samples=round(count), on_cpu_ns=0.0, off_cpu_ns=0.0, inclusive_ns=count * SECOND / HERTZ
        )
        for key, count in counts.items()
    )
    return Batch(now_ns=0, hot_samples=tuple(samples))


def bursts(rates: Rates, number: int, *, seed: int, wander: float = 0.0) -> list[tuple[int, frozenset[str]]]:
    """Return when something surprised, and what: bursts of a second each with independent samples."""
    chance, state, news = np.random.default_rng(seed), Surprise(), []
    for at in range(number):
        now_ns, means = at * EVERY_NS, rates(at)
        counts = {key: float(chance.poisson(mean * np.exp(chance.normal(0, wander)))) for key, mean in means.items()}
        burst = with_samples(Burst(), found(counts), HERTZ, SECOND)
        before = state.at(now_ns)
        state = judged(state, burst, list(means), HERTZ, now_ns)
        if state.at(now_ns) - before:
            news.append((at, state.at(now_ns) - before))
    return news


def test_a_function_with_three_times_the_samples_surprises_within_two_bursts() -> None:
    """Ten samples a burst become thirty; others go on as before."""
    late = []
    for seed in range(20):
        rates: Rates = lambda at: {"slow": 30.0 if at >= 40 else 10.0} | {f"f{i}": 5.0 for i in range(10)}  # noqa: E731
        news = [at for at, keys in bursts(rates, 45, seed=seed) if "slow" in keys and at >= 40]
        late.append(news[0] - 40 if news else 99)
    assert sum(one <= 1 for one in late) >= 18


def test_little_more_takes_longer_and_is_found() -> None:
    """Twenty samples a burst become thirty: in ten bursts nine times of ten."""
    seen = 0
    for seed in range(20):
        rates: Rates = lambda at: {"slow": 30.0 if at >= 40 else 20.0} | {f"f{i}": 5.0 for i in range(10)}  # noqa: E731
        seen += any("slow" in keys and 40 <= at < 50 for at, keys in bursts(rates, 50, seed=seed))
    assert seen >= 16


@pytest.mark.parametrize("wander", [0.0, 0.3])
def test_nothing_new_seldom_surprises(wander: float) -> None:
    """Fifty functions, 200 bursts: few of the 10,000 looks. A window each is what they cost."""
    rates: Rates = lambda at: {f"f{i}": 0.2 * 1.12**i for i in range(50)}  # noqa: E731
    assert sum(len(keys) for _, keys in bursts(rates, 200, seed=1, wander=wander)) <= 40


def test_twice_the_load_is_no_surprise() -> None:
    """All functions have twice the samples: none is more than the others."""
    rates: Rates = lambda at: {f"f{i}": (16.0 if at >= 40 else 8.0) for i in range(20)}  # noqa: E731
    assert sum(len(keys) for at, keys in bursts(rates, 60, seed=2) if at >= 40) <= 1


def test_what_surprised_is_timed_for_a_while_and_not_at_once_again() -> None:
    """The samples stay what they became: after the pause that is usual, or surprises once more."""
    rates: Rates = lambda at: {"slow": 40.0 if at >= 40 else 10.0, "other": 5.0}  # noqa: E731
    news = [at for at, keys in bursts(rates, 200, seed=3) if at >= 40 and "slow" in keys]
    assert news
    assert all((after - before) * EVERY_NS >= TIMED_NS + PAUSE_NS for before, after in pairwise(news))
    assert news[-1] < 160
