"""Probes cost more, and leave more in durations, where caches are cold: measured at the probes, and corrected."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from specmine.model.buckets import BUCKET_EDGES
from specmine.model.observation import Kind
from specmine.model.probe_kind import TIMED
from specmine.probes.calibration.cold_cache import (
    MOST,
    STEP_ERROR,
    bias_factor,
    coldness,
    coldness_for,
    geometric_mean,
    price_factor,
)
from specmine.probes.kernel.loader import LINK_KINDS
from tests.support.source_driver import driven, running

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
        assert price_factor(own, TIMED) == pytest.approx(price, rel=0.4)
        assert coldness_for(price_factor(own, TIMED)) == pytest.approx(own)


@pytest.mark.kernel
@pytest.mark.parametrize("links", [LINK_KINDS, ("multi",)])
def test_handlers_are_measured_and_durations_corrected_by_the_law(program: Programs, links: tuple[str, ...]) -> None:
    """At most one handler in 32 is measured; durations are corrected by at least the bias of a loop, and by a limit."""
    with running(program("caches"), 600) as child, driven(child.pid, "warm", "cold", links=links) as driver:
        keys = [driver.watch(name, Kind.TIME) for name in ("warm", "cold")]
        driver.poll(lambda: min(sum(o.function == key for o in driver.observations) for key in keys) >= 3)
        watching, prices = driver.source.parts.registry, driver.source._prices
        for key in keys:
            w = watching.by_function[key]
            row = driver.source.parts.counts.counters[w.slot.number]
            timed, measured = int(row["timed"]), int(row["handlers_timed"])
            assert 0 < measured <= timed / 32 + 6 * (timed / 32) ** 0.5  # none that an interrupt made long
            assert 1 <= w.handlers.typical <= MOST and 1 <= w.handlers.coldness <= MOST
            loop_ns = prices.site_bias_ns if w.by_site else prices.bias_ns
            step_ns = prices.stepped_bias_ns if w.stepped else 0.0
            most, unsure = bias_factor(MOST, by_site=w.by_site)
            for each in (o for o in driver.observations if o.function == key):
                assert loop_ns <= each.bias_ns - step_ns <= most * loop_ns
                assert prices.bias_uncertainty * loop_ns <= each.uncertainty_ns
                assert each.uncertainty_ns <= (prices.bias_uncertainty * most + unsure) * loop_ns + STEP_ERROR * step_ns
