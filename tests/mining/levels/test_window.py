"""Windows hold the calls asked for, and their quantiles are those of the histogram."""

from __future__ import annotations

import numpy as np

from specmine.mining.levels.window import windows_of, windows_of_class
from specmine.model.buckets import bucket_of
from specmine.model.call_path import CallPath, Frame
from specmine.model.histogram import Histogram
from specmine.model.observation import Kind, Observation, PathHistogram

NEAR = CallPath((Frame("main", "app"), Frame("near", "app"), Frame("z", "app")))
FAR = CallPath((Frame("main", "app"), Frame("far", "app"), Frame("z", "app")))


def _observation(fast: int, slow: int, bias_ns: float = 0.0) -> Observation:
    near = Histogram.from_durations(np.full(fast, 1_000 + bias_ns))
    far = Histogram.from_durations(np.full(slow, 50_000 + bias_ns))
    return Observation(
        function="z",
        lifetime="one",
        kind=Kind.PATH,
        start_ns=0,
        end_ns=10,
        histogram=near + far,
        calls=fast + slow,
        watched_ns=10,
        bias_ns=bias_ns,
        paths=(PathHistogram(path=NEAR, histogram=near), PathHistogram(path=FAR, histogram=far)),
    )


def test_a_window_of_a_class_follows_the_bias() -> None:
    """The border between two classes moves with what the probes add to the durations."""
    edge = int(bucket_of(2_000))
    plain, late = _observation(70, 30), _observation(70, 30, bias_ns=3_000)
    for index, calls in ((0, 70), (1, 30)):
        windows = windows_of_class([plain, late], [edge], index, 0.0)
        assert [one.histogram.total for one in windows] == [calls, calls]
    assert [one.bias_ns for one in windows_of([plain, late])] == [0, 3_000]
