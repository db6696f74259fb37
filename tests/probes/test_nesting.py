"""Durations of calls in which other probes are hit: corrected where that can be done, else taken again without them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from source_driver import Driver, driven, running

from specmine.mining.observation import Kind, quantiles
from specmine.probes.isolation import Isolation, is_perturbed
from specmine.probes.layout import MAX_SLOTS, NEST
from specmine.probes.loading import LINK_KINDS

Programs = Callable[..., Path]


def medians_ns(driver: Driver, keys: tuple[str, ...], windows: int) -> list[float]:
    """Return the median durations over the next windows of functions, all of the same time."""
    begun = len(driver.observations)

    def of(key: str) -> list[float]:
        found = [each for each in driver.observations[begun:] if each.function == key]
        return [quantiles(each.counts, (0.5,))[0] - each.bias_ns for each in found]

    driver.poll(lambda: all(len(of(key)) >= windows for key in keys), 40)
    return [float(np.median(of(key))) for key in keys]


@pytest.mark.kernel
@pytest.mark.parametrize("links", [LINK_KINDS, ("multi",)])
def test_probes_within_a_call_do_not_lengthen_it(program: Programs, links: tuple[str, ...]) -> None:
    """With and without probes on the function that it calls, a function lasts as long."""
    names = ("outer", "light", "plain", "inner")
    with running(program("nests"), 90) as child, driven(child.pid, *names, links=links) as driver:
        keys = tuple(driver.watch(name, Kind.TIME) for name in names[:3])
        outer, _, plain = medians_ns(driver, keys, 3)
        inner = driver.watch("inner", Kind.TIME, window_calls=5000)
        driver.poll(lambda: driver.last.lost["perturbed_calls"] > 0)
        again, light, same = medians_ns(driver, keys, 4)
        # the host's speed changes: what is compared was measured in the same seconds
        assert abs(light / same - 1) < 0.05
        assert abs(again / same / (outer / plain) - 1) < 0.2
        assert medians_ns(driver, (inner,), 1)[0] < 1500  # a single-stepped entry is known to 12 % of 9 us


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
