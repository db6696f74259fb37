"""What a suspected function calls is observed with it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specmine.daemon.config.settings import Settings
from specmine.daemon.controller.allocation.scheduler import plan
from specmine.daemon.controller.function import FunctionState, Identity
from specmine.daemon.controller.phase import Phase, State
from specmine.daemon.controller.sampling.profile import Profile
from specmine.daemon.controller.violations.asserted import Asserted
from specmine.daemon.controller.violations.yardstick import begun
from specmine.mining.assertions.checks import Verification
from specmine.mining.detection.alarm import Stream
from specmine.mining.detection.changes import STEPS
from specmine.mining.detection.detector import DetectorState
from specmine.mining.detection.state import Excursion, first_state
from specmine.model.violation import What
from tests.support.planned import FUNCTION, MEANS, NOW_NS, learned, seen
from tests.support.simulated import SECOND

FASTER = int((STEPS > 0).argmin())


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
    [(1.5, 0, 6.0, True), (0.5, 0, 6.0, False), (1.5, FASTER, 6.0, False), (1.5, 0, 4.0, False)],
)
def test_what_deviates_below_a_suspected_function_is_observed_again(
    evidence: float, step: int, ago_s: float, again: bool
) -> None:
    """After one window since the change a little evidence of its own is enough: of being slower, five seconds ago."""
    below = replace(FUNCTION, offset=100)
    excursion = Excursion(
        step=step, evidence=evidence, size=0.7, unsure=0.1, absorbed=0.0, windows=1, total=0.7, since=0.0
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


@pytest.mark.parametrize("measured", [True, False])
def test_what_is_being_learned_below_a_suspected_function_is_observed_if_it_is_measured(measured: bool) -> None:
    """Its window tells something only beside the five before."""
    below = replace(FUNCTION, offset=100)
    profile = Profile(callers=((FUNCTION.key, 1.0),), inclusive_ns=100.0)
    callee = replace(learned(), identity=Identity(function=below), profile=profile, phase=Phase(state=State.TIMING))
    callee = seen(callee, 10.0)
    yardstick = begun("b", Asserted(), callee.history.timing * 5, NOW_NS) if measured else None
    callee = replace(callee, violations=replace(callee.violations, yardstick=yardstick))
    functions = {FUNCTION.key: seen(learned(), 8.0, urgency=9.0), below.key: callee}
    tight = replace(MEANS, budget=2e4, income=1e6, cash=-1e6, pressure=1.0)
    assert (below.key in plan(functions, tight, Settings()).watches) is measured
