"""Sides that did not take turns in time are recognised, those that did are not accused."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from specmine.mining.comparison.interleaving import interleaving


@pytest.mark.parametrize(
    ("order", "interleaved", "exchanges"),
    [
        ("bnbnbnbnbn", True, 9),
        ("bbbbbnnnnn", False, 1),
        ("nnnnnbbbbb", False, 1),
        ("bbnn", False, 1),
        ("bnnb", True, 2),
        ("bbbbbbbbbnbnnnnnnnnn", False, 3),
        ("bbnbnnbnbbnnbbnbnbnn", True, 13),
    ],
)
def test_the_order_of_one_host(order: str, interleaved: bool, exchanges: int) -> None:
    """One side after the other is not interleaved, neither is hardly any exchange."""
    times = {side: [at + 1 for at, letter in enumerate(order) if letter == side] for side in "bn"}
    found = interleaving({"h": times["b"]}, {"h": times["n"]})
    assert (found.interleaved, found.exchanges) == (interleaved, exchanges)


def test_the_expected_exchanges_are_those_of_all_orders() -> None:
    """Of four base and three new lifetimes all orders are drawn up."""
    exchanges = [
        sum(first != second for first, second in itertools.pairwise(at in chosen for at in range(7)))
        for chosen in itertools.combinations(range(7), 4)
    ]
    found = interleaving({"h": [1, 2, 3, 4]}, {"h": [5, 6, 7]})
    assert found.expected == pytest.approx(np.mean(exchanges))


def test_random_orders_are_seldom_called_not_interleaved() -> None:
    """At most 5 % of random orders of ten and ten, on one host and over two."""
    rng = np.random.default_rng(1)
    for hosts in (1, 2):
        found = 0
        for _ in range(2000):
            sides: list[dict[str, list[int]]] = [{}, {}]
            for host in range(hosts):
                for at, side in enumerate(rng.permutation([0] * 10 + [1] * 10)):
                    sides[side].setdefault(str(host), []).append(at + 1)
            found += interleaving(*sides).interleaved is False
        assert found / 2000 <= 0.055


def test_hosts_that_one_side_alone_ran_on_say_nothing() -> None:
    """Without a shared host, or without times, the order is unknown."""
    assert interleaving({"a": [1]}, {"b": [2]}).interleaved is None
    assert interleaving({"a": [0, 1]}, {"a": [2, 3]}).interleaved is None
    assert interleaving({"a": [1, 2], "b": [1]}, {"a": [3, 4], "c": [2]}).interleaved is False
