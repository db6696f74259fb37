"""Streams that become known late begin with the windows that were observed before."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from specmine.daemon.config.settings import SECOND
from specmine.daemon.controller.violations.detection import detected, with_earlier
from specmine.mining.detection.detector import DetectorState
from specmine.mining.detection.values import Subject, values_of
from specmine.model.buckets import bucket_of
from specmine.model.histogram import Histogram
from specmine.model.observation import Kind, Observation
from specmine.model.pooling import pooled

CLASSES = Subject(edges=(int(bucket_of(40_000)),))


def window(at: int, slow_ns: float = 130_000.0, calls: int = 400) -> Observation:
    """Return ten seconds of calls of 10 us, 30 % of them of 130 us."""
    rng = np.random.default_rng(at)
    durations = np.where(rng.random(calls) < 0.3, slow_ns, 10_000.0) * rng.lognormal(0, 0.15, calls)
    return Observation(
        function="f", lifetime="l", kind=Kind.TIME, start_ns=10 * at * SECOND, end_ns=10 * (at + 1) * SECOND,
        histogram=Histogram.from_durations(durations.astype(np.int64)), calls=calls, watched_ns=10 * SECOND,
    )  # fmt: skip


def test_windows_of_few_calls_are_looked_at_together_for_what_neither_tells() -> None:
    """The slowest tenth of 110 calls is too few, that of two windows is not; no call is looked at twice."""
    parts = [window(at, calls=110) for at in range(12)]
    detector = DetectorState()
    for first, second in zip(parts[::2], parts[1::2], strict=True):
        whole = pooled((first, second))
        detector, _ = detected(detector, first, values_of(first, Subject()), Subject())
        detector, _ = detected(detector, second, values_of(second, Subject()), Subject(), whole=whole)
        once = next(one for one in detector.streams if one.stream.part == "upper")
        assert once.ended_ns == second.end_ns
        detector, _ = detected(detector, second, values_of(second, Subject()), Subject(), whole=whole)
        assert detector.find(once.stream) == once


def test_a_class_that_is_learned_late_is_known_as_well_as_if_it_had_been_watched() -> None:
    """The same numbers, stream by stream; streams that were known stay as they are."""
    windows = [window(at) for at in range(12)]
    late, early = DetectorState(), DetectorState()
    for one in windows[:11]:
        late, _ = detected(late, one, values_of(one, Subject()), Subject())
        early, _ = detected(early, one, values_of(one, CLASSES), CLASSES)
    newest = values_of(windows[11], CLASSES)
    warmed = with_earlier(late, windows[11], newest, CLASSES, [*reversed(windows)])
    assert {one.stream for one in warmed.streams} == {one.stream for one in early.streams}
    for stream in early.streams:
        assert warmed.find(stream.stream) == stream
    assert with_earlier(warmed, windows[11], newest, CLASSES, windows) is warmed


@pytest.mark.parametrize(("warm", "found"), [(True, 5), (False, None)])
def test_a_class_that_becomes_slower_soon_after_it_was_learned_is_found(warm: bool, found: int | None) -> None:
    """Twice as slow: within five windows with the windows from before, in eight not without them."""
    windows = [window(at) for at in range(15)]
    detector = DetectorState()
    for one in windows:
        detector, _ = detected(detector, one, values_of(one, Subject()), Subject())
    opened = None
    for number in range(1, 9):
        one = window(14 + number, 250_000.0)
        if warm:
            detector = with_earlier(detector, one, values_of(one, CLASSES), CLASSES, windows)
        detector, alarms = detected(detector, one, values_of(one, CLASSES), CLASSES)
        if opened is None and any(each.opened and each.stream.part == "class 1" for each in alarms):
            opened = number
    assert opened is None if found is None else opened is not None and opened <= found


def test_rare_calls_that_take_hundreds_of_times_as_long_are_found_in_windows_of_few_calls() -> None:
    """As a CPU limit makes them: by the mean, where neither the location of all calls nor that of a tenth tells it."""
    rng = np.random.default_rng(11)
    found: set[str] = set()
    detector = DetectorState()
    for at in range(55):
        durations = 200_000 * rng.lognormal(0, 0.4, 120) * np.where(rng.random(120) < (0.02 if at > 40 else 0), 300, 1)
        one = replace(window(at, calls=1), histogram=Histogram.from_durations(durations), calls=120)
        detector, alarms = detected(detector, one, values_of(one, Subject()), Subject())
        found |= {each.stream.part for each in alarms if each.opened}
        assert not found or at > 40
    assert found == {"mean"}


def test_calls_that_always_were_slow_at_times_are_no_change() -> None:
    """In 300 windows: one call in two hundred takes a hundred times as long, and one in fifty ten times."""
    rng = np.random.default_rng(12)
    for share, factor in ((0.005, 100), (0.02, 10)):
        detector = DetectorState()
        for at in range(300):
            durations = 200_000 * rng.lognormal(0, 0.4, 120) * np.where(rng.random(120) < share, factor, 1)
            one = replace(window(at, calls=1), histogram=Histogram.from_durations(durations), calls=120)
            detector, alarms = detected(detector, one, values_of(one, Subject()), Subject())
            assert not any(each.opened for each in alarms)
