"""Disagreements of two models: contradictions are found, what calls cannot decide is told apart from them."""

from __future__ import annotations

import numpy as np
import pytest

from specmine.mining.model_merge.consistency import merge
from specmine.mining.model_merge.contradictions import contradicted, undecided
from specmine.mining.settings import MiningSettings

S = MiningSettings()
Model = dict[str, tuple[int, int]]
Rows = dict[str, tuple[float, ...]]


def model(groups: dict[str, int], slow: dict[str, tuple[int, float]]) -> tuple[Model, Rows]:
    """Return a model and its evidence from the group, the calls and the share of slow ones of each path."""
    rows: Rows = {path: (calls * (1 - share), calls * share) for path, (calls, share) in slow.items()}
    return {path: (group, slow[path][0]) for path, group in groups.items()}, rows


@pytest.mark.parametrize("few", [40, 4_000])
def test_what_one_model_could_not_see_is_no_contradiction(few: int) -> None:
    """One model of few calls has one group where the other has two; with the same shares nothing is contradicted."""
    first, seen = model({"a": 0, "b": 0, "c": 0}, {"a": (few, 0.0), "b": (few, 0.25), "c": (few, 0.0)})
    second, more = model({"a": 0, "b": 1, "c": 0}, {"a": (4000, 0.0), "b": (4000, 0.28), "c": (4000, 0.0)})
    _, how = merge(first, second, (seen, more), settings=S)
    assert (how.undecided_paths, how.undecided_calls) == (1, few + 4000)
    assert (how.paths, how.calls) == (1.0, 1.0)
    assert how.undecided == pytest.approx(1 / 3)
    _, strict = merge(first, second, settings=S)
    assert strict.calls == pytest.approx(2 / 3)


def test_a_planted_contradiction_is_found() -> None:
    """A path that is slow in one model and fast in the other disagrees, however the models are told; and so in both."""
    first, seen = model({"a": 0, "b": 1, "c": 0}, {"a": (500, 0.1), "b": (500, 0.9), "c": (500, 0.1)})
    for groups in ({"a": 0, "b": 1, "c": 1}, {"a": 0, "b": 1, "c": 2}):
        second, other = model(groups, {"a": (500, 0.1), "b": (500, 0.9), "c": (500, 0.9 - 0.3 * (groups["c"] == 2))})
        for one, two, evidence in ((first, second, (seen, other)), (second, first, (other, seen))):
            _, how = merge(one, two, evidence, settings=S)
            assert how.undecided_paths == 0
            assert how.calls == pytest.approx(2 / 3)


def test_a_model_that_sees_the_paths_alike_contradicts_one_that_does_not() -> None:
    """With one group in one model: its many calls exclude what the other saw, its few calls do not."""
    second, other = model({"a": 0, "b": 1}, {"a": (5000, 0.1), "b": (4000, 0.3)})
    for calls, left in ((4_000, 0), (20, 1)):
        first, seen = model({"a": 0, "b": 0}, {"a": (calls, 0.1), "b": (calls, 0.1)})
        _, how = merge(first, second, (seen, other), settings=S)
        assert how.undecided_paths == left


def test_other_loads_shift_all_paths_and_contradict_nothing() -> None:
    """Shares that are higher by the same on all paths leave differences as they are."""
    first, seen = model({"a": 0, "b": 0, "c": 1}, {"a": (900, 0.1), "b": (300, 0.16), "c": (900, 0.5)})
    second, other = model({"a": 0, "b": 2, "c": 1}, {"a": (900, 0.3), "b": (300, 0.36), "c": (900, 0.7)})
    assert undecided(first, second, {0: 0, 1: 1}, (seen, other), settings=S) == {"b"}


def test_without_evidence_all_disagreements_count() -> None:
    """Paths whose class shares are not known, or by another number of classes, are contradicted."""
    first, seen = model({"a": 0, "b": 0}, {"a": (50, 0.0), "b": (10, 0.2)})
    second, other = model({"a": 0, "b": 1}, {"a": (50, 0.0), "b": (10, 0.2)})
    pairs = {0: 0}
    assert undecided(first, second, pairs, (seen, other), settings=S) == {"b"}
    assert undecided(first, second, pairs, ({}, {}), settings=S) == frozenset()
    assert undecided(first, second, pairs, (seen, {"a": other["a"]}), settings=S) == frozenset()
    three = {path: (*row, 0.0) for path, row in other.items()}
    assert undecided(first, second, pairs, (seen, three), settings=S) == frozenset()


@pytest.mark.parametrize("calls", [50, 500])
@pytest.mark.parametrize("shares", [(0.1, 0.4), (0.02, 0.5), (0.0, 0.3)])
def test_chance_contradicts_at_its_level(calls: int, shares: tuple[float, float]) -> None:
    """Equal differences are taken for different ones in about one case of a hundred, and plain ones always."""
    rng = np.random.default_rng([calls, int(100 * shares[0])])

    def drawn(own: float, others: float) -> tuple[np.ndarray, np.ndarray]:
        slow = rng.binomial(calls, own, 2), rng.binomial(calls, others, 2)
        first, second = (np.stack((calls - each, each), axis=1).astype(float) for each in slow)
        return first, second

    found = [contradicted(*drawn(*shares), level=0.01, least=0.0) for _ in range(2_000)]
    assert np.mean(found) < 0.02
    turned = [
        contradicted(one[[0, 0]] * [[1, 1], [0, 0]] + other[[1, 1]] * [[0, 0], [1, 1]], other, level=0.01, least=0.05)
        for one, other in (drawn(0.9, 0.1) for _ in range(200))
    ]
    assert np.mean(turned) > 0.99
