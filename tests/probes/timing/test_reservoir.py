"""Single durations: in their order, fairly sampled over windows and uses, and bounded."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from specmine.model.batch import CallSamples
from specmine.model.buckets import BUCKET_EDGES
from specmine.model.histogram import Histogram
from specmine.model.observation import Kind
from specmine.probes.kernel.structs import CALL_SAMPLE_PAGE, CALL_SAMPLES
from specmine.probes.timing.function.timed_function import TimedFunction
from specmine.probes.timing.reservoir import LATE_NS, MOST, CallReservoir, sampled_together
from tests.support.source_driver import driven, running

Programs = Callable[..., Path]


def watched(lifetime: str = "boot:1:1", function: str = "ab+0x10", *, sampled: bool = False) -> TimedFunction:
    """Return what a function under watch needs to be to have its durations taken."""
    made = SimpleNamespace(
        slot=SimpleNamespace(number=3), function=SimpleNamespace(key=function), lifetime=lifetime, sampled=sampled
    )
    return cast("TimedFunction", made)


class Window:
    """Plays the programs: writes durations into a slot as they do."""

    def __init__(self) -> None:
        self.array = np.zeros(8, CALL_SAMPLE_PAGE)
        self.samples = CallReservoir(cast("Any", self.array), random.Random(1))
        self.chance = np.random.default_rng(1)
        self.timed = 0

    def passes(self, durations: list[int], w: TimedFunction, calls: int = 0, bias_ns: float = 0.0) -> None:
        """Let a window pass in which calls took so long."""
        self.samples.begin(w.slot.number, self.timed)
        row = self.array[w.slot.number]
        for nth, duration in enumerate(durations):
            if nth < CALL_SAMPLES:
                row["first"][nth] = row["kept"][nth] = duration
            elif (at := int(self.chance.integers(nth + 1))) < CALL_SAMPLES:
                row["kept"][at] = duration
        self.timed += len(durations)
        self.samples.take(w, len(durations), calls or len(durations), bias_ns)


def test_order_and_sample_of_a_window() -> None:
    """The first durations stand in their order, less the bias; the sample is of the whole window."""
    window = Window()
    window.passes(list(range(1000, 2000)), watched(), bias_ns=100.2)
    (told,) = window.samples.news()
    assert told.calls == 1000
    assert told.first == tuple(range(900, 900 + CALL_SAMPLES))
    assert len(told.sample) == CALL_SAMPLES
    assert max(told.sample) > 1500
    assert set(told.sample) <= set(range(900, 1900))


def test_windows_of_a_lifetime_are_sampled_alike_whatever_their_size() -> None:
    """Durations that tell their window stand in the sample as often as their window has calls."""
    shares = []
    for seed in range(60):
        window = Window()
        window.chance = np.random.default_rng(seed)
        window.samples = CallReservoir(cast("Any", window.array), random.Random(seed))
        for number, size in enumerate((100, 1000, 500, 2400)):
            window.passes([number + 1] * size, watched())
        (told,) = window.samples.news()
        assert (told.calls, len(told.sample)) == (4000, CALL_SAMPLES)
        shares.append(np.bincount(told.sample, minlength=5)[1:] / CALL_SAMPLES)
    error = np.sqrt(0.25 / (60 * CALL_SAMPLES))
    assert np.abs(np.mean(shares, axis=0) - [0.025, 0.25, 0.125, 0.6]).max() < 4 * error


def test_small_samples_are_whole() -> None:
    """As long as all calls fit, none is left out."""
    assert sampled_together((1, 2), 2, (3,), 1, random.Random(1)) == (1, 2, 3)
    assert len(sampled_together(range(200), 200, range(100), 100, random.Random(1))) == CALL_SAMPLES


def test_lifetimes_are_kept_apart_and_told_as_they_grow() -> None:
    """Each lifetime has its own; it is told again only after a quarter more calls."""
    window = Window()
    window.passes([10] * 100, watched("one"))
    window.passes([20] * 100, watched("two"))
    assert {each.lifetime: set(each.sample) for each in window.samples.news()} == {"one": {10}, "two": {20}}
    window.passes([10] * 20, watched("one"))
    assert window.samples.news() == ()
    window.passes([10] * 20, watched("one"))
    assert [each.calls for each in window.samples.news()] == [140]


def test_calls_that_were_not_timed_break_the_order() -> None:
    """Where calls between them are missing there are no calls in a row, but there is a sample."""
    window = Window()
    window.passes([10] * 300, watched("some"), calls=2400)
    window.passes([10] * 300, watched("chosen", sampled=True))
    assert [(each.first, len(each.sample)) for each in window.samples.news()] == [
        ((), CALL_SAMPLES),
        ((), CALL_SAMPLES),
    ]


def test_what_is_held_is_bounded() -> None:
    """So many lifetimes may pass: the one that grew longest ago is forgotten."""
    window = Window()
    for number in range(MOST + 5):
        window.passes([10], watched(str(number)))
    assert len(window.samples.news()) == MOST


def test_two_processors_may_leave_a_hole() -> None:
    """A place that nobody wrote is left out."""
    window = Window()
    window.samples.begin(3, 0)
    window.array[3]["first"][:2] = window.array[3]["kept"][:2] = (7, 9)
    window.samples.take(watched(), 3, 3, 0.0)
    assert window.samples.news() == (
        CallSamples(function="ab+0x10", lifetime="boot:1:1", calls=3, first=(7, 9), sample=(7, 9)),
    )


@pytest.mark.kernel
@pytest.mark.parametrize("kind", [Kind.TIME, Kind.PATH])
def test_a_program_that_takes_turns_is_seen_to(program: Programs, kind: Kind) -> None:
    """Every third call is slow: so it stands in the order, and the sample has as many as all calls have."""
    found: list[CallSamples] = []
    with running(program("turns"), 600, 4000) as child, driven(child.pid, "step") as driver:
        driver.watch("step", kind, window_calls=1500, window_ns=10**10)

        def told() -> bool:
            found.extend(driver.last.call_samples)
            return any(each.calls >= 3000 for each in found)

        driver.poll(told)
        lifetime = driver.observations[0].lifetime
    last = next(each for each in found if each.calls >= 3000)
    assert last.lifetime == lifetime
    assert len(last.first) == len(last.sample) == CALL_SAMPLES
    slow = np.array(last.first) > 40_000
    by_turn = sorted(float(slow[turn::3].mean()) for turn in range(3))
    assert by_turn[1] < 0.5  # a busy machine slows some
    assert by_turn[2] == 1.0
    kept, bias_ns = np.array(last.sample), driver.observations[0].bias_ns
    counts = Histogram.sum(each.histogram for each in driver.observations).dense
    true = counts[BUCKET_EDGES[1:] > 40_000 + bias_ns].sum() / counts.sum()
    assert abs(np.mean(kept > 40_000) - true) < 5 * np.sqrt(true * (1 - true) / CALL_SAMPLES) + 0.01
    assert kept.min() > 0.9 * 20_000


def test_what_is_held_of_a_life_ends_with_it() -> None:
    """A thousand short lives hold no more than those that ended lately; a late window still counts for its own."""
    window = Window()
    for life in range(1000):
        now_ns, name = life * LATE_NS // 10, f"boot:{life}:1"
        window.passes([1000] * 10, watched(name))
        window.samples.news()
        window.samples.end([name], now_ns)
        window.passes([1000] * 10, watched(name))
        (told,) = window.samples.news()
        assert (told.lifetime, told.calls) == (name, 20)
        assert len(window.samples._growing) <= 11
