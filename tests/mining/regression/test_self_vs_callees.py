"""A change is placed: in the function itself or below it, under one cause, and moved cost is no loss."""

from __future__ import annotations

import numpy as np
import pytest

from specmine.mining.regression.self_vs_callees import (
    CallTimes,
    Cause,
    ChangeSplit,
    LifetimeMean,
    Part,
    causes_of,
    exchanged,
    split_change,
)

A, B, C, D = (("a", "m"), ("b", "m"), ("c", "m"), ("d", "m"))


def nest(own_ns: float, callee_ns: float, *, seed: int, lifetimes: int = 5, calls: float = 3.0) -> CallTimes:
    """Return a function that calls a callee some times per call; lifetimes differ by 1 % as wholes."""
    rng = np.random.default_rng(seed)
    factors = np.exp(rng.normal(0, 0.01, lifetimes))
    rates = rng.uniform(50, 500, lifetimes)
    own = {str(at): LifetimeMean(mean_ns=factor * (own_ns + calls * callee_ns), rate=rate)
           for at, (factor, rate) in enumerate(zip(factors, rates, strict=True))}  # fmt: skip
    # half of the callee's calls come from elsewhere
    callee = {str(at): LifetimeMean(mean_ns=factor * callee_ns, rate=2 * calls * rate)
              for at, (factor, rate) in enumerate(zip(factors, rates, strict=True))}  # fmt: skip
    return CallTimes(own=own, callees={B: (callee, 0.5)})


@pytest.mark.parametrize(
    ("own_ns", "callee_ns", "where"),
    [
        (1300.0, 1000.0, Part.SELF),
        (1000.0, 1100.0, Part.CALLEES),
        (1300.0, 1100.0, Part.BOTH),
        (1000.0, 1000.0, Part.UNKNOWN),
    ],
)
def test_self_time_is_told_from_callees_by_their_probes(own_ns: float, callee_ns: float, where: Part) -> None:
    """Calls and shares of them make the callee's part; what is left is the function's own."""
    found = split_change(nest(1000, 1000, seed=1), nest(own_ns, callee_ns, seed=2), 0.95)
    assert (found.part, found.by) == (where, "probes")
    assert found.self_ns == pytest.approx(own_ns - 1000, abs=40)
    assert found.callees_ns == pytest.approx(3 * (callee_ns - 1000), abs=120)
    assert found.self_interval is not None
    assert found.self_interval[0] < own_ns - 1000 < found.self_interval[1]


def test_samples_tell_where_no_callee_has_a_probe_if_there_are_enough() -> None:
    """Half of the time inside, then all of what was added too: itself; with ten samples nobody knows."""

    def bare(mean_ns: float, inside: float, samples: float) -> CallTimes:
        own = {str(at): LifetimeMean(mean_ns=mean_ns * (1 + 0.01 * at), rate=10.0) for at in range(3)}
        return CallTimes(own=own, callees={}, inside=inside, samples=samples)

    many = split_change(bare(1000, 0.5, 4000), bare(1500, 0.667, 4000), 0.95)
    below = split_change(bare(1000, 0.5, 4000), bare(1500, 0.333, 4000), 0.95)
    few = split_change(bare(1000, 0.5, 10), bare(1500, 0.667, 10), 0.95)
    assert [each.part for each in (many, below, few)] == [Part.SELF, Part.CALLEES, Part.UNKNOWN]
    assert many.by == "samples" and few == ChangeSplit(part=Part.UNKNOWN)
    leaf = split_change(bare(1000, 0.5, 10), bare(1500, 0.5, 10), 0.95, leaf=True)
    assert (leaf.part, leaf.by) == (Part.SELF, "leaf")


def test_one_lifetime_divides_nothing() -> None:
    """As a single restart shows no change, it shows no place of one."""
    assert split_change(nest(1000, 1000, seed=1, lifetimes=1), nest(2000, 1000, seed=2), 0.95).part is Part.UNKNOWN


def test_callers_come_under_the_deepest_unless_they_are_worse_themselves() -> None:
    """a calls b calls c, all worse: one cause; if b's own time is worse as well, two, and a stays under c."""
    worse = dict.fromkeys((A, B, C), Part.UNKNOWN)
    assert causes_of(worse, [(A, B), (B, C)]) == (Cause(name=C, explains=(A, B)),)
    found = causes_of(worse | {B: Part.SELF, C: Part.SELF, A: Part.CALLEES}, [(A, B), (B, C)], {B: 2.0, C: 1.0})
    assert found == (Cause(name=B), Cause(name=C, explains=(A,)))


def test_cost_that_moved_is_seen_among_siblings_only() -> None:
    """What b gained c lost, below the same caller; d gained as much elsewhere."""
    costs = {B: (0.1, 0.2), C: (0.3, 0.21), D: (0.1, 0.2)}
    callers = {B: {A: 1.0}, C: {A: 1.0}, D: {("z", "m"): 1.0}}
    assert exchanged(costs, callers, 0.02) == {B: (C,), C: (B,)}
    assert exchanged(costs | {C: (0.3, 0.25)}, callers, 0.02) == {}
