"""The spread divides as the definition of the covariance says, on made-up calls whose every part is known."""

from __future__ import annotations

import numpy as np
import pytest

from specmine.mining.inside.spread import spread
from specmine.model.call_path import Frame
from specmine.model.histogram import Histogram
from specmine.model.inside.parts import Inside
from tests.support.insides import inside_of_calls

LOCK, READ = Frame("lock", "libc"), Frame("read", "libc")


def test_shares_of_the_variance_are_covariances() -> None:
    """Compared with numpy's covariance of the single calls; the shares add up to 1."""
    chance = np.random.default_rng(2)
    number = 50_000
    lock = np.where(chance.random(number) < 0.3, chance.exponential(200_000, number), 0.0)
    read = chance.lognormal(np.log(80_000), 0.3, number)
    own, waits = chance.lognormal(np.log(50_000), 0.2, number), chance.exponential(30_000, number)
    found = spread(inside_of_calls({LOCK: lock, READ: read}, own + waits, own_blocked=waits))
    assert found is not None
    whole = lock + read + own + waits
    shares = {(part.callee, part.what): part for part in found.parts}
    for key, part in (((LOCK, ""), lock), ((READ, ""), read), ((None, "blocked"), waits), ((None, "running"), own)):
        expected = np.cov(part, whole)[0, 1] / whole.var()
        assert shares[key].variance == pytest.approx(expected, abs=0.01), key
        assert shares[key].mean_ns == pytest.approx(part.mean(), rel=0.02)
    assert sum(part.variance for part in found.parts) == pytest.approx(1.0, abs=1e-6)
    assert found.parts[0].callee == LOCK
    assert found.deviation_ns == pytest.approx(whole.std(), rel=0.02)


def test_the_excess_of_the_slowest_calls_divides_likewise() -> None:
    """Two in a hundred calls wait 5 ms: all of what the slowest 1 % take more is that."""
    chance = np.random.default_rng(3)
    number = 40_000
    lock = np.where(chance.random(number) < 0.02, 5e6, 1000.0)
    own = chance.lognormal(np.log(100_000), 0.5, number)
    found = spread(inside_of_calls({LOCK: lock}, own))
    assert found is not None
    assert found.excess_ns == pytest.approx(5e6, rel=0.05)
    parts = {part.callee: part.excess for part in found.parts}
    assert parts[LOCK] == pytest.approx(1.0, abs=0.03)
    assert sum(part.excess or 0.0 for part in found.parts) == pytest.approx(1.0, abs=1e-6)


def test_few_calls_or_none_that_differ_divide_nothing() -> None:
    """A tail of less than twenty calls says nothing; a function that always takes the same has no spread."""
    own = np.random.default_rng(4).lognormal(11, 0.4, 300)
    found = spread(inside_of_calls({LOCK: own / 2}, own))
    assert found is not None
    assert found.excess_ns is None
    assert all(part.excess is None for part in found.parts)
    same = Histogram.from_pairs([200], [1000])
    assert spread(Inside(calls=same, timed=(LOCK,))) is None
