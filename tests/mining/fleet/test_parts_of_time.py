"""Of which kind the difference between hosts is."""

from __future__ import annotations

import pytest

from specmine.mining.fleet.parts_of_time import PartsOfTime, mean_parts, shares_of_difference


def _parts(running: float, waiting: float, blocked: float) -> PartsOfTime:
    return PartsOfTime(running=running, waiting=waiting, blocked=blocked)


def test_shares_are_those_of_the_growth() -> None:
    """A function counts by how much it grew, not by how long it takes."""
    usual = {"short": _parts(8.0, 1.0, 1.0), "long": _parts(500.0, 0.0, 500.0)}
    slow = {"short": _parts(8.0, 1.0, 11.0), "long": _parts(500.0, 0.0, 1500.0), "unknown": _parts(9e9, 0.0, 0.0)}
    shares = shares_of_difference(slow, usual, slower=True)
    assert shares is not None
    assert (shares.running, shares.waiting, shares.blocked) == pytest.approx((0.0, 0.0, 1.0))
    slow["long"] = _parts(1500.0, 0.0, 500.0)
    shares = shares_of_difference(slow, usual, slower=True)
    assert shares is not None
    assert (shares.running, shares.waiting, shares.blocked) == pytest.approx((0.5, 0.0, 0.5))


def test_a_faster_host_has_shares_too() -> None:
    """What it lacks is of that kind."""
    shares = shares_of_difference({"f": _parts(5.0, 0.0, 1.0)}, {"f": _parts(5.0, 4.0, 1.0)}, slower=False)
    assert shares is not None
    assert (shares.running, shares.waiting, shares.blocked) == pytest.approx((0.0, 1.0, 0.0))


@pytest.mark.parametrize(
    ("these", "slower"),
    [({}, True), ({"g": _parts(9.0, 0.0, 0.0)}, True), ({"f": _parts(1.02, 0.0, 0.0)}, True),
     ({"f": _parts(2.0, 0.0, 0.0)}, False)],
)  # fmt: skip
def test_nothing_is_said_of_what_does_not_differ_so(these: dict[str, PartsOfTime], slower: bool) -> None:
    """No function in common, the same time, or a mean that went the other way than the median."""
    assert shares_of_difference(these, {"f": _parts(1.0, 0.0, 0.0)}, slower=slower) is None


def test_the_mean_over_hosts() -> None:
    """Part by part."""
    assert mean_parts([_parts(1.0, 2.0, 3.0), _parts(3.0, 2.0, 1.0)]) == _parts(2.0, 2.0, 2.0)
