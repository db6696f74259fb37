"""Runs take turns, in random order, so that time does the same to all builds."""

from __future__ import annotations

from collections import Counter

from specmine.fleet.lab.run_order import runs_in_order


def test_each_block_has_a_run_of_each_build() -> None:
    """One after the other, and both orders occur."""
    runs = runs_in_order(["a", "b", "c"], rebuilds=1, lifetimes=40, seed=1)
    assert [each.number for each in runs] == list(range(120))
    orders = Counter(tuple(each.build for each in runs[at : at + 3]) for at in range(0, 120, 3))
    assert len(orders) == 6 and sum(orders.values()) == 40
    assert all({each.block for each in runs[at : at + 3]} == {at // 3} for at in range(0, 120, 3))


def test_the_seed_decides() -> None:
    """The same seed gives the same order, another one another."""
    first, again, other = (runs_in_order(["a", "b"], rebuilds=1, lifetimes=30, seed=seed) for seed in (1, 1, 2))
    assert first == again != other


def test_the_runs_of_a_making_stay_together() -> None:
    """A block has all runs of one making of each build, which still take turns."""
    runs = runs_in_order(["a", "b"], rebuilds=3, lifetimes=5, seed=1)
    assert Counter((each.rebuild, each.build) for each in runs) == {(at, one): 5 for at in range(3) for one in "ab"}
    assert all(each.block == each.rebuild for each in runs)
    assert all({one.build for one in runs[at : at + 2]} == {"a", "b"} for at in range(0, 30, 2))
