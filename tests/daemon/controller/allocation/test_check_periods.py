"""Functions in which more of the time goes are observed oftener, at the same number of windows on the whole."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specmine.daemon.config.settings import SECOND, Settings
from specmine.daemon.controller.allocation.check_periods import MOST_OFTEN, check_periods
from specmine.daemon.controller.allocation.means import Means
from specmine.daemon.controller.call_counts import ProbeState
from specmine.daemon.controller.function import FunctionState, Identity
from specmine.daemon.controller.hotness import total_of
from specmine.daemon.controller.phase import Phase, State
from specmine.daemon.controller.sampling.profile import Profile
from specmine.daemon.controller.violations.function_violations import FunctionViolations, OpenViolation
from specmine.model.batch import Prices
from specmine.model.function import Function
from tests.support.violations import violation

PRICES = Prices(count_ns=700, time_ns=1300, path_ns=2300, stepped_ns=9000, sample_ns=5000, bias_ns=400)
MEANS = Means(budget=1e7, income=1e7, cash=1e7, prices=PRICES, slow_links=False, now_ns=1000 * SECOND)


def finished(offset: int, own_ms: float, *, loop_bottom: bool = False, hinted: bool = False) -> FunctionState:
    """Return a function that is known, with its time of its own."""
    own_ns = own_ms * 1e6
    return FunctionState(
        identity=Identity(
            function=Function(build_id="b", offset=offset, name=f"f{offset}", module="m", in_program=True),
            hinted=hinted,
        ),
        phase=Phase(state=State.SINGLE),
        probe=ProbeState(rate=1000.0),
        profile=Profile(own_ns=own_ns, cpu_ns=own_ns, inclusive_ns=own_ns, samples=9, loop_bottom=loop_bottom),
    )


def seconds(functions: list[FunctionState], means: Means = MEANS) -> list[float]:
    """Return the period of each function."""
    periods = check_periods(functions, 1e6, total_of(functions), means, Settings())
    return [periods[one.key] / SECOND for one in functions]


def test_periods_go_by_the_root_of_the_time_and_add_up_to_as_many_checks() -> None:
    """Nine times the time: three times as often; the bounds hold; as many windows a second as with one period."""
    one, nine = seconds([finished(1, 1), finished(2, 9)])
    assert one / nine == pytest.approx(3)
    shares = [0.001, 1, 2, 4, 8, 1000]
    periods = seconds([finished(place, share) for place, share in enumerate(shares)])
    assert periods == sorted(periods, reverse=True)
    assert periods[0] / periods[-1] <= MOST_OFTEN**2 + 1e-9
    assert sum(1 / period for period in periods) == pytest.approx(len(shares) / 10)


def test_time_in_callees_counts_and_time_without_work_does_not() -> None:
    """A caller of a helper that others call too may be slower alone; a main loop waits most of its time."""
    caller = finished(1, 0)
    caller = replace(caller, profile=replace(caller.profile, inclusive_ns=9e6))
    loop, helper, small = finished(2, 9), finished(3, 9), finished(4, 1)
    functions = [caller, loop, helper, small]
    means = replace(MEANS, loop_waits={loop.key: 1.0})
    assert seconds(functions, means)[0] == pytest.approx(seconds(functions, means)[2])
    assert seconds(functions, means)[1] > seconds(functions, means)[3] > seconds(functions, means)[0]


def test_functions_of_equal_time_and_of_none_have_one_period() -> None:
    """Ten seconds where the budget allows it."""
    assert seconds([finished(1, 5), finished(2, 5)]) == [10, 10]
    assert seconds([finished(1, 0), finished(2, 0)]) == [10, 10]
    assert check_periods([], 1e6, total_of([]), MEANS, Settings()) == {}


def test_none_waits_longer_than_asked_for_unless_our_own_work_must_be_saved() -> None:
    """``verify_every`` is the most; under pressure twice, and stretched as checks are."""
    functions = [finished(1, 0.001), *(finished(place, 50) for place in range(2, 9))]
    dear = replace(MEANS, prices=replace(PRICES, time_ns=10_000_000.0))
    assert max(seconds(functions, dear)) == 60
    assert 60 < max(seconds(functions, replace(MEANS, pressure=1.0))) <= 120
    assert 120 < max(seconds(functions, replace(MEANS, pressure=1.0, stretch=3.0))) <= 240


def test_a_named_function_is_observed_as_often_as_the_average_and_a_wait_for_work_rarely() -> None:
    """However little time goes into the one, and however much into the other."""
    busy = [finished(place, 10) for place in range(3, 9)]
    named, rare, waits, *_ = seconds(
        [finished(1, 0.01, hinted=True), finished(2, 0.01), finished(9, 500, loop_bottom=True), *busy]
    )
    assert named < rare
    assert waits == 60


def test_violated_functions_are_observed_as_often_as_asked_for() -> None:
    """Though our own work must be saved; where many are violated at once, each waits longer again."""
    pressed = replace(MEANS, pressure=1.0, stretch=3.0)
    functions = [finished(1, 0.001), *(finished(place, 50) for place in range(2, 9))]
    usual = seconds(functions, pressed)

    def violated(one: FunctionState) -> FunctionState:
        return replace(one, violations=FunctionViolations(standing=(OpenViolation(violation=violation(one.key)),)))

    assert usual[0] > 120
    assert seconds([violated(functions[0]), *functions[1:]], pressed) == [60, *usual[1:]]
    many = [violated(finished(place, 5)) for place in range(16)]
    assert min(seconds(many, pressed)) == min(120, *seconds([finished(place, 5) for place in range(16)], pressed))


def test_known_functions_are_checked_each_minute_while_others_wait_for_their_levels() -> None:
    """Of what nobody knows no change is found at all; the nearer to enough, the more often."""
    functions = [finished(1, 5), finished(2, 5)]
    for backlog, period_s in ((0.0, 10), (0.5, 35), (1.0, 60)):
        assert seconds(functions, replace(MEANS, backlog=backlog)) == [period_s, period_s]
