"""Which function comes first: utility by lifetimes and time, and what the first calls told."""

from __future__ import annotations

from dataclasses import replace

from specmine.daemon.config.settings import Settings
from specmine.daemon.controller.allocation.scheduler import plan
from specmine.daemon.controller.allocation.utility import priority, utility
from specmine.daemon.controller.call_counts import ProbeState
from specmine.daemon.controller.function import FunctionState
from specmine.daemon.controller.history import History, Summary
from specmine.daemon.controller.hotness import total_of
from specmine.daemon.controller.phase import Phase, State
from specmine.daemon.controller.sampling.profile import Profile
from specmine.mining.assertions.checks import Verification
from specmine.model.histogram import Histogram
from specmine.model.observation import Kind, Observation
from tests.support.planned import FUNCTION, MEANS, NOW_NS, learned, running, seen, unseen
from tests.support.simulated import SECOND


def test_utility_follows_the_lifetimes_that_run() -> None:
    """One seen enough: 0. Another one, or none function: what its age says. Violated: all."""
    function = learned()
    assert utility(function, NOW_NS) == 1.0
    assert utility(function, NOW_NS, running("5")) == 0.0
    assert utility(function, NOW_NS, running("5", "6")) == 0.5
    assert utility(function, NOW_NS, running("6")) == 1.0
    assert utility(function, NOW_NS, running("5") + running("x", build="other")) == 0.0
    assert utility(function, NOW_NS, running("x", build="other")) == 1.0
    assert utility(replace(function, verification=Verification(violations=1)), NOW_NS, running("5")) == 1.0


def test_it_is_not_learned_again_but_its_check_is_planned() -> None:
    """Within ten seconds of its last window its probes stay off; then, and for a new lifetime, they are attached."""
    fresh, old = seen(learned(), 2.0), seen(learned(), 11.0)
    assert plan({FUNCTION.key: fresh}, MEANS, Settings()).watches == {}
    assert FUNCTION.key in plan({FUNCTION.key: fresh}, replace(MEANS, running=running("6")), Settings()).watches
    assert FUNCTION.key in plan({FUNCTION.key: old}, MEANS, Settings()).watches
    due = replace(fresh, verification=Verification(checked_ns=NOW_NS - 61 * SECOND))
    assert FUNCTION.key in plan({FUNCTION.key: due}, MEANS, Settings()).watches


def test_what_is_shorter_than_the_probes_are_unsure_by_is_learned_last() -> None:
    """Of two with as many samples and calls that one comes first whose changes would be seen."""

    def waiting(number: int, duration_ns: float) -> FunctionState:
        durations = Histogram.from_durations([duration_ns] * 100)
        window = Observation(
            function=FUNCTION.key, lifetime="5", kind=Kind.TIME, start_ns=0, end_ns=SECOND, histogram=durations,
            calls=100, watched_ns=SECOND, uncertainty_ns=300.0,
        )  # fmt: skip
        return replace(
            unseen(number),
            phase=Phase(state=State.WAITING),
            probe=ProbeState(rate=5000.0),
            history=History(timing=(window,), histogram=durations, summary=Summary.of(durations)),
        )

    both = [waiting(1, 150.0), waiting(2, 3000.0)]
    total, means = total_of(both), replace(MEANS, cpu_rate=1e8)
    assert priority(both[1], total, means, Settings()) < priority(both[0], total, means, Settings())


def of_calls(duration_ns: float) -> History:
    """Return the history of a function with a window of a hundred such calls."""
    durations = Histogram.from_durations([duration_ns] * 100)
    window = Observation(
        function=FUNCTION.key, lifetime="5", kind=Kind.TIME, start_ns=0, end_ns=SECOND, histogram=durations,
        calls=100, watched_ns=SECOND,
    )  # fmt: skip
    return History(timing=(window,), histogram=durations, summary=Summary.of(durations))


def test_what_the_first_calls_took_bounds_what_samples_say() -> None:
    """A sample that met one of ten short calls a second does not make it a tenth of the program."""
    lucky, work = unseen(1), unseen(2)
    history = of_calls(2000.0)
    rare, often = (
        replace(one, phase=Phase(state=State.WAITING), probe=ProbeState(rate=rate), history=history)
        for one, rate in ((lucky, 10.0), (work, 10_000.0))
    )
    total, means = total_of([rare, often]), replace(MEANS, cpu_rate=2e7)
    assert priority(often, total, means, Settings()) < priority(rare, total, means, Settings())


def test_what_mostly_waits_counts_no_more_for_all_the_time_within_it() -> None:
    """A main loop holds all of the program's time, and tells only how much work there is."""
    history = of_calls(3e6)
    loop, handler = (
        replace(
            unseen(number), profile=Profile(samples=9), phase=Phase(state=State.WAITING), probe=ProbeState(rate=rate),
            history=history,
        )
        for number, rate in ((1, 300.0), (2, 3.0))
    )  # fmt: skip
    total, means = total_of([loop, handler, unseen(3)]), replace(MEANS, cpu_rate=2e7)
    assert priority(handler, total, means, Settings()) < priority(loop, total, means, Settings())
    waiting = replace(means, loop_waits={handler.key: 0.95})
    assert priority(loop, total, waiting, Settings()) < priority(handler, total, waiting, Settings())
