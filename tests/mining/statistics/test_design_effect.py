"""What calls are worth: shares that vary between windows cost paths of many calls most, bunches all alike."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from specmine.mining.statistics.design_effect import design_effect

CALLS = [10, 20, 40, 80, 160, 320, 640, 1_280] * 5
"""Calls of each path in a window."""


def drawn(rng: np.random.Generator, *, spread: float | None = None, bunch: int = 1) -> NDArray[np.int64]:
    """Draw ten windows of two classes; ``spread`` is the size of the beta by which shares vary between windows."""
    table = np.zeros((10, len(CALLS), 2), dtype=np.int64)
    for window in range(10):
        for path, calls in enumerate(CALLS):
            share = rng.beta(0.4 * spread, 0.6 * spread) if spread else 0.4
            slow = bunch * rng.binomial(calls // bunch, share)
            table[window, path] = calls // bunch * bunch - slow, slow
    return table


def test_shares_that_vary_cost_paths_by_their_calls() -> None:
    """Beta-binomial windows of m calls with size 99: 1 + (m - 1) / 100 calls are worth one."""
    got = np.array(design_effect(drawn(np.random.default_rng(1), spread=99.0)).effects)
    expected = 1 + (np.array(CALLS) - 1) / 100
    assert float(got[7]) == pytest.approx(float(expected[7]), rel=0.25)
    assert got[0] < 1.5
    assert np.all(np.diff(got[:8]) > 0)


def test_bunches_cost_all_paths_alike() -> None:
    """Calls of one class come ten at a time: each ten are worth one, on paths of few calls too."""
    got = design_effect(drawn(np.random.default_rng(2), bunch=10)).effects
    assert got[1] == pytest.approx(10.0, rel=0.35)
    assert got[7] == pytest.approx(10.0, rel=0.35)


def test_independent_calls_are_worth_themselves() -> None:
    """Nearly so on every path, in ten draws."""
    for seed in range(10):
        assert max(design_effect(drawn(np.random.default_rng(seed))).effects) < 1.6


def test_paths_that_change_for_good_are_no_noise() -> None:
    """Four of forty paths have other shares in half of the windows."""
    rng = np.random.default_rng(3)
    table = drawn(rng, spread=99.0)
    calm = design_effect(table).effects
    table[5:, 4:36:8] = table[5:, 4:36:8, ::-1]
    assert design_effect(table).effects == pytest.approx(calm, rel=0.3)


def test_what_tells_nothing_is_taken_for_independent() -> None:
    """No path, one window, one class, few calls."""
    for shape, calls in (((10, 0, 2), 0), ((1, 3, 2), 50), ((10, 3, 1), 50), ((10, 3, 2), 1)):
        got = design_effect(np.full(shape, calls, dtype=np.int64))
        assert got.effects == (1.0,) * shape[1]
        assert got.noise.factor == 1.0
