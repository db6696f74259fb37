"""The share of false ones among the changes reported is limited."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from specmine.mining.regression.false_discovery_rate import e_discoveries, q_values


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=30))
def test_q_values_are_scipys(p_values: list[float]) -> None:
    """Benjamini and Hochberg's adjustment."""
    assert q_values(p_values) == pytest.approx(list(stats.false_discovery_control(p_values)))


def test_e_values_are_rejected_by_their_rank() -> None:
    """The k largest with e >= n / (rate k): 100 alone of ten at 10 % is enough, 60 and 55 are together."""
    assert e_discoveries({"a": math.log(101.0), "b": 0.0}, 10, 0.1) == {"a"}
    assert e_discoveries({"a": math.log(99.0), "b": 0.0}, 10, 0.1) == frozenset()
    assert e_discoveries({"a": math.log(60.0), "b": math.log(55.0), "c": 0.0}, 10, 0.1) == {"a", "b"}
    with pytest.raises(ValueError, match="2 values of 1 tests"):
        e_discoveries({"a": 1.0, "b": 2.0}, 1, 0.1)
