"""Durations of calls in which other probes are hit: corrected where that can be done, else taken again without them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from source_driver import Driver, driven, running

from specmine.mining.observation import Kind, quantiles
from specmine.probes.batch import Unwatch
from specmine.probes.isolation import Isolation, is_perturbed
from specmine.probes.layout import MAX_SLOTS, NEST
from specmine.probes.loading import LINK_KINDS

Programs = Callable[..., Path]


def median_ns(driver: Driver, key: str, windows: int) -> tuple[float, float]:
    """Return the median duration over the next windows of a function, and its uncertainty."""
    begun = len(driver.observations)

    def seen() -> list[int]:
        return [i for i in range(begun, len(driver.observations)) if driver.observations[i].function == key]

    driver.poll(lambda: len(seen()) >= windows, 30)
    found = [driver.observations[i] for i in seen()]
    middle = float(np.median([quantiles(each.counts, (0.5,))[0] - each.bias_ns for each in found]))
    return middle, max(each.uncertainty_ns for each in found)


@pytest.mark.kernel
@pytest.mark.parametrize("links", [LINK_KINDS, ("multi",)])
def test_probes_within_a_call_do_not_lengthen_it(program: Programs, links: tuple[str, ...]) -> None:
    """With and without probes on the function that it calls, a function lasts as long."""
    with running(program("nests"), 60) as child, driven(child.pid, "outer", "light", "inner", links=links) as driver:
        outer, light = driver.watch("outer", Kind.TIME), driver.watch("light", Kind.TIME)
        before = {key: median_ns(driver, key, 2)[0] for key in (outer, light)}
        inner = driver.watch("inner", Kind.TIME, window_calls=5000)
        driver.poll(lambda: driver.last.lost["perturbed_calls"] > 0)
        with_probes = {key: median_ns(driver, key, 2) for key in (outer, light)}
        assert median_ns(driver, inner, 1)[0] < 200
        driver.source.apply(Unwatch(function=inner))
        for key, tolerance in ((outer, 0.2), (light, 0.05)):
            middle, uncertainty_ns = with_probes[key]
            both = (before[key], median_ns(driver, key, 2)[0])  # the host's speed changes too
            assert min(both) * (1 - tolerance) - uncertainty_ns < middle < max(both) * (1 + tolerance) + uncertainty_ns


def test_nesting_is_followed_through_several_levels() -> None:
    """What is hit inside what is hit inside a call is inside it; a slot's new function inherits nothing."""
    nests = np.zeros(MAX_SLOTS, NEST)
    nests["inner"][3, 1] = 1 << 6  # 70 inside 3
    nests["inner"][70, 0] = 1 << 3 | 1 << 9  # 3 again, and 9
    isolation = Isolation(nests)
    assert isolation.inside(3) == {70, 9}
    isolation.forget(70)
    assert isolation.inside(3) == frozenset()


@pytest.mark.parametrize(
    ("nested_ns", "median_ns", "expected"), [(1500, 50_000, False), (60_000, 10_000, True), (150, 0, False)]
)
def test_small_corrections_are_trusted(nested_ns: float, median_ns: float, expected: bool) -> None:
    """One hit in a long call is taken off, forty in a short one spoil it; what is below the bias does not matter."""
    assert is_perturbed(nested_ns, median_ns, 90.0) is expected
