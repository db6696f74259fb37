"""Probes cost more, and leave more in durations, where caches are cold: measured at the probes, and corrected."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from specmine.model.buckets import BUCKET_EDGES
from specmine.model.histogram import quantiles
from specmine.model.observation import Kind
from specmine.probes.calibration.cold_cache import (
    MOST,
    bias_factor,
    coldness,
    coldness_for,
    geometric_mean,
    price_factor,
)
from specmine.probes.kernel.loader import LINK_KINDS
from tests.support.source_driver import Driver, driven, running

Programs = Callable[..., Path]


def test_coldness_is_the_mean_of_what_handlers_took() -> None:
    """Many handlers outweigh what was known, few do not; it is never less than in the loop, nor beyond reason."""
    assert coldness(1.0, 2_000_000, 10_000, 100) == pytest.approx(2.0, rel=0.01)
    assert 1.0 < coldness(1.0, 400, 2, 100) < 1.2
    assert coldness(1.2, 5_000, 100, 100) == 1.0
    assert coldness(1.0, 10**9, 1000, 100) == MOST
    assert coldness(1.3, 10**9, 1000, 0) == 1.3


def test_geometric_mean_comes_from_the_sum_of_buckets() -> None:
    """Handlers of 64 and of 256 ns take 128 in the mean of their logarithms."""
    buckets = [int(np.searchsorted(BUCKET_EDGES, ns, side="right")) - 1 for ns in (64, 256)]
    assert geometric_mean(2, sum(buckets)) == pytest.approx(128, rel=0.02)


MEASURED = {
    # handler's own time, recorded duration of an empty function, cost of a call: each over its value in the loop
    False: [(1.29, 1.46, 1.72), (1.95, 1.65, 1.96), (1.28, 1.17, 1.22), (1.99, 1.73, 3.46), (2.84, 2.16, 2.41)],
    True: [(1.50, 1.37, 1.69), (1.93, 1.54, 2.06), (1.26, 1.18, 1.50), (2.79, 1.54, 4.08), (3.42, 1.80, 3.08)],
}


@pytest.mark.parametrize("by_site", [False, True])
def test_what_was_measured_between_other_work_is_told_by_the_laws(by_site: bool) -> None:
    """They are within the uncertainty that durations carry, and within two fifths of what calls cost."""
    for own, duration, price in MEASURED[by_site]:
        factor, unsure = bias_factor(own, by_site=by_site)
        assert abs(factor - duration) < unsure + 0.12 * factor
        assert price_factor(own, Kind.TIME) == pytest.approx(price, rel=0.4)
        assert coldness_for(price_factor(own, Kind.TIME)) == pytest.approx(own)


def lately(driver: Driver, key: str) -> list[tuple[float, float, float]]:
    """Return recorded median, bias and uncertainty of the last windows, ns."""
    last = [each for each in driver.observations if each.function == key][-5:]
    return [(quantiles(each.counts, (0.5,))[0], each.bias_ns, each.uncertainty_ns) for each in last]


@pytest.mark.kernel
@pytest.mark.parametrize("links", [LINK_KINDS, ("multi",)])
def test_an_empty_function_is_empty_in_cold_caches_too(program: Programs, links: tuple[str, ...]) -> None:
    """What is recorded of it amid 384 kB of code is far from what is recorded in a loop; what is told is 0 for both."""
    with running(program("caches"), 90) as child, driven(child.pid, "warm", "cold", links=links) as driver:
        warm, cold = (driver.watch(name, Kind.TIME) for name in ("warm", "cold"))

        def told() -> bool:
            if min(len(lately(driver, key)) for key in (warm, cold)) < 5:
                return False
            (hot, hot_bias, hot_error), (recorded, bias, error) = (
                np.median(lately(driver, key), axis=0) for key in (warm, cold)
            )
            apart = recorded - hot > 1.5 * hot_error
            return bool(apart and abs(hot - hot_bias) <= hot_error and abs(recorded - bias) <= error < 0.8 * bias)

        driver.poll(told, 60)
        driver.poll(lambda: driver.source._registry.activity.factor > 1.2)
        warm_cost, cold_cost = (driver.source._registry.by_function[key].handlers.coldness for key in (warm, cold))
        assert cold_cost > 1.2 * warm_cost
