"""What may have changed is observed first, with what it calls."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specmine.daemon.config.settings import Settings
from specmine.daemon.controller.allocation.scheduler import plan
from specmine.daemon.controller.call_counts import ProbeState
from specmine.daemon.controller.function import FunctionState, Identity
from specmine.daemon.controller.phase import Phase
from specmine.daemon.controller.profile import Profile
from specmine.mining.assertions.checks import Verification
from specmine.mining.detection.alarm import Stream
from specmine.mining.detection.detector import DetectorState
from specmine.mining.detection.innovations import STEPS
from specmine.mining.detection.state import Excursion, first_state
from specmine.model.violation import What
from tests.support.planned import FUNCTION, MEANS, NOW_NS, learned, seen
from tests.support.simulated import SECOND


def test_what_is_suspected_does_not_wait_until_debts_are_paid_back() -> None:
    """One that is suspected gets an on-phase, of the size of what five seconds bring at most; others none."""
    means = replace(MEANS, budget=2e4, income=1e6, cash=-1e6)
    calm, suspected = seen(learned(), 70.0), seen(learned(), 6.0, urgency=9.0)
    assert plan({FUNCTION.key: calm}, means, Settings()).watches == {}
    found = plan({FUNCTION.key: suspected}, means, Settings())
    assert FUNCTION.key in found.watches and -1e6 - 5e6 < found.cash < -1e6
    many = {}
    for place in range(12):
        function = replace(FUNCTION, offset=place + 1)
        many[function.key] = seen(replace(learned(), identity=Identity(function=function)), 6.0, urgency=9.0)
    assert plan(many, means, Settings()).cash >= -1e6 - 5e6


def test_a_suspected_function_comes_first_and_in_short_windows() -> None:
    """It has probes at once, and its windows end after five seconds instead of ten."""
    suspected = seen(replace(learned(), probe=ProbeState(rate=1000.0)), 2.0, urgency=9.0)
    watch = plan({FUNCTION.key: suspected}, MEANS, Settings()).watches[FUNCTION.key]
    assert (watch.window_ns, watch.on_ns) == (5 * SECOND, 0)
    calm = seen(replace(learned(), probe=ProbeState(rate=1000.0)), 11.0)
    assert plan({FUNCTION.key: calm}, MEANS, Settings()).watches[FUNCTION.key].window_ns == 10 * SECOND


def test_several_suspected_functions_all_get_windows() -> None:
    """However often they are called, none takes the place of others."""
    many = {}
    for place in range(6):
        function = replace(FUNCTION, offset=place + 1)
        one = seen(replace(learned(), identity=Identity(function=function)), 6.0, urgency=9.0 + place)
        many[function.key] = one
    tight = replace(MEANS, budget=1e6, income=1e6, cash=1e7)
    assert set(plan(many, tight, Settings()).watches) == set(many)


def test_what_is_suspected_does_not_take_the_place_of_checks_that_are_due() -> None:
    """A third of the budget is kept for those, however much of it suspicions ask for."""
    functions = {}
    for place in range(8):
        function = replace(FUNCTION, offset=place + 1)
        one = replace(learned(), identity=Identity(function=function), probe=ProbeState(rate=2000.0))
        suspected = place < 4
        one = seen(one, 6.0 if suspected else 70.0, urgency=9.0 if suspected else 0.0)
        if not suspected:
            one = replace(one, verification=Verification(checked_ns=NOW_NS - 70 * SECOND))
        functions[function.key] = one
    tight = replace(MEANS, budget=1e6, income=1e6, cash=1e8)
    assert set(plan(functions, tight, Settings()).watches) == set(functions)


def test_what_a_suspected_function_calls_is_observed_at_once() -> None:
    """Also through a third, in debt and under full pressure, but once since the change, and no more than four."""
    caller = seen(learned(), 3.0, urgency=9.0)
    middle = replace(FUNCTION, offset=50)
    functions = {
        FUNCTION.key: caller,
        middle.key: FunctionState(
            identity=Identity(function=middle), profile=Profile(callers=((FUNCTION.key, 1.0),)), phase=Phase()
        ),
    }
    names = {}
    for place, (name, ago, above) in enumerate(
        (
            ("below", 5.0, FUNCTION.key),
            ("far below", 5.0, middle.key),
            ("seen since", 1.0, FUNCTION.key),
            ("elsewhere", 5.0, "nobody"),
        )
    ):
        one = replace(FUNCTION, offset=100 + place)
        profile = Profile(callers=((above, 1.0),), inclusive_ns=100.0 + place)
        functions[one.key] = seen(replace(learned(), identity=Identity(function=one), profile=profile), ago)
        names[one.key] = name
    tight = replace(MEANS, budget=2e4, income=1e6, cash=-1e6, pressure=1.0)
    found = plan(functions, tight, Settings())
    assert {names[key] for key in found.watches if key in names} == {"below", "far below"}
    assert FUNCTION.key in found.watches and found.cash >= -1e6 - 5e6
    weak = {**functions, FUNCTION.key: seen(learned(), 3.0, urgency=4.5)}
    assert set(plan(weak, tight, Settings()).watches) == {FUNCTION.key}
    for place in range(8):
        one = replace(FUNCTION, offset=200 + place)
        functions[one.key] = seen(
            replace(learned(), identity=Identity(function=one), profile=Profile(callers=((FUNCTION.key, 1.0),))), 5.0
        )
    many = plan(functions, tight, Settings())
    assert len(many.watches) == 5 and set(found.watches) < set(many.watches)


@pytest.mark.parametrize(
    ("evidence", "step", "ago_s", "again"),
    [(1.5, 0, 6.0, True), (0.5, 0, 6.0, False), (1.5, -1, 6.0, False), (1.5, 0, 4.0, False)],
)
def test_what_deviates_below_a_suspected_function_is_observed_again(
    evidence: float, step: int, ago_s: float, again: bool
) -> None:
    """After one window since the change a little evidence of its own is enough: of being slower, five seconds ago."""
    below = replace(FUNCTION, offset=100)
    excursion = Excursion(
        step=step % len(STEPS), evidence=evidence, size=0.7, unsure=0.1, absorbed=0.0, windows=1, total=0.7, since=0.0
    )
    stream = replace(first_state(Stream(what=What.LEVEL, part="all"), 10.0, 0.001), excursions=(excursion,))
    profile = Profile(callers=((FUNCTION.key, 1.0),), inclusive_ns=100.0)
    callee = seen(replace(learned(), identity=Identity(function=below), profile=profile), ago_s)
    detector = DetectorState(streams=(stream,))
    callee = replace(callee, violations=replace(callee.violations, detector=detector))
    callee = replace(callee, verification=Verification(checked_ns=NOW_NS - round(ago_s * SECOND)))
    functions = {FUNCTION.key: seen(learned(), 8.0, urgency=9.0), below.key: callee}
    tight = replace(MEANS, budget=2e4, income=1e6, cash=-1e6, pressure=1.0)
    assert (below.key in plan(functions, tight, Settings()).watches) is again


def test_what_sampling_finds_more_of_is_timed_before_others() -> None:
    """Of finished functions with windows of one age the one that surprised gets the next, though none is due."""
    functions = {}
    for place in range(4):
        function = replace(FUNCTION, offset=place + 1)
        one = replace(learned(), identity=Identity(function=function), probe=ProbeState(rate=20_000.0))
        functions[function.key] = seen(replace(one, verification=Verification(checked_ns=NOW_NS - SECOND)), 6.0)
    key = list(functions)[2]
    tight = replace(MEANS, budget=1e6, income=1e6, cash=-1e5)
    assert plan(functions, tight, Settings()).watches == {}
    assert set(plan(functions, replace(tight, surprising=frozenset({key})), Settings()).watches) == {key}


def test_a_wait_for_work_gets_no_more_than_its_checks() -> None:
    """It is never violated: suspicions and what is left go to others, and a window each minute tells its levels."""

    def watched(age_s: int, urgency: float, *, waits: bool) -> bool:
        one = replace(learned(), profile=Profile(loop_bottom=waits), probe=ProbeState(rate=20_000.0))
        one = seen(replace(one, verification=Verification(checked_ns=NOW_NS - age_s * SECOND)), float(age_s), urgency)
        return bool(plan({one.key: one}, replace(MEANS, budget=1e6, income=1e6, cash=1e9), Settings()).watches)

    assert watched(20, 0.0, waits=False)
    assert watched(20, 10.0, waits=False)
    assert not watched(20, 0.0, waits=True)
    assert not watched(20, 10.0, waits=True)
    assert watched(70, 0.0, waits=True)
