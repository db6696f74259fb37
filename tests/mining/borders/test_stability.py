"""Stable borders and the chain: found in what repeats, ended by what changes."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import ArrayLike

from specmine.mining.borders.detection import borders
from specmine.mining.borders.stability import chain
from specmine.mining.settings import MiningSettings
from specmine.model.histogram import Histogram
from specmine.model.observation import Kind, Observation

S = MiningSettings()
SECOND = 1_000_000_000


def observation(index: int, durations: ArrayLike) -> Observation:
    """Return the observation of the ten seconds number ``index``."""
    counts = Histogram.from_durations(durations)
    return Observation(
        function="f",
        lifetime="l",
        kind=Kind.TIME,
        start_ns=index * 10 * SECOND,
        end_ns=(index + 1) * 10 * SECOND,
        histogram=counts,
        calls=counts.total,
        watched_ns=10 * SECOND,
    )


def two_classes(rng: np.random.Generator, index: int, upper: float, calls: int = 1_000) -> Observation:
    """Return an observation of two classes far apart, the upper with this share."""
    slow = rng.random(calls) < upper
    return observation(index, rng.lognormal(np.log(2e4), 0.2, calls) * np.where(slow, 8.0, 1.0))


def one_class(rng: np.random.Generator, index: int, calls: int = 1_000) -> Observation:
    """Return an observation of a single class."""
    return observation(index, rng.lognormal(np.log(2e4), 0.5, calls))


def test_a_border_that_repeats_is_stable() -> None:
    """Two classes all along: one stable border, a chain over everything, its times those of the observations."""
    rng = np.random.default_rng(1)
    history = [two_classes(rng, i, 0.3) for i in range(14)]
    got = chain(history, settings=S)
    (border,) = got.borders
    assert border.cdf == pytest.approx(0.7, abs=0.03)
    assert (border.found, border.of) == (10, 10)
    assert 3e4 < border.duration_ns < 1.2e5
    assert (got.observations, got.stable, got.ended_by) == (14, True, "")
    assert (got.start_ns, got.end_ns) == (0, 140 * SECOND)
    assert got.calls == 14_000


def test_a_single_class_is_stable_without_a_border() -> None:
    """In 99 of 100 histories nothing is found, and the chain holds."""
    rng = np.random.default_rng(2)
    found = [chain([one_class(rng, i) for i in range(10)], settings=S) for _ in range(60)]
    assert sum(bool(got.borders) for got in found) <= 2
    assert sum(got.stable for got in found) >= 58


def test_too_few_observations_are_no_chain() -> None:
    """Four observations of two classes tell nothing yet; those of under 200 calls are passed over."""
    rng = np.random.default_rng(3)
    four = [two_classes(rng, i, 0.3) for i in range(4)]
    assert not chain(four, settings=S).stable
    assert chain(four, settings=S).borders == ()
    small = [two_classes(rng, 4 + i, 0.3, calls=150) for i in range(5)]
    assert chain([*four, *small], settings=S) == chain(four, settings=S)
    fifth = two_classes(rng, 9, 0.3)
    assert chain([*four, *small, fifth], settings=S).observations == 5
    assert chain([], settings=S).start_ns is None


def test_a_new_border_ends_the_chain_when_met_twice() -> None:
    """After a stretch of one class a first observation with two may be chance, a second one is not."""
    rng = np.random.default_rng(4)
    history = [one_class(rng, i) for i in range(10)] + [two_classes(rng, 10, 0.4)]
    assert chain(history, settings=S).stable
    for later in ([two_classes(rng, 11, 0.4)], [one_class(rng, 11), two_classes(rng, 12, 0.4)]):
        got = chain([*history, *later], settings=S)
        assert (got.observations, got.stable, got.ended_by) == (0, False, "border")


def test_other_class_shares_end_the_chain() -> None:
    """The same border with other shares: only the new stretch is a chain (the paper's matching is blind to it)."""
    rng = np.random.default_rng(5)
    history = [two_classes(rng, i, 0.3) for i in range(12)] + [two_classes(rng, 12 + i, 0.45) for i in range(6)]
    got = chain(history, settings=S)
    assert (got.observations, got.ended_by) == (6, "shares")
    assert len(got.borders) == 1


def test_shares_that_vary_from_window_to_window_are_no_change() -> None:
    """Overdispersed shares (sd 0.05 between windows) keep the chain, as the dispersion is estimated from them."""
    rng = np.random.default_rng(6)
    lengths = []
    for _ in range(20):
        history = [two_classes(rng, i, float(np.clip(rng.normal(0.3, 0.05), 0.1, 0.5))) for i in range(12)]
        lengths.append(chain(history, settings=S).observations)
    assert np.mean(np.array(lengths) == 12) >= 0.75


def test_a_border_missing_three_times_running_ends_the_chain() -> None:
    """Two classes that became one: after three such observations nothing is stable, after two it still is."""
    rng = np.random.default_rng(7)
    merging = [two_classes(rng, i, 0.5) for i in range(10)]
    # a single broad class with the same shares and mean logarithms on both sides of the border
    filled = [observation(10 + i, rng.lognormal(np.log(5.6e4), 1.3, 1_000)) for i in range(3)]
    assert chain([*merging, *filled[:2]], settings=S).observations == 12
    got = chain([*merging, *filled], settings=S)
    assert (got.observations, got.ended_by) == (0, "missing")


def test_a_border_seen_in_half_of_the_observations_is_not_stable() -> None:
    """Recurrence in the great majority is asked for, however clear the border is."""
    rng = np.random.default_rng(8)
    history = [two_classes(rng, i, 0.4) if i % 2 else one_class(rng, i) for i in range(10)]
    assert chain(history, settings=S).borders == ()


def test_cached_borders_give_the_same_chain() -> None:
    """A caller may keep what was found in each observation; a wrong number of them is refused."""
    rng = np.random.default_rng(9)
    history = [two_classes(rng, i, 0.3) for i in range(8)]
    found = [borders(o.histogram, settings=S) for o in history]
    assert chain(history, settings=S, found=found) == chain(history, settings=S)
    with pytest.raises(ValueError, match="8 observations"):
        chain(history, settings=S, found=found[1:])


def test_a_clock_step_that_only_all_calls_together_show_ends_no_chain() -> None:
    """30 % of the durations are rounded to 2 us: some observations show borders for it, their sum shows the step."""
    rng = np.random.default_rng(11)
    stable = 0
    for _ in range(10):
        history = []
        for i in range(10):
            values = rng.normal(21_000, 2_000, 1_000)
            rounds = rng.random(1_000) < 0.3
            history.append(observation(i, np.where(rounds, np.round(values / 2_000) * 2_000, values)))
        got = chain(history, settings=S)
        stable += got.stable and not got.borders
    assert stable >= 9


def test_observations_that_are_never_twice_alike_are_not_stable() -> None:
    """Two classes at another place each time: borders that nothing shares end every chain."""
    rng = np.random.default_rng(12)
    history = []
    for i in range(30):
        slow = rng.random(1_000) < 0.3
        place = np.exp(rng.uniform(0, 5))
        history.append(observation(i, rng.lognormal(np.log(2e4), 0.2, 1_000) * np.where(slow, 8.0, 1.0) * place))
    stable = [chain(history[: n + 1], settings=S).stable for n in range(9, 30)]
    assert sum(stable) <= 1


def test_another_level_ends_the_chain() -> None:
    """One class that becomes half as slow again: the chain begins where it did, with the factor."""
    rng = np.random.default_rng(13)
    history = [one_class(rng, i) for i in range(12)]
    slowed = [observation(12 + i, 1.5 * rng.lognormal(np.log(2e4), 0.5, 1_000)) for i in range(6)]
    got = chain([*history, *slowed], settings=S)
    assert (got.observations, got.stable, got.ended_by) == (6, True, "level")
    assert got.step == pytest.approx(1.5, abs=0.1)
    assert chain([*history, *slowed[:4]], settings=S).observations == 4


def test_the_level_of_one_class_ends_the_chain_and_the_borders_are_found_anew() -> None:
    """The slow class alone takes twice as long: its border moves up with it."""
    rng = np.random.default_rng(14)

    def two(index: int, factor: float) -> Observation:
        slow = rng.random(1_000) < 0.05
        return observation(index, rng.lognormal(np.log(2e4), 0.2, 1_000) * np.where(slow, 8.0 * factor, 1.0))

    got = chain([*(two(i, 1.0) for i in range(12)), *(two(12 + i, 2.0) for i in range(8))], settings=S)
    assert (got.observations, got.ended_by) == (8, "level")
    assert got.step == pytest.approx(2.0, abs=0.3)
    assert len(got.borders) == 1


def test_a_valley_between_windows_is_no_single_class() -> None:
    """Windows at one of two levels, in any order: not stable, and said why."""
    rng = np.random.default_rng(15)
    history = [observation(i, rng.lognormal(np.log(2e4), 0.2, 1_000) * (3.0 if i % 3 else 1.0)) for i in range(20)]
    got = chain(history, settings=S)
    assert not got.stable
    assert got.course is not None
    assert got.course.kind == "mixture"
    assert got.borders == ()


def test_a_level_that_drifts_is_not_stable() -> None:
    """From 20 to 40 us in twenty windows, each of them like its neighbours."""
    rng = np.random.default_rng(16)
    got = chain([observation(i, rng.lognormal(np.log(2e4) + 0.035 * i, 0.3, 1_000)) for i in range(20)], settings=S)
    assert not got.stable
    assert got.course is not None
    assert (got.course.kind, got.course.span_ns) == ("drift", 200 * SECOND)
