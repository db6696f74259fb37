"""Grouping of call paths: what differs is told apart, what does not is left together."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from specmine.mining.behaviours.path_clustering import differs, group_paths, path_dispersion
from specmine.mining.settings import MiningSettings
from specmine.mining.statistics.class_shares import Dispersion

S = MiningSettings()


def windows(
    rng: np.random.Generator,
    calls: list[int],
    upper: list[float],
    *,
    count: int = 10,
    spread: float | None = None,
) -> NDArray[np.int64]:
    """Draw calls per (window, path, class); ``spread`` is the beta's size by which shares vary between windows."""
    table = np.zeros((count, len(calls), 2), dtype=np.int64)
    for w in range(count):
        for p, (n, share) in enumerate(zip(calls, upper, strict=True)):
            m = rng.poisson(n / count)
            own = rng.beta(share * spread, (1 - share) * spread) if spread else share
            slow = rng.binomial(m, own)
            table[w, p] = m - slow, slow
    return table


def test_two_kinds_of_paths_are_two_groups() -> None:
    """Numbered by calls, most first."""
    rng = np.random.default_rng(1)
    got = group_paths(windows(rng, [3_000, 4_000, 3_500], [0.02, 0.4, 0.4]), settings=S)
    assert got.labels == (1, 0, 0)
    assert got.groups == 2
    assert got.agreement == pytest.approx(1.0)


def test_three_groups_are_not_taken_for_two() -> None:
    """Equal agreement of the halves does not stop the rise of k."""
    rng = np.random.default_rng(2)
    shares = [0.05] * 4 + [0.4] * 4 + [0.8] * 4
    got = group_paths(windows(rng, [1_000] * 12, shares), settings=S)
    assert got.groups == 3
    assert len(set(got.labels[:4])) == len(set(got.labels[4:8])) == len(set(got.labels[8:])) == 1


def test_paths_of_one_behaviour_stay_together() -> None:
    """At 1 % at most, over few and many paths, with shares that vary between windows too."""
    rng = np.random.default_rng(3)
    invented = 0
    for paths, spread in ((3, None), (40, None), (300, None), (3, 50.0), (40, 50.0)):
        for _ in range(20):
            calls = (rng.pareto(1.2, paths) * 200 + 3).astype(int).clip(max=20_000).tolist()
            invented += group_paths(windows(rng, calls, [0.35] * paths, spread=spread), settings=S).groups > 1
    assert invented <= 3


def test_paths_of_few_calls_invent_nothing_and_go_only_where_it_is_clear() -> None:
    """Two calls of a path that are both slow are no new group, and no reason to assign it."""
    rng = np.random.default_rng(4)
    table = windows(rng, [5_000, 5_000, 0, 0], [0.05, 0.5, 0.5, 0.5])
    table[0, 2] = 0, 2
    table[1, 3] = 0, 9
    got = group_paths(table, settings=S)
    assert got.groups == 2
    assert got.labels[2] is None
    assert got.labels[3] == got.labels[1]


def test_a_difference_below_the_minimum_is_none() -> None:
    """With a million calls each 0.30 and 0.33 differ significantly, but not by enough."""
    rng = np.random.default_rng(5)
    table = windows(rng, [1_000_000, 1_000_000], [0.30, 0.33])
    assert differs(table[:, 0].astype(np.float64), table[:, 1].astype(np.float64), Dispersion())[0] < 1e-9
    assert group_paths(table, settings=S).groups == 1
    assert group_paths(windows(rng, [1_000_000] * 2, [0.30, 0.37]), settings=S).groups == 2


def test_the_dispersion_between_windows_is_found() -> None:
    """Beta-binomial windows of 100 calls with size 50: 1 + 99 / 51; independent calls: 1."""
    rng = np.random.default_rng(6)
    wide = windows(rng, [4_000] * 20, [0.4] * 20, count=40, spread=50.0)
    assert path_dispersion(wide).factor == pytest.approx(1 + 99 / 51, rel=0.2)
    assert path_dispersion(windows(rng, [4_000] * 20, [0.4] * 20, count=40)).factor < 1.1


def test_the_same_input_gives_the_same_grouping() -> None:
    """And the order of other paths changes no one's company."""
    rng = np.random.default_rng(7)
    table = windows(rng, [500] * 30, [0.1, 0.5, 0.9] * 10)
    first = group_paths(table, settings=S)
    assert group_paths(table.copy(), settings=S) == first
    turned = group_paths(table[:, ::-1], settings=S).labels[::-1]
    assert len(set(zip(first.labels, turned, strict=True))) == first.groups


def test_no_path_one_path_and_one_class_are_one_group() -> None:
    """Nothing to tell apart."""
    assert group_paths(np.zeros((3, 0, 2), dtype=np.int64), settings=S).labels == ()
    assert group_paths(np.full((3, 1, 2), 50), settings=S).groups == 1
    assert group_paths(np.full((3, 4, 1), 50), settings=S).groups == 1


def test_five_windows_of_one_path_with_two_classes_tell() -> None:
    """A path with a quarter of fast calls in each window is a group of its own beside others that have none."""
    table = np.zeros((5, 6, 2), dtype=np.int64)
    table[:, :, 1] = np.array([120, 110, 90, 30, 6, 3])
    table[:, 2, 0] = 23, 24, 16, 19, 27
    got = group_paths(table, settings=S)
    assert got.groups == 2
    assert got.labels[2] != got.labels[0] == got.labels[1] == got.labels[3]
