"""What of the host's environment explains an excess."""

from __future__ import annotations

import pytest

from specmine.model.host.environment import Environment, cause_of

KNOWN = Environment(
    slice_seconds=0.00402,
    quota_seconds=0.02,
    period_seconds=0.1,
    tick_cost_seconds=20e-6,
    hypervisor_slice_seconds=0.0305,
)


@pytest.mark.parametrize(
    ("excess", "code", "times"),
    [
        (0.0041, "slices", 1),
        (0.00804, "slices", 2),
        (0.0121, "slices", 3),
        (0.0800, "quota", 1),
        (0.0305, "steal", 1),
        (21e-6, "ticks", 1),
        (40e-6, "ticks", 2),
        (0.0060, None, 0),
        (0.0005, None, 0),
    ],
)
def test_an_excess_has_the_cause_that_it_equals(excess: float, code: str | None, times: int) -> None:
    """Whole slices, the quota's pause, the hypervisor's turn and ticks are named; anything else is not."""
    cause = cause_of(excess, KNOWN)
    assert (cause.code if cause else None) == code
    if cause is not None:
        assert cause.times == times


def test_nothing_is_named_where_nothing_is_known() -> None:
    """Without derived properties no cause is made up."""
    assert cause_of(0.004, Environment()) is None
