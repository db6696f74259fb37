"""Sampling finds more of a function than usual: how often it is right, and how often it is wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from specmine.daemon.config.settings import SECOND
from specmine.daemon.controller.sampling.burst import Burst, with_samples
from specmine.daemon.controller.sampling.surprise import PAUSE_NS, TIMED_NS, WINDOWS, Surprise, judged
from specmine.model.batch import Batch, HotSample

HERTZ = 100
EVERY_NS = 15 * SECOND
Rates = Callable[[int], dict[str, float]]
NOTHING: Mapping[str, float] = {}


def found(counts: dict[str, float], *, blocked: bool = False) -> Batch:
    """Return so many samples of each function, of the CPU clock or of waits."""
    samples = (
        HotSample(
            function=key,
            samples=round(count),
            cpu_samples=round(count),
            busy_samples=0 if blocked else round(count),
            on_cpu_ns=0.0,
            off_cpu_ns=0.0,
            inclusive_ns=count * SECOND / HERTZ,
        )
        for key, count in counts.items()
    )
    return Batch(now_ns=0, hot_samples=tuple(samples))


def bursts(
    rates: Rates,
    number: int,
    *,
    seed: int,
    wander: float = 0.0,
    idle: Mapping[str, float] = NOTHING,
    blocked: bool = False,
) -> list[tuple[int, frozenset[str]]]:
    """Return when something surprised, and what: bursts of a second each with independent samples."""
    chance, state, news = np.random.default_rng(seed), Surprise(), []
    for at in range(number):
        now_ns, means = at * EVERY_NS, rates(at)
        counts = {key: float(chance.poisson(mean * np.exp(chance.normal(0, wander)))) for key, mean in means.items()}
        burst = with_samples(Burst(), found(counts, blocked=blocked), HERTZ, SECOND)
        before = state.at(now_ns)
        state = judged(state, burst, list(means), now_ns, known=means, idle=idle)
        if state.at(now_ns) - before:
            news.append((at, state.at(now_ns) - before))
    return news


def test_a_function_with_three_times_the_samples_surprises_within_three_bursts() -> None:
    """Ten samples a burst become thirty; others go on as before."""
    late = []
    for seed in range(20):
        rates: Rates = lambda at: {"slow": 30.0 if at >= 40 else 10.0} | {f"f{i}": 5.0 for i in range(10)}  # noqa: E731
        news = [at for at, keys in bursts(rates, 45, seed=seed) if "slow" in keys and at >= 40]
        late.append(news[0] - 40 if news else 99)
    assert sum(one <= 1 for one in late) >= 15
    assert max(late) <= 2


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
    """All functions have twice the samples in their own code: none is more than the others."""
    rates: Rates = lambda at: {f"f{i}": (16.0 if at >= 40 else 8.0) for i in range(20)}  # noqa: E731
    assert sum(len(keys) for at, keys in bursts(rates, 60, seed=2) if at >= 40) <= 1


def test_what_surprised_is_timed_for_a_while_and_not_at_once_again() -> None:
    """The samples stay what they became: after the pause that is usual, or surprises once more."""
    rates: Rates = lambda at: {"slow": 40.0 if at >= 40 else 10.0, "other": 5.0}  # noqa: E731
    news = [at for at, keys in bursts(rates, 200, seed=3) if at >= 40 and "slow" in keys]
    assert news
    assert all((after - before) * EVERY_NS >= TIMED_NS + PAUSE_NS for before, after in pairwise(news))
    assert news[-1] < 160


def test_what_was_found_slower_and_is_over_may_surprise_again_at_once() -> None:
    """A disk that stalls now and then: the second time is not held back because there was a first."""
    means, state, news = {"sync": 10.0, "other": 5.0}, Surprise(), []
    for at in range(49):
        now_ns, slow = at * EVERY_NS, 40 <= at < 43 or at >= 46
        burst = with_samples(Burst(), found(means | {"sync": 40.0} if slow else means), HERTZ, SECOND)
        recovered = ("sync",) if at == 44 else ()
        before = state.at(now_ns)
        state = judged(state, burst, list(means), now_ns, known=means, idle={}, recovered=recovered)
        news += [at] if state.at(now_ns) - before else []
        assert at != 44 or not state.usual.evidence.any()
    assert [40 <= one <= 41 or 46 <= one <= 47 for one in news] == [True, True]
    assert PAUSE_NS > (46 - 41) * EVERY_NS


def test_twice_as_many_samples_a_second_are_no_surprise() -> None:
    """Of programs that use less CPU time bursts have more samples a second: times count, not samples."""
    chance, state = np.random.default_rng(5), Surprise()
    for at in range(60):
        hertz = 50 if at < 40 else 200
        counts = {f"f{i}": float(chance.poisson(0.1 * hertz)) for i in range(10)}
        batch = found({key: count * HERTZ / hertz for key, count in counts.items()})
        batch = replace(batch, hot_samples=tuple(_sampled(one, counts[one.function]) for one in batch.hot_samples))
        burst = with_samples(Burst(), batch, hertz, SECOND)
        state = judged(state, burst, list(counts), at * EVERY_NS, known=counts, idle={})
        assert at < 40 or not state.at(at * EVERY_NS)


def _sampled(one: HotSample, count: float) -> HotSample:
    return replace(one, samples=round(count), cpu_samples=round(count), busy_samples=round(count))


def test_where_calls_block_longer_two_bursts_surprise() -> None:
    """One alone proves little, however much it finds: a wait may last long by chance."""
    news = []
    for seed in range(10):
        rates: Rates = lambda at: {"lock": 400.0 if at >= 40 else 2.0} | {f"f{i}": 5.0 for i in range(10)}  # noqa: E731
        found_at = (at for at, keys in bursts(rates, 45, seed=seed, blocked=True) if "lock" in keys and at >= 40)
        news.append(next(found_at))
    assert sum(at == 41 for at in news) >= 7
    assert max(news) == 41


def test_time_blocked_of_what_waits_for_work_is_no_surprise() -> None:
    """The less there is to do the longer it waits."""
    rates: Rates = lambda at: {"loop": 400.0 if at >= 40 else 50.0} | {f"f{i}": 5.0 for i in range(10)}  # noqa: E731
    assert any("loop" in keys for _, keys in bursts(rates, 45, seed=4, blocked=True))
    assert not any("loop" in keys for _, keys in bursts(rates, 45, seed=4, blocked=True, idle={"loop": 0.9}))


def test_three_functions_surprise_at_once_and_others_with_the_next_burst() -> None:
    """Of a chain of callers the innermost changed by the largest factor: it comes first."""
    chain = {f"c{i}": 20.0 + 10 * i for i in range(8)}
    more = {key: mean + 40 for key, mean in chain.items()}
    rates: Rates = lambda at: (more if at >= 40 else chain) | {f"f{i}": 5.0 for i in range(30)}  # noqa: E731
    first, second = bursts(rates, 43, seed=6)[:2]
    assert (first[0], second[0]) == (40, 41)
    assert "c0" in first[1]
    assert len(first[1]) == len(second[1]) == 3


def test_what_had_its_windows_is_timed_first_no_longer() -> None:
    """What these say decides what follows."""
    state = Surprise(until_ns={"f": 30 * SECOND, "g": 30 * SECOND})
    for _ in range(WINDOWS):
        assert state.at(SECOND) == {"f", "g"}
        state = state.with_windows(["f", "other"])
    assert state.at(SECOND) == {"g"}


def test_while_a_violation_is_open_nothing_becomes_usual() -> None:
    """Else it would be known for usual before people have seen to it."""
    burst = with_samples(Burst(), found({"f": 20.0}), HERTZ, SECOND)
    state = judged(Surprise(), burst, ["f"], 0, known=["f"], idle={})
    assert judged(state, burst, ["f"], EVERY_NS, known=["f"], idle={}, disturbed=True).usual.seconds == [1.0]
