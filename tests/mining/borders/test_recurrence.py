"""Borders that recur over executions, hosts and builds."""

from __future__ import annotations

import numpy as np
import pytest

from specmine.mining.borders.recurrence import Execution, factors, recurring
from specmine.mining.settings import MiningSettings
from specmine.model.buckets import bucket_of
from specmine.model.histogram import Histogram

SETTINGS = MiningSettings()
FAST, SLOW, BORDER = 10_000.0, 40_000.0, 20_000.0


def execution(
    seed: int, *borders: float, slow: float = 0.3, times: float = 1.0, scale: str = "here", calls: int = 2000
) -> Execution:
    """Draw calls of two classes; the borders are those that the execution is said to have found."""
    random = np.random.default_rng(seed)
    durations = random.lognormal(0, 0.15, calls) * np.where(random.random(calls) < slow, SLOW, FAST) * times
    edges = tuple(int(bucket_of(each * times)) for each in borders)
    return Execution(histogram=Histogram.from_durations(durations.astype(np.int64)), edges=edges, scale=scale)


def test_a_border_that_one_found_and_all_have_is_one_of_all() -> None:
    """The density falls there in the others too, however few of their calls are slow."""
    executions = [execution(1, BORDER), *(execution(seed, slow=0.1) for seed in (2, 3, 4, 5))]
    (border,) = recurring(executions, settings=SETTINGS)
    assert border.found == {0}
    assert border.has == 5
    assert set(border.edges) == set(executions[0].edges)


def test_a_border_that_others_lack_goes() -> None:
    """Slow calls of one execution of five are its own; of three of five they are not."""
    lacking = [execution(seed, slow=0.0) for seed in (2, 3, 4, 5)]
    assert recurring([execution(1, BORDER), *lacking], settings=SETTINGS) == ()
    most = [execution(1, BORDER), execution(6, BORDER), execution(7), *lacking[:2]]
    assert [each.has for each in recurring(most, settings=SETTINGS)] == [3]


def test_borders_in_one_valley_are_one() -> None:
    """Each execution keeps its own place in it, whatever share of its calls lies below."""
    executions = [execution(1, 15_000.0), execution(2, 24_000.0, slow=0.7)]
    (border,) = recurring(executions, settings=SETTINGS)
    assert border.found == {0, 1}
    assert border.edges == tuple(each.edges[0] for each in executions)


@pytest.mark.parametrize("times", [0.4, 0.8, 1.0, 2.5])
def test_a_faster_build_has_the_same_borders_at_its_own_durations(times: float) -> None:
    """The factor between two builds is found although the load has shifted calls from one class to the other."""
    executions = [execution(1, BORDER, calls=4000), execution(2, slow=0.6, times=times, scale="there")]
    assert factors(executions)[1] == pytest.approx(times, rel=0.07)
    (border,) = recurring(executions, settings=SETTINGS)
    assert border.has == 2
    assert executions[1].duration_at(border.edges[1]) == pytest.approx(BORDER * times, rel=0.12)


def test_the_probes_cost_is_no_difference() -> None:
    """Durations that hold more of it have their borders later."""
    late = execution(2, slow=0.5)
    moved = Execution(
        histogram=Histogram.from_durations(np.repeat(np.array([FAST, SLOW], dtype=np.int64) + 5_000, 500)),
        edges=(),
        scale=late.scale,
        bias_ns=5_000,
    )
    (border,) = recurring([execution(1, BORDER), moved], settings=SETTINGS)
    assert moved.duration_at(border.edges[1]) == pytest.approx(BORDER, rel=0.05)


def test_no_border_anywhere_is_none() -> None:
    """Nothing recurs where nothing was found."""
    assert recurring([execution(1), execution(2)], settings=SETTINGS) == ()
