"""The values of a window: locations and shares as numpy computes them, with the variances that repeated draws have."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats.mstats import winsorize

from specmine.mining.assertions.expression import parse
from specmine.mining.detection.values import (
    MEAN_VARIANCE,
    Subject,
    log_of_mean,
    mean_log,
    mean_log_of_upper,
    share_of,
    values_of,
)
from specmine.model.buckets import bucket_of
from specmine.model.call_path import CallPath, Frame
from specmine.model.histogram import Histogram
from specmine.model.observation import Kind, Observation, PathHistogram

NEAR = CallPath((Frame("main", "app"), Frame("near", "app"), Frame("z", "app")))
FAR = CallPath((Frame("main", "app"), Frame("far", "app"), Frame("z", "app")))
EDGE = int(bucket_of(10_000))
SUBJECT = Subject(
    edges=(EDGE,), behaviours=(("near->z", parse("near->z")), ("not near->z", parse("not near->z"))), known=(NEAR,)
)


def _observation(rng: np.random.Generator, near: int, far: int) -> Observation:
    fast, slow = (Histogram.from_durations(rng.lognormal(at, 0.3, n)) for at, n in ((7, near), (12, far)))
    return Observation(
        function="z", lifetime="a", kind=Kind.PATH, start_ns=0, end_ns=10, histogram=fast + slow, calls=near + far,
        watched_ns=10, paths=(PathHistogram(path=NEAR, histogram=fast), PathHistogram(path=FAR, histogram=slow)),
    )  # fmt: skip


def test_the_location_is_the_winsorised_mean_of_the_logarithms() -> None:
    """As scipy's winsorize has it, within a bucket."""
    rng = np.random.default_rng(1)
    durations = rng.lognormal(11, 0.5, 2_000)
    found, variance = mean_log(Histogram.from_durations(durations + 500), 500)
    assert found == pytest.approx(winsorize(np.log(durations), (0.01, 0.01)).mean(), abs=0.005)
    assert variance == pytest.approx(0.25 / 2_000, rel=0.1)


def test_what_the_bias_is_not_known_by_is_no_change() -> None:
    """Durations of 100 ns that are known to 250 ns look alike; of 100 us the uncertainty says next to nothing."""
    rng = np.random.default_rng(4)
    short, longer = (Histogram.from_durations(700 + median * rng.lognormal(0, 0.2, 500)) for median in (100, 150))
    (first, variance), (second, _) = (mean_log(one, 700, 250) for one in (short, longer))
    assert abs(second - first) < 0.02 < abs(mean_log(longer, 700)[0] - mean_log(short, 700)[0])
    assert variance == pytest.approx(0.25, rel=0.1)
    slow = Histogram.from_durations(100_000 * rng.lognormal(0, 0.2, 500))
    for located in (mean_log, mean_log_of_upper, log_of_mean):
        assert located(slow, 700, 250) == pytest.approx(located(slow, 700), rel=0.05)


def test_the_upper_tenth_is_the_mean_of_the_slowest_calls() -> None:
    """As sorting has it, and 400 draws vary as its variance says."""
    rng = np.random.default_rng(2)
    draws = [rng.lognormal(11, 0.5, 600) for _ in range(400)]
    found = [mean_log_of_upper(Histogram.from_durations(one), 0) for one in draws]
    wanted = [np.sort(np.log(one))[-60:].mean() for one in draws]
    assert [one[0] for one in found] == pytest.approx(wanted, abs=0.02)
    assert np.mean([one[1] for one in found]) == pytest.approx(np.var(wanted), rel=0.25)


def test_the_mean_is_that_of_durations_and_varies_as_its_variance_says() -> None:
    """As numpy has it, and over 400 draws; one call that outweighs all others is not noise alone."""
    rng = np.random.default_rng(6)
    draws = [rng.lognormal(11, 0.5, 600) for _ in range(400)]
    found = [log_of_mean(Histogram.from_durations(one + 500), 500) for one in draws]
    assert [one[0] for one in found] == pytest.approx([math.log(one.mean()) for one in draws], abs=0.01)
    assert np.mean([one[1] for one in found]) == pytest.approx(np.var([one[0] for one in found]), rel=0.25)
    alone = Histogram.from_durations(np.append(rng.lognormal(11, 0.5, 200), 1e12))
    assert log_of_mean(alone, 0)[1] == MEAN_VARIANCE


def test_a_window_has_a_value_for_each_part_that_the_assertion_knows() -> None:
    """All calls, the upper tenth, classes, the share of the slow class, behaviours, and unknown paths."""
    values = values_of(_observation(np.random.default_rng(3), 400, 100), SUBJECT)
    parts = {(one.stream.expression, one.stream.part): one for one in values}
    assert {part for expression, part in parts if expression == "true"} == {
        "all", "mean", "upper", "class 0", "class 1", "share 1", "path"
    }  # fmt: skip
    assert parts["near->z", "all"].place == pytest.approx(7, abs=0.05)
    assert parts["not near->z", "all"].place == pytest.approx(12, abs=0.1)
    assert share_of(parts["true", "share 1"].place) == pytest.approx(0.2)
    assert share_of(parts["true", "path"].place) == pytest.approx(0.2)


@pytest.mark.parametrize("share", [0.02, 0.3])
def test_the_variance_of_a_share_is_that_of_draws(share: float) -> None:
    """On the scale of the stream."""
    rng = np.random.default_rng(4)
    slow = rng.binomial(500, share, 600)
    found = []
    for number in slow:
        value = [
            one for one in values_of(_observation(rng, 500 - number, int(number)), SUBJECT) if one.stream.part == "path"
        ]
        found.append((value[0].place, value[0].variance))
    assert np.mean([variance for _, variance in found]) == pytest.approx(
        np.var([place for place, _ in found]), rel=0.35
    )


def test_too_few_calls_have_no_value() -> None:
    """29 calls say nothing, 99 nothing of the mean, and 200 nothing of the upper tenth."""
    rng = np.random.default_rng(5)
    assert values_of(_observation(rng, 29, 0), Subject()) == ()
    assert [one.stream.part for one in values_of(_observation(rng, 99, 0), Subject())] == ["all"]
    assert [one.stream.part for one in values_of(_observation(rng, 200, 0), Subject())] == ["all", "mean"]
    assert [one.stream.part for one in values_of(_observation(rng, 210, 0), Subject())] == ["all", "mean", "upper"]
    assert all(math.isfinite(one.place) for one in values_of(_observation(rng, 1_000, 0), SUBJECT))


def test_a_process_that_was_forked_elsewhere_has_no_new_paths() -> None:
    """What is farther out than three callers is how the process came to be; a nearer caller that is new counts."""
    near = [Frame(name, "app") for name in ("make_child", "child_main", "serve", "z")]
    known = CallPath((Frame("main", "app"), Frame("startup", "app"), *near))
    restarted = CallPath((Frame("main", "app"), Frame("maintenance", "app"), *near))
    elsewhere = CallPath((*known.frames[:-1], Frame("timer", "app"), known.frames[-1]))
    for path, share in ((known, 0.0), (restarted, 0.0), (elsewhere, 1.0)):
        calls = Histogram.from_durations([1_000.0] * 100)
        seen = Observation(
            function="z", lifetime="a", kind=Kind.PATH, start_ns=0, end_ns=10, histogram=calls, calls=100,
            watched_ns=10, paths=(PathHistogram(path=path, histogram=calls),),
        )  # fmt: skip
        (value,) = [one for one in values_of(seen, Subject(known=(known,))) if one.stream.part == "path"]
        assert share_of(value.place) == pytest.approx(share)
