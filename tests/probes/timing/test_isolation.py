"""Durations of calls in which other probes are hit: corrected where that can be done, else taken again without them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from specmine.model.histogram import quantiles
from specmine.model.observation import Kind
from specmine.probes.kernel.loader import LINK_KINDS
from specmine.probes.kernel.structs import MAX_SLOTS, NEST
from specmine.probes.timing.isolation import Isolation, is_perturbed
from tests.support.source_driver import Driver, driven, running

Programs = Callable[..., Path]


def lately(driver: Driver, *keys: str) -> list[float]:
    """Return the median duration in the last three windows of each function, 0 for one that has fewer."""
    found = []
    for key in keys:
        last = [each for each in driver.observations if each.function == key][-3:]
        middle = np.median([quantiles(each.counts, (0.5,))[0] - each.bias_ns for each in last]) if last else 0.0
        found.append(float(middle) if len(last) == 3 else 0.0)
    return found


@pytest.mark.kernel
@pytest.mark.parametrize("links", [LINK_KINDS, ("multi",)])
def test_probes_within_a_call_do_not_lengthen_it(program: Programs, links: tuple[str, ...]) -> None:
    """With and without probes on the function that it calls, a function lasts as long.

    Neighbours on a busy host change its speed: three quiet windows of each are waited for.
    """
    names = ("outer", "light", "plain", "inner")
    with running(program("nests"), 90) as child, driven(child.pid, *names, links=links) as driver:
        outer, light, plain = (driver.watch(name, Kind.TIME) for name in names[:3])
        driver.poll(lambda: min(lately(driver, outer, light, plain)) > 0)
        before, _, same_before = lately(driver, outer, light, plain)
        inner = driver.watch("inner", Kind.TIME, window_calls=5000)
        driver.poll(lambda: driver.last.lost["perturbed_calls"] > 0)
        driver.observations.clear()

        def unchanged() -> bool:
            now, once, same = lately(driver, outer, light, plain)
            if not min(now, once, same):
                return False
            return abs(once / same - 1) < 0.04 and abs(now / same / (before / same_before) - 1) < 0.15

        driver.poll(unchanged, 60)
        # an empty function is 0 within what is stated, though what its single-stepped entry adds changes by a third
        driver.poll(lambda: sum(each.function == inner for each in driver.observations) >= 5)
        within = [
            abs(quantiles(each.counts, (0.5,))[0] - each.bias_ns) <= each.uncertainty_ns < 0.5 * each.bias_ns
            for each in driver.observations
            if each.function == inner
        ]
        assert np.mean(within) >= 0.9


@pytest.mark.kernel
@pytest.mark.parametrize("links", [LINK_KINDS, ("multi",)])
def test_a_path_goes_through_a_call_whose_return_address_was_replaced(
    program: Programs, links: tuple[str, ...]
) -> None:
    """A caller that is timed without its path is one frame of the path like any other."""
    names = ("light", "inner")
    with running(program("nests"), 90) as child, driven(child.pid, *names, links=links, isolate=False) as driver:
        light, inner = driver.watch("light", Kind.TIME, window_calls=100), driver.watch("inner", Kind.PATH)
        driver.poll(lambda: any(o.function == light for o in driver.observations))
        driver.observations.clear()
        driver.poll(lambda: sum(o.function == light for o in driver.observations) >= 2, 40)
    found: Counter[bool] = Counter()
    for each in (p for o in driver.observations if o.function == inner for p in o.paths or ()):
        frames = [frame.name for frame in each.path.frames]
        if frames[-2:] == ["light", "inner"]:
            found[each.path.complete and "main" in frames] += int(each.counts.sum())
    # links that come one after the other leave some calls whose entry was not seen
    assert found[True] >= 100
    assert found[False] <= (0 if links == LINK_KINDS else found[True] // 10)


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
