"""Functions in several states, and means, to make plans of."""

from __future__ import annotations

from dataclasses import replace

from specmine.daemon.controller.allocation.means import Means
from specmine.daemon.controller.call_counts import ProbeState
from specmine.daemon.controller.function import FunctionState, Identity
from specmine.daemon.controller.history import History
from specmine.daemon.controller.inference import InferenceState
from specmine.daemon.controller.phase import Phase, State
from specmine.daemon.controller.sampling.profile import Profile
from specmine.daemon.controller.violations.function_violations import FunctionViolations, OpenViolation
from specmine.mining.assertions.checks import Verification
from specmine.mining.borders.inference import Inference
from specmine.mining.detection.alarm import Alarm, Stream
from specmine.mining.regression.lifetime_utility import Lifetimes, with_window
from specmine.model.batch import Lifetime, Prices
from specmine.model.function import Function
from specmine.model.histogram import Histogram
from specmine.model.observation import Kind, Observation
from specmine.model.violation import Direction, Violation, What
from tests.support.simulated import SECOND

FUNCTION = Function(build_id="b", offset=1, name="f", module="m", in_program=True)
PRICES = Prices(count_ns=700, time_ns=1300, path_ns=2300, stepped_ns=9000, sample_ns=5000, bias_ns=400)
NOW_NS = 1000 * SECOND


def running(*names: str, build: str = "b") -> tuple[Lifetime, ...]:
    """Return lifetimes that run now."""
    return tuple(
        Lifetime(id=each, pid=1, executable="/m", build_id=build, start_ns=NOW_NS - 9 * SECOND, processes=1)
        for each in names
    )


MEANS = Means(budget=1e7, income=1e7, cash=1e8, prices=PRICES, slow_links=False, now_ns=NOW_NS, running=running("5"))
POOR = replace(MEANS, budget=1e6, income=1e6, cash=2.5e6)


def learned() -> FunctionState:
    """Return a function whose lifetimes differ by far more than their windows; its chain has become old."""
    seen = Lifetimes()
    for number in range(6):
        for window in range(4):
            seen = with_window(seen, str(number), 10 + 0.1 * (number % 3) + 0.001 * (window % 2))
    chain = Inference(chain=10, start_ns=100 * SECOND, end_ns=200 * SECOND, stable=True)
    return FunctionState(
        identity=Identity(function=FUNCTION),
        phase=Phase(state=State.SINGLE),
        probe=ProbeState(rate=20_000.0),
        history=History(lifetimes=seen),
        inference=InferenceState(chain=chain, learned=chain),
        verification=Verification(checked_ns=NOW_NS - SECOND),
    )


def seen(function: FunctionState, seconds_ago: float, urgency: float = 0.0) -> FunctionState:
    """Return a function whose last window is so old, and that is suspected to have changed with this evidence."""
    end_ns = NOW_NS - int(seconds_ago * SECOND)
    window = Observation(
        function=FUNCTION.key, lifetime="5", kind=Kind.TIME, start_ns=end_ns - SECOND, end_ns=end_ns,
        histogram=Histogram.from_durations([1000] * 300), calls=300, watched_ns=SECOND,
    )  # fmt: skip
    alarm = Alarm(
        stream=Stream(what=What.LEVEL, part="all"), direction=Direction.SLOWER, factor=2.0, factor_low=1.5,
        factor_high=2.5, since_ns=end_ns, windows=2, log_e=urgency, opened=False,
    )  # fmt: skip
    return replace(
        function,
        history=replace(function.history, timing=(window,)),
        violations=FunctionViolations(alarms=(alarm,) if urgency else ()),
    )


def unseen(number: int) -> FunctionState:
    """Return a hot function that nothing is known of but where it was sampled."""
    found = replace(FUNCTION, offset=100 + number, name=f"g{number}")
    return FunctionState(identity=Identity(function=found), profile=Profile(samples=9, own_ns=1e9, cpu_ns=1e9))


def violated(offset: int, seen_s: float) -> FunctionState:
    """Return a function with an open violation whose newest window ended so long ago."""
    one = seen(replace(learned(), identity=Identity(function=replace(FUNCTION, offset=offset))), seen_s)
    one = replace(one, verification=Verification(checked_ns=NOW_NS - SECOND))
    violation = Violation(
        function=one.key, what=What.LEVEL, direction=Direction.SLOWER, factor=3.0, factor_low=2.5, factor_high=3.5,
        since_ns=NOW_NS - 60 * SECOND, found_ns=NOW_NS - 30 * SECOND,
    )  # fmt: skip
    standing = (OpenViolation(violation=violation),)
    return replace(one, violations=replace(one.violations, standing=standing))
