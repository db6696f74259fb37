"""A statement moves to the scale of a host, and a window's borders are known or strange."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from specmine.mining.borders.inference import Inference, infer_stable_borders
from specmine.mining.fleet.statement import InheritedStatement, edge_at, octaves, rescaled, unknown_borders
from specmine.mining.settings import MiningSettings
from specmine.model.buckets import BUCKET_EDGES, bucket_of
from specmine.model.histogram import Histogram
from specmine.model.observation import Kind, Observation

_SETTINGS = MiningSettings()


def _window(factor: float, *classes: tuple[float, float], seed: int = 1, bias: float = 300.0) -> Observation:
    """Return 600 calls of classes: share and median."""
    rng = np.random.default_rng(seed)
    shares = np.array([share for share, _ in classes])
    chosen = rng.choice(len(classes), 600, p=shares / shares.sum())
    medians = np.array([median for _, median in classes])[chosen]
    durations = medians * factor * np.exp(0.1 * rng.standard_normal(600)) + bias
    return Observation(
        function="f", lifetime="l", kind=Kind.TIME, start_ns=seed * 10, end_ns=seed * 10 + 9, calls=600, watched_ns=9,
        histogram=Histogram.from_durations(durations.astype(np.int64)), bias_ns=bias,
    )  # fmt: skip


_TWO = ((0.7, 20_000.0), (0.3, 60_000.0))


def _statement() -> InheritedStatement:
    windows = [_window(1.0, *_TWO, seed=seed) for seed in range(1, 9)]
    learned: Inference = infer_stable_borders(windows, {}, None, _SETTINGS)[0]
    assert learned.stable
    assert len(learned.borders) == 1
    return InheritedStatement(function="f", build_id="b", learned=learned, median_ns=21_500.0, hosts=8)


@pytest.mark.parametrize("factor", [0.55, 0.8, 1.0, 1.25, 1.9])
def test_a_moved_statement_cuts_a_host_as_its_own_does(factor: float) -> None:
    """Against what the host's windows alone say: the same border, and no strange one."""
    stated = _statement()
    windows = [_window(factor, *_TWO, seed=seed, bias=500.0) for seed in range(11, 19)]
    own = infer_stable_borders(windows, {}, None, _SETTINGS)[0]
    by = octaves(stated, windows[0].histogram.quantile(0.5) - 500.0)
    assert by is not None
    moved = rescaled(stated, by)
    assert moved.learned.borders[0].duration_ns == pytest.approx(own.borders[0].duration_ns, rel=0.3)
    assert sum(unknown_borders(window, moved.learned, _SETTINGS) for window in windows) == 0
    assert moved.median_ns == pytest.approx(21_500.0 * 2**by)


def test_a_class_that_nobody_stated_is_strange() -> None:
    """A window with another class, or with classes where one was stated."""
    stated = _statement()
    three = _window(1.0, (0.4, 20_000.0), (0.3, 60_000.0), (0.3, 400_000.0))
    assert unknown_borders(three, stated.learned, _SETTINGS) == 1
    assert unknown_borders(_window(1.0, *_TWO), replace(stated.learned, borders=()), _SETTINGS) == 1
    assert unknown_borders(_window(1.0, (1.0, 20_000.0)), replace(stated.learned, borders=()), _SETTINGS) == 0


def test_hosts_too_far_apart_share_nothing() -> None:
    """Beyond a factor of two, or without a duration."""
    stated = _statement()
    assert octaves(stated, 21_500.0 * 2.1) is None
    assert octaves(stated, 21_500.0 / 2.1) is None
    assert octaves(stated, 0.0) is None
    assert octaves(stated, 43_000.0) == pytest.approx(1.0)


def test_the_nearest_edge() -> None:
    """Of each bucket its own edge; of any duration one no farther than a bucket."""
    for bucket in (1, 40, 333, 1000):
        assert edge_at(float(BUCKET_EDGES[bucket])) == bucket
    for duration in (45.0, 1e3, 7.7e5, 3e9):
        assert abs(edge_at(duration) - int(bucket_of(int(duration)))) <= 1
