"""Utility: exactly the quotient of the first paper."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from specmine.mining.utility import utility


def test_utility_is_the_quotient_of_ages() -> None:
    """Half as long ago as the chain is long: one half; as long ago, or no chain: one."""
    assert utility(150, 0, 100) == 0.5
    assert utility(200, 0, 100) == 1.0
    assert utility(100, 0, 100) == 0.0
    assert utility(5, None, None) == 1.0


@given(st.integers(0, 10**12), st.integers(1, 10**12), st.integers(0, 10**12), st.integers(0, 10**12))
def test_utility_rises_with_age_and_falls_with_length(start: int, length: int, age: int, more: int) -> None:
    """The three properties that the paper asks for."""
    end = start + length
    now = utility(end + age, start, end)
    assert 0 <= now <= utility(end + age + more, start, end) <= 1
    assert utility(end + more + age, start, end + more) <= now
