"""The flow of functions through the controller, in a simulated program and with a fake clock."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from specmine.daemon.config.settings import Settings
from specmine.daemon.controller.events import Reloaded, Stopping
from specmine.daemon.controller.function import FunctionState
from specmine.daemon.controller.phase import State
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.controller.transitions import observed, refused, tried_again
from specmine.daemon.documents.specification import specification
from specmine.daemon.loop import Step, run
from specmine.daemon.worker.process import InlineWorker
from specmine.model.batch import Refusal, Request, Sampling, Watch
from specmine.model.function import Reason
from specmine.model.histogram import Histogram
from specmine.model.observation import Kind, Observation
from tests.support.changing import lived
from tests.support.planted import FAST, SLOW, Planted, Way, paper_program, unimodal
from tests.support.simulated import SECOND, FakeClock, SimulatedSource


class History:
    """A listener that keeps when each function came into each state."""

    def __init__(self) -> None:
        self.entered: dict[tuple[str, State], float] = {}
        self.steps: list[Step] = []

    def __call__(self, step: Step) -> None:
        self.steps.append(step)
        seconds = (step.state.now_ns - step.state.began_ns) / SECOND
        for each in step.state.functions.values():
            self.entered.setdefault((each.function.name, each.state), seconds)


def mined(
    planted: tuple[Planted, ...],
    seconds: float = 20.0,
    settings: Settings | None = None,
    seed: int = 1,
    **source: object,
) -> tuple[ControllerState, History, SimulatedSource]:
    """Mine a simulated program for some simulated seconds."""
    clock, history = FakeClock(), History()
    program = SimulatedSource(planted, clock, seed=seed, **source)  # type: ignore[arg-type]
    length = int(seconds * SECOND)
    chosen = settings or Settings().for_duration(length)
    state = run(program, chosen, clock, InlineWorker(), listeners=[history], deadline_ns=length)
    return state, history, program


def named(state: ControllerState, name: str) -> FunctionState:
    """Return what is known of the function with this name."""
    return next(each for each in state.functions.values() if each.function.name == name)


@pytest.mark.parametrize("seed", range(5))
def test_the_papers_example_is_explained_by_one_edge(seed: int) -> None:
    """z, fast over b->c and mixed elsewhere, gets exactly two behaviours told apart by b->c, within 15 s."""
    state, history, _ = mined(paper_program(), 15.0, seed=seed)
    z = next(each for each in specification(state)["functions"] if each["function"] == "z")
    assert z["state"] == "explained"
    assert history.entered["z", State.EXPLAINED] < 12
    shares = {each["expression"]: each["shares"] for each in z["behaviours"]}
    assert set(shares) == {"b->c", "not b->c"}
    assert shares["b->c"] == pytest.approx([1.0, 0.0], abs=0.05)
    assert shares["not b->c"] == pytest.approx([0.6, 0.4], abs=0.05)
    assert z["borders_seconds"] == pytest.approx([6e-5], abs=3e-5)


def test_z_passes_the_states_in_order() -> None:
    """A function is counted, timed, explained: no state is skipped, none comes twice."""
    _, history, _ = mined(paper_program(), 15.0)
    times = [
        history.entered["z", state] for state in (State.CANDIDATE, State.TIMING, State.EXPLAINING, State.EXPLAINED)
    ]
    assert times == sorted(times)


@pytest.mark.parametrize("seed", range(5))
def test_one_class_gives_no_border(seed: int) -> None:
    """A function with a unimodal distribution ends as single, without a border."""
    state, _, _ = mined((unimodal(rate=20_000.0),), 15.0, seed=seed)
    function = named(state, "smooth")
    assert function.state is State.SINGLE
    assert function.inference.learned is not None and function.inference.learned.borders == ()


def test_classes_alike_on_all_paths_are_unexplained() -> None:
    """Two classes in the same shares on every path are no matter of call paths, and the reason says so."""
    ways = tuple(
        Way(callers=f"main;{caller}", weight=1.0, classes=((0.5, 2e4, 0.1), (0.5, 3e5, 0.1))) for caller in "xy"
    )
    state, _, _ = mined((Planted(name="coin", rate=20_000.0, ways=ways),), 15.0)
    function = named(state, "coin")
    assert function.state is State.UNEXPLAINED
    assert function.reason is not None and function.reason.code == "one-group"


def test_a_drifting_function_is_parked_as_unstable() -> None:
    """A distribution that never settles is given up after the sample limit, and tried again later."""
    mining = Settings().mining.__class__(sample_limit=20)
    settings = Settings(mining=mining, window_ns=SECOND, limit_ns=10 * SECOND)
    way = Way(callers="main", weight=1.0, classes=((0.5, 2e4, 0.05), (0.5, 4e5, 0.05)))
    clock = FakeClock()
    random = np.random.default_rng(3)

    class Wild(SimulatedSource):
        def _time(self, planted, window, calls):  # type: ignore[no-untyped-def]
            share, low = random.uniform(0.2, 0.8), 2e3 * np.exp(random.uniform(0, 5))
            wild = Way(callers="main", weight=1.0, classes=((share, low, 0.05), (1 - share, 20 * low, 0.05)))
            super()._time(Planted(name="wild", rate=1.0, ways=(wild,)), window, calls)

    history = History()
    source = Wild((Planted(name="wild", rate=20_000.0, ways=(way,)),), clock)
    state = run(source, settings, clock, InlineWorker(), listeners=[history], deadline_ns=60 * SECOND)
    function = named(state, "wild")
    assert function.state is State.UNSTABLE
    assert function.reason is not None and "20 observations" in function.reason.text
    assert function.probe.watch is None


def test_a_slow_function_says_how_long_it_needs() -> None:
    """At 5 calls a second the reason names the observations missing and the seconds they take."""
    state, _, _ = mined((unimodal("slow", rate=5.0),), 20.0)
    function = named(state, "slow")
    assert function.state is State.TIMING
    assert function.reason is not None and function.reason.code == "slow"
    assert function.reason.text.startswith("0 of 5 agreeing observations of at least 200 calls")
    needed = re.fullmatch(r"5 more: (\d+) s at this rate", function.reason.remedy)
    assert needed is not None and 150 < int(needed[1]) < 260
    assert function.probe.counts.gaps is False


def test_a_slow_function_is_learned_in_time() -> None:
    """In a long run the same function becomes stable, with exact counts."""
    clock = FakeClock()
    source = SimulatedSource((unimodal("slow", rate=25.0),), clock)
    state = run(source, Settings(), clock, InlineWorker(), deadline_ns=90 * SECOND)
    entry = specification(state)["functions"][0]
    assert entry["state"] == "single"
    assert entry["calls_exact"] is True
    assert entry["calls"] == entry["calls_counted"]


def test_refusals_show_their_reason_and_end_watching() -> None:
    """What the source refuses is refused with its reason; what it refuses only with paths stays unexplained."""
    unsafe = Reason(code="unwinder", text="an exception would abort the program")
    ways = (
        Way(callers="main;x", weight=1.0, classes=(FAST,)),
        Way(callers="main;y", weight=1.0, classes=((1.0, 3e5, 0.1),)),
    )
    planted = (
        Planted(name="never", rate=5000.0, ways=ways, refused=(Kind.TIME, unsafe)),
        Planted(name="shallow", rate=5000.0, ways=ways, refused=(Kind.PATH, unsafe)),
    )
    state, _, source = mined(planted, 20.0)
    assert (named(state, "never").state, named(state, "never").reason) == (
        State.REFUSED,
        replace(unsafe, remedy="tried again after 60 s"),
    )
    assert (named(state, "shallow").state, named(state, "shallow").reason) == (State.UNEXPLAINED, unsafe)
    timed = [r for _, r in source.requests if isinstance(r, Watch) and r.function == source.keys["never"]]
    assert [each.kind for each in timed].count(Kind.TIME) == 1


def test_what_a_process_or_the_load_forbids_is_tried_again() -> None:
    """After a minute, then after two; what was learned before it was refused stays. What the file forbids is not."""
    planted = (unimodal("moment"), unimodal("always"))
    state, _, _ = mined(planted)
    moment, always = named(state, "moment"), named(state, "always")
    assert (moment.state, always.state) == (State.SINGLE, State.SINGLE)
    busy = Reason(code="busy-return-site", text="other calls end there", remedy="watch a caller")
    now_ns, waited = state.now_ns, []
    for _ in range(10):
        moment = refused(moment, Refusal(function=moment.key, kind=Kind.TIME, reason=busy), now_ns)
        assert moment.state is State.REFUSED and moment.reason is not None
        assert (
            moment.reason.remedy == f"tried again after {(moment.phase.again_ns - now_ns) // SECOND} s; watch a caller"
        )
        waited.append((moment.phase.again_ns - now_ns) // SECOND)
        now_ns = moment.phase.again_ns
        moment = tried_again(moment, now_ns)
        assert moment.state is State.CANDIDATE and moment.phase.refusal(Kind.TIME) is None
        assert moment.inference.learned is not None and not moment.phase.again_ns
    assert waited == [60, 120, 240, 480, 960, 1800, 1800, 1800, 1800, 1800]
    jump = Reason(code="loop-head", text="it jumps back to its first instruction")
    always = refused(always, Refusal(function=always.key, kind=Kind.TIME, reason=jump), now_ns)
    assert always.state is State.REFUSED and not always.phase.again_ns


def test_a_function_refused_for_a_while_is_learned_after_it() -> None:
    """Once its process no longer forbids it, without a restart of the daemon."""
    unsafe = Reason(code="writable-text", text="the process can write its code")

    class Refusing(SimulatedSource):
        def apply(self, request: Request) -> None:
            if self.clock.now_ns() >= self.began_ns + 30 * SECOND:
                self.planted = {key: replace(each, refused=None) for key, each in self.planted.items()}
            super().apply(request)

    def after(seconds: int) -> FunctionState:
        clock, planted = FakeClock(), replace(unimodal("later"), refused=(Kind.TIME, unsafe))
        source = Refusing((planted,), clock)
        return named(run(source, Settings(), clock, InlineWorker(), deadline_ns=seconds * SECOND), "later")

    assert after(50).state is State.REFUSED
    assert after(90).state is State.SINGLE


def test_hints_replace_finding() -> None:
    """With functions named by the user only they are measured; sampling tells who calls them, in bursts."""
    settings = Settings(watch=("z",), window_ns=SECOND, limit_ns=10 * SECOND)
    state, _, source = mined(paper_program(), 14.0, settings)
    assert [each.function.name for each in state.functions.values()] == ["z"]
    assert named(state, "z").state is State.EXPLAINED
    assert {one for one in state.unfollowed} and not state.hertz
    assert [request.hertz > 0 for _, request in source.requests if isinstance(request, Sampling)] == [True, False]


def test_ignored_functions_are_excluded() -> None:
    """A hint excludes a function: it is listed with the reason and never probed."""
    settings = Settings(ignore=("c", "main*"), window_ns=SECOND, limit_ns=10 * SECOND)
    state, _, source = mined(paper_program(), 10.0, settings)
    assert named(state, "c").state is named(state, "main").state is State.EXCLUDED
    probed = {request.function for _, request in source.requests if isinstance(request, Watch)}
    assert source.keys["c"] not in probed and source.keys["z"] in probed


def test_callers_of_a_finished_function_become_candidates() -> None:
    """Knowledge climbs: a caller too cold for itself is measured once what it calls is finished."""
    hot = Planted(
        name="hot", rate=20_000.0, own=0.9, inclusive=0.9, ways=(Way(callers="cold", weight=1.0, classes=(FAST,)),),
        callers=(("cold", 1.0),),
    )  # fmt: skip
    cold = unimodal("cold", rate=100.0, own=0.0, inclusive=0.0)
    state, _, _ = mined((hot, cold), 15.0)
    assert named(state, "hot").state is State.SINGLE
    assert named(state, "cold").identity.climbed == "hot"
    assert named(state, "cold").state in (State.TIMING, State.SINGLE)


def test_callees_of_a_function_that_nothing_explains_become_candidates() -> None:
    """What its calls reach may explain it: a callee too cold for itself is timed too, others are not."""
    hot = Planted(
        name="hot", rate=20_000.0, own=0.9, inclusive=0.9,
        ways=(Way(callers="main", weight=0.6, classes=(FAST,)), Way(callers="main", weight=0.4, classes=(SLOW,))),
    )  # fmt: skip
    cold = unimodal("cold", rate=1000.0, own=0.003, inclusive=0.003, callers=(("hot", 1.0),))
    other = unimodal("other", rate=1000.0, own=0.003, inclusive=0.003, callers=(("cold", 1.0),))
    state, _, _ = mined((hot, cold, other), 25.0)
    assert named(state, "hot").state is State.UNEXPLAINED
    assert named(state, "cold").identity.descended == "hot"
    assert named(state, "cold").state in (State.WAITING, State.TIMING, State.SINGLE)
    assert (named(state, "other").identity.descended, named(state, "other").state) == ("", State.CANDIDATE)


def test_waits_at_the_bottom_of_a_loop_come_last() -> None:
    """While places are scarce, a wait of a main loop is not among the functions timed."""
    planted = [unimodal(f"f{number}", rate=1000.0, own=0.01) for number in range(6)]
    planted.append(unimodal("wait", rate=1000.0, own=0.9, inclusive=0.9, loop_bottom=True))
    state, _, _ = mined(tuple(planted), 4.0, link="perf")
    assert named(state, "wait").state is State.WAITING
    assert {named(state, f"f{number}").state for number in range(6)} == {State.TIMING}


def test_perf_links_are_never_cycled_and_stay_few() -> None:
    """Where links come off slowly: at most six at once, no duty cycles, nothing above 5,000 calls a second."""
    planted = [unimodal(f"f{number}", rate=800.0) for number in range(9)] + [unimodal("fast", rate=9000.0)]
    state, history, source = mined(tuple(planted), 6.0, link="perf")
    watches = [r for _, r in source.requests if isinstance(r, Watch) and r.kind is not Kind.COUNT]
    assert watches and all(watch.on_ns == 0 for watch in watches)
    for step in history.steps:
        on = [
            each
            for each in step.state.functions.values()
            if each.probe.watch and each.probe.watch.kind is not Kind.COUNT
        ]
        assert len(on) <= 6
    reason = named(state, "fast").reason
    assert reason is not None and reason.code == "too-fast"


CHANGED = Way(callers="main;a;b;c", weight=1.0, classes=((0.3, 2e4, 0.1), (0.7, 2e5, 0.1)))
QUICK = Settings(window_ns=SECOND, limit_ns=10 * SECOND, verify_every_ns=5 * SECOND)


def test_the_classes_of_a_function_that_holds_are_found_anew_twice_a_minute() -> None:
    """Each window is looked at for a change and continues the chain; few are compared with the classes."""
    _, history, _ = mined((unimodal("busy", rate=2_000.0),), 150.0, Settings())
    found = [each for step in history.steps for each in step.state.functions.values()]
    finished = [one for one in found if one.state is State.SINGLE]
    looked = {one.verification.checked_ns for one in finished}
    judged = {one.verification.judged_ns for one in finished} - {None}
    assert len(looked) >= 12
    assert 2 <= len(judged) <= 6
    last = finished[-1]
    assert last.inference.chain is not None
    assert last.inference.chain.end_ns == last.verification.checked_ns


def test_of_windows_of_few_calls_two_are_judged_as_one() -> None:
    """One alone finds no classes anew and checks nothing; the next one is joined to it, and then both do."""
    settings = Settings()
    few = settings.mining.minimum_calls // 2 + 20
    state, _, _ = mined((unimodal("steady"),), 60.0)
    function = named(state, "steady")
    assert function.state is State.SINGLE
    newest = function.history.longest[-1]
    calls = Histogram.from_durations(np.full(few, newest.histogram.quantile(0.5)))

    def small(second: int) -> Observation:
        start_ns = newest.end_ns + (100 + second) * SECOND
        return replace(newest, start_ns=start_ns, end_ns=start_ns + SECOND, histogram=calls, calls=few, split=None)

    first = observed(function, small(0), settings)
    assert first.inference.chain is not None and function.inference.chain is not None
    assert first.inference.borders is function.inference.borders
    assert first.inference.chain.chain == function.inference.chain.chain
    assert first.verification.judged_ns == function.verification.judged_ns
    assert first.verification.checked_ns == small(0).end_ns
    second = observed(first, small(10), settings)
    assert second.history.longest[-1].timed == 2 * few
    assert second.verification.judged_ns == small(10).end_ns


def other_shares(z: Planted) -> Planted:
    """Return z with other class shares over b->c."""
    return Planted(name="z", rate=z.rate, own=z.own, ways=(CHANGED, *z.ways[1:]))


def test_a_change_of_behaviour_is_violated_and_stays_so() -> None:
    """When the shares of a class change, nothing is learned anew: what was asserted stays, and is violated."""
    life = lived(paper_program(), 120.0, [(60.0, "z", other_shares)], settings=QUICK)
    z = next(each for each in specification(life.state)["functions"] if each["function"] == "z")
    assert z["state"] == "explained" and z["reason"]["code"] == "violated"
    assert [each["state"] for each in z["violations"]] == ["open"]
    shares = {each["expression"]: each["shares"] for each in z["behaviours"]}
    assert shares["b->c"] == pytest.approx([1.0, 0.0], abs=0.05)


def test_an_acknowledged_change_is_learned() -> None:
    """Once a person says that it is known, the new shares are asserted, and hold."""
    life = lived(paper_program(), 150.0, [(60.0, "z", other_shares)], settings=QUICK, acknowledge_at=90.0)
    z = next(each for each in specification(life.state)["functions"] if each["function"] == "z")
    assert [each["state"] for each in z["violations"]] == ["acknowledged"]
    assert z["verdict"] != "violated" and z["state"] == "explained"
    shares = {each["expression"]: each["shares"] for each in z["behaviours"]}
    assert shares["b->c"] == pytest.approx([0.3, 0.7], abs=0.05)


def test_a_reload_excludes_and_takes_back() -> None:
    """A new configuration takes effect while the program runs: an ignored function loses its probes."""
    clock, history = FakeClock(), History()
    source = SimulatedSource(paper_program(), clock)
    sent: list[str] = []

    def inbox(now_ns: int) -> list[Reloaded | Stopping]:
        if now_ns - source.began_ns > 3 * SECOND and not sent:
            sent.append("ignore")
            return [Reloaded(now_ns=now_ns, settings=Settings(ignore=("z",)))]
        return []

    state = run(source, Settings(), clock, InlineWorker(), listeners=[history], inbox=inbox, deadline_ns=6 * SECOND)
    assert named(state, "z").state is State.EXCLUDED
    assert source.keys["z"] not in source.windows
