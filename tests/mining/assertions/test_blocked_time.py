"""Calls that were blocked are explained by that only if waiting has the difference."""

from __future__ import annotations

import numpy as np
import pytest

from specmine.mining.assertions.blocked_time import blocked_enough
from specmine.mining.assertions.expression import parse
from specmine.mining.inside.call_kinds import kind_windows
from specmine.model.call_path import Frame
from tests.support.insides import inside_of_calls, observation_of

LOCK = Frame("lock", "libc")


@pytest.mark.parametrize(
    ("stood", "work", "enough"),
    [
        (1e6, 0.0, True),  # blocked for all that they take more
        (1e6, 0.9e6, True),  # for 53 % of it
        (1e6, 1.2e6, False),  # for 45 %
        (1e6, -2e6, False),  # such calls are shorter
    ],
)
def test_waiting_must_have_half_of_what_blocked_calls_take_more(stood: float, work: float, enough: bool) -> None:
    """Shares are worked out by hand: stood / (stood + work)."""
    is_blocked = np.arange(400) < 100
    own = 3e6 + is_blocked * work
    inside = inside_of_calls({LOCK: 1e3 + is_blocked * stood}, own, blocked={LOCK: is_blocked * stood})
    windows = kind_windows([observation_of(inside)], (LOCK,), blocked=True)
    assert blocked_enough(parse("blocked under lock"), windows, frozenset()) is enough
    assert blocked_enough(parse("not blocked"), windows, frozenset()) is enough
    assert blocked_enough(parse("calls lock"), windows, frozenset()), "says nothing of waiting"


def test_where_all_calls_are_blocked_nothing_is_told_by_it() -> None:
    """There is no other call to compare them with."""
    inside = inside_of_calls({LOCK: np.full(9, 1e6)}, np.ones(9), blocked={LOCK: np.full(9, 1e6)})
    windows = kind_windows([observation_of(inside)], (LOCK,), blocked=True)
    assert not blocked_enough(parse("blocked"), windows, frozenset())
