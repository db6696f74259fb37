"""Consistency of two models: paths and calls grouped alike."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmine.mining.model_merge.consistency import merge, shares_alike
from specmine.mining.settings import MiningSettings

models = st.dictionaries(st.integers(0, 8), st.tuples(st.integers(0, 3), st.integers(1, 100)))


def test_a_stray_path_counts_once() -> None:
    """Three of four shared paths agree, with their share of the calls; what one model lacks does not count."""
    first = {"a": (0, 10), "b": (0, 10), "c": (1, 10), "d": (1, 70), "e": (0, 5)}
    second = {"a": (7, 10), "b": (3, 10), "c": (3, 10), "d": (3, 70)}
    got = merge(first, second)[1]
    assert (got.consistent_paths, got.shared_paths) == (3, 4)
    assert got.calls == pytest.approx(180 / 200)


def test_pairs_of_calls_are_together_or_apart() -> None:
    """A model that splits a group in two halves agrees about all pairs but those across the halves."""
    first = {"a": (0, 10), "b": (0, 10), "c": (1, 20)}
    second = {"a": (0, 10), "b": (1, 10), "c": (2, 20)}
    got = merge(first, second)[1]
    assert got.calls == pytest.approx(60 / 80)
    assert got.pairs == pytest.approx(1 - 2 * 20 * 20 / 80**2)


@given(models, models)
def test_pairs_are_those_that_can_be_counted(
    first: dict[int, tuple[int, int]], second: dict[int, tuple[int, int]]
) -> None:
    """The formula over the table of groups gives what counting all pairs of paths gives."""
    both = sorted(set(first) & set(second))
    weight = {path: first[path][1] + second[path][1] for path in both}
    agree = sum(
        weight[p] * weight[q]
        for p in both
        for q in both
        if (first[p][0] == first[q][0]) == (second[p][0] == second[q][0])
    )
    total = sum(weight.values()) ** 2
    assert merge(first, second)[1].pairs == pytest.approx(agree / total if total else 1.0)


@given(models)
def test_a_model_agrees_with_itself_under_other_numbers(model: dict[int, tuple[int, int]]) -> None:
    """Group numbers are only names."""
    renamed = {path: (3 - group, calls) for path, (group, calls) in model.items()}
    got = merge(model, renamed)[1]
    assert got.paths == got.calls == 1.0


@given(models, models)
def test_consistency_is_symmetric(first: dict[int, tuple[int, int]], second: dict[int, tuple[int, int]]) -> None:
    """Shares lie in [0, 1] and do not depend on which model comes first, in paths and calls shared."""
    one, other = merge(first, second)[1], merge(second, first)[1]
    assert 0 <= one.paths <= 1
    assert 0 <= one.calls <= 1
    assert (one.shared_paths, one.shared_calls) == (other.shared_paths, other.shared_calls)


def test_merging_joins_groups_that_share_most_calls() -> None:
    """Numbers of the first stay, groups without a partner get new ones, the heavier opinion wins."""
    first = {"a": (0, 10), "b": (0, 10), "c": (1, 50)}
    second = {"a": (5, 90), "b": (2, 20), "c": (2, 90), "d": (5, 1), "e": (9, 1)}
    got, how = merge(first, second)
    assert got == {"a": (0, 100), "b": (1, 30), "c": (1, 140), "d": (0, 1), "e": (2, 1)}
    assert (how.consistent_paths, how.shared_paths) == (2, 3)
    assert how.calls == pytest.approx(240 / 270)


@given(models, models)
def test_merging_loses_no_call(first: dict[int, tuple[int, int]], second: dict[int, tuple[int, int]]) -> None:
    """Calls add up, paths are those of both, and how far they agree is what consistency says."""
    got, how = merge(first, second)
    assert set(got) == set(first) | set(second)
    both = [*first.values(), *second.values()]
    assert sum(calls for _, calls in got.values()) == sum(calls for _, calls in both)
    assert how == merge(first, second)[1]


@given(models)
def test_merging_a_model_with_itself_changes_no_group(model: dict[int, tuple[int, int]]) -> None:
    """Only the calls double."""
    assert merge(model, model)[0] == {path: (group, 2 * calls) for path, (group, calls) in model.items()}


def test_shares_are_compared_path_by_path() -> None:
    """Few calls tell no difference, many a small one that nobody would act on; paths without partner do not count."""
    settings = MiningSettings()
    first = {"same": (500, 500), "few": (5, 0), "small": (50_000, 50_000), "other": (900, 100), "alone": (9, 9)}
    second = {"same": (510, 490), "few": (3, 2), "small": (52_000, 48_000), "other": (100, 900), "wide": (1, 1, 1)}
    total = 2000 + 10 + 200_000 + 2000
    assert shares_alike(first, second, settings=settings) == pytest.approx((total - 2000) / total)
    assert shares_alike({"a": (1, 2)}, {"a": (1, 2, 3)}, settings=settings) is None
    assert shares_alike({"a": ()}, {"a": ()}, settings=settings) is None
