"""Durations of calls in which other probes are hit: corrected where that can be done, else taken again without them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from specmine.model.observation import Kind, Observation
from specmine.probes.kernel.loader import LINK_KINDS
from specmine.probes.kernel.maps import map_array
from specmine.probes.kernel.structs import MAX_SLOTS, NEST, SLOT
from specmine.probes.timing.isolation import TOLERABLE, Isolation, is_perturbed
from tests.support.source_driver import Driver, driven, running

Programs = Callable[..., Path]


INNERS = 40
"""Calls of inner() in one call of outer(); in one of light() there is one, in one of plain() none."""


def of(driver: Driver, key: str) -> list[Observation]:
    """Return the observations of a function."""
    return [each for each in driver.observations if each.function == key]


def counted(driver: Driver, key: str) -> tuple[int, int, int]:
    """Return how many calls of a function were timed, in how many others were hit, and what was subtracted, ns."""
    row = driver.source.parts.counts.counters[driver.source.parts.registry.by_function[key].slot.number]
    return int(row["timed"]), int(row["nested"]), int(row["nested_ns"])


def slots(driver: Driver) -> NDArray[np.void]:
    """Return what the kernel is told of the slots."""
    loaded = driver.source.parts.loaded
    return map_array(loaded.maps["slots"], MAX_SLOTS, SLOT)


@pytest.mark.kernel
@pytest.mark.parametrize("links", [LINK_KINDS, ("multi",)])
def test_a_hit_within_a_call_is_subtracted_at_its_price(program: Programs, links: tuple[str, ...]) -> None:
    """A call in which forty calls were timed is shortened by forty times as much as one with a single one."""
    names = ("outer", "light", "plain", "inner")
    with running(program("nests"), 600) as child, driven(child.pid, *names, links=links, isolate=False) as driver:
        keys = [driver.watch(name, Kind.TIME, window_calls=10**6, window_ns=10**12) for name in names]

        def subtracted() -> list[tuple[float, float]]:
            """For 200 calls: the part in which others were hit, and what was subtracted from one, ns."""
            before = [counted(driver, key) for key in keys[:3]]
            driver.poll(lambda: counted(driver, keys[1])[0] >= before[1][0] + 200)
            grown = [np.subtract(counted(driver, key), was) for key, was in zip(keys, before, strict=False)]
            return [(nested / timed, ns / timed) for timed, nested, ns in grown]

        def balanced() -> bool:
            """At first only some of the calls of inner() are timed: their return sites are learnt one by one."""
            (often, forty), (once, one), (never, none) = subtracted()
            exact = min(often, once) > 0.98 and forty / one == pytest.approx(INNERS, rel=0.05)
            assert (never, none) == (0, 0)
            return exact

        driver.poll(lambda: all(key in driver.source.parts.registry.by_function for key in keys))
        driver.poll(lambda: all(counted(driver, key)[0] for key in keys))
        driver.poll(balanced)
        slot = slots(driver)[driver.source.parts.registry.by_function[keys[3]].slot.number]
        assert subtracted()[1][1] == pytest.approx(int(slot["entry_ns"]) + int(slot["return_ns"]), rel=0.1)


@pytest.mark.kernel
@pytest.mark.parametrize("links", [LINK_KINDS, ("multi",)])
def test_what_hits_within_would_spoil_is_timed_without_them(program: Programs, links: tuple[str, ...]) -> None:
    """Windows that other probes spoil are thrown away; both functions have observations, in turns."""
    names = ("outer", "plain", "inner")
    with running(program("nests"), 600) as child, driven(child.pid, *names, links=links) as driver:
        outer, _, inner = (driver.watch(name, Kind.TIME, window_calls=200) for name in names)
        driver.poll(lambda: driver.last.lost["perturbed_calls"] > 0)
        driver.observations.clear()
        driver.poll(lambda: min(len(of(driver, key)) for key in (outer, inner)) >= 3)
        assert driver.source.parts.registry.by_function[outer].isolated
        unspoilt = [
            each.uncertainty_ns < 2 * each.bias_ns + 2 * TOLERABLE * each.histogram.quantile(0.5)
            for each in of(driver, outer)
        ]
        assert any(unspoilt)


@pytest.mark.kernel
@pytest.mark.parametrize("links", [LINK_KINDS, ("multi",)])
def test_a_path_goes_through_a_call_whose_return_address_was_replaced(
    program: Programs, links: tuple[str, ...]
) -> None:
    """A caller that is timed without its path is one frame of the path like any other."""
    names = ("light", "inner")
    with running(program("nests"), 600) as child, driven(child.pid, *names, links=links, isolate=False) as driver:
        light, inner = driver.watch("light", Kind.TIME, window_calls=100), driver.watch("inner", Kind.PATH)
        driver.poll(lambda: {o.function for o in driver.observations} == {light, inner})
        driver.observations.clear()
        driver.poll(lambda: sum(o.function == light for o in driver.observations) >= 2)
    found: Counter[bool] = Counter()
    for each in (p for o in driver.observations if o.function == inner for p in o.paths or ()):
        frames = [frame.name for frame in each.path.frames]
        if frames[-2:] == ["light", "inner"]:
            found[each.path.complete and "main" in frames] += each.histogram.total
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
