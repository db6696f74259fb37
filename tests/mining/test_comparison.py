"""Consistency of two models: paths and calls grouped alike."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmine.mining.comparison import consistency

models = st.dictionaries(st.integers(0, 8), st.tuples(st.integers(0, 3), st.integers(1, 100)))


def test_a_stray_path_counts_once() -> None:
    """Three of four shared paths agree, with their share of the calls; what one model lacks does not count."""
    first = {"a": (0, 10), "b": (0, 10), "c": (1, 10), "d": (1, 70), "e": (0, 5)}
    second = {"a": (7, 10), "b": (3, 10), "c": (3, 10), "d": (3, 70)}
    got = consistency(first, second)
    assert (got.consistent_paths, got.shared_paths) == (3, 4)
    assert got.calls == pytest.approx(180 / 200)


@given(models)
def test_a_model_agrees_with_itself_under_other_numbers(model: dict[int, tuple[int, int]]) -> None:
    """Group numbers are only names."""
    renamed = {path: (3 - group, calls) for path, (group, calls) in model.items()}
    got = consistency(model, renamed)
    assert got.paths == got.calls == 1.0


@given(models, models)
def test_consistency_is_symmetric(first: dict[int, tuple[int, int]], second: dict[int, tuple[int, int]]) -> None:
    """Shares lie in [0, 1] and do not depend on which model comes first, in paths and calls shared."""
    one, other = consistency(first, second), consistency(second, first)
    assert 0 <= one.paths <= 1
    assert 0 <= one.calls <= 1
    assert (one.shared_paths, one.shared_calls) == (other.shared_paths, other.shared_calls)
