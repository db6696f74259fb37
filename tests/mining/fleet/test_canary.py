"""A canary against its control: what is found, how sure, and what is left open."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from specmine.mining.fleet.canary import Finding, compare_canary


def _group(rng: np.random.Generator, prefix: str, number: int, mean: float = 0.0) -> dict[str, float]:
    return {f"{prefix}{at}": value for at, value in enumerate((mean + rng.normal(0.0, 0.1, number)).tolist())}


def test_a_slower_build_is_worse_and_its_hosts_agree() -> None:
    """By its ratio, with scipy's p-value."""
    rng = np.random.default_rng(1)
    control, canary = _group(rng, "a", 200), _group(rng, "b", 30, math.log(1.5))
    found = compare_canary(control, canary, {})
    assert (found.finding, found.hosts, found.agreeing, found.method) == (Finding.WORSE, (200, 30), 30, "levels")
    expected = stats.ttest_ind(list(canary.values()), list(control.values()), equal_var=False, trim=0.1)
    assert found.p_value == pytest.approx(float(expected.pvalue))
    assert found.interval is not None
    assert found.interval[0] < 1.5 < found.interval[1]


def test_hosts_compared_with_themselves_need_not_be_alike() -> None:
    """A change of 3 % between hosts that differ by a factor of two; what time did to all is no change."""
    rng = np.random.default_rng(2)
    before = {f"{prefix}{at}": rng.normal(0.0, 0.7) for prefix in "ab" for at in range(30)}
    later = {host: value + 0.2 + rng.normal(0.0, 0.01) for host, value in before.items()}
    control = {host: value for host, value in later.items() if host.startswith("a")}
    canary = {host: value + math.log(1.03) for host, value in later.items() if host.startswith("b")}
    found = compare_canary(control, canary, before)
    assert (found.finding, found.method) == (Finding.WORSE, "changes")
    assert found.ratio == pytest.approx(1.03, abs=0.006)
    assert compare_canary(control, canary, {}).finding is Finding.UNDECIDED
    same = {host: value for host, value in later.items() if host.startswith("b")}
    assert compare_canary(control, same, before).finding is Finding.EQUIVALENT


def test_two_hosts_decide_nothing() -> None:
    """However far they lie away, the answer is honest."""
    rng = np.random.default_rng(3)
    found = compare_canary(_group(rng, "a", 50), {"b": 3.0, "c": 3.1}, {})
    assert (found.finding, found.interval) == (Finding.UNDECIDED, None)
    assert "new build" in found.reason
    assert compare_canary({}, {"b": 3.0}, {}).ratio is None


def test_a_host_that_runs_both_is_one_of_the_new_build() -> None:
    """It is not its own control."""
    rng = np.random.default_rng(4)
    control = _group(rng, "a", 10)
    assert compare_canary({**control, "b0": 9.0}, _group(rng, "b", 10), {}).hosts == (10, 10)
