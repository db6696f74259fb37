"""The host that is slow is named, and nobody where hosts only differ."""

from __future__ import annotations

import math

import numpy as np

from specmine.mining.fleet.host_factors import host_factors


def _levels(hosts: int, functions: int, seed: int) -> dict[tuple[str, str], float]:
    rng = np.random.default_rng(seed)
    effects = rng.normal(0.0, 0.05, hosts)
    return {
        (f"f{function}", f"h{host}"): function + effects[host] + rng.normal(0.0, 0.04)
        for function in range(functions) for host in range(hosts)
    }  # fmt: skip


def test_one_slow_host_is_named() -> None:
    """By its factor, in all its functions."""
    levels = _levels(20, 10, 1)
    for function in range(10):
        levels[f"f{function}", "h17"] += math.log(2.3)
    first, second, *_ = host_factors(levels)
    assert (first.host, first.stands_out, first.functions, first.slower_in) == ("h17", True, 10, 10)
    assert abs(math.exp(first.log_factor) / 2.3 - 1) < 0.15
    assert not second.stands_out


def test_a_function_that_is_slow_on_a_host_is_no_slow_host() -> None:
    """One of ten."""
    levels = _levels(20, 10, 2)
    levels["f3", "h17"] += math.log(5)
    assert not any(each.stands_out for each in host_factors(levels))


def test_hosts_that_only_differ_are_not_named() -> None:
    """In 200 fleets of three to forty hosts at most one in a hundred."""
    wrong = sum(any(each.stands_out for each in host_factors(_levels(3 + seed % 38, 8, seed))) for seed in range(200))
    assert wrong <= 2


def test_three_hosts_are_enough_and_two_are_not() -> None:
    """Of two nobody knows which one is slow."""
    levels = {(f"f{at}", host): float(at) + (0.9 if host == "slow" else 0.01 * len(host))
              for at in range(4) for host in ("a", "bb", "slow")}  # fmt: skip
    assert [each.host for each in host_factors(levels) if each.stands_out] == ["slow"]
    assert host_factors({key: value for key, value in levels.items() if key[1] != "a"}) == []
