"""What our own processes may cost: what is left, how it presses, and what the controller does about it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmine.daemon.config.settings import Settings
from specmine.daemon.controller.allocation import agent_cost
from specmine.daemon.controller.allocation.agent_cost import ALLOWANCE_NS, AVERAGED_NS, LONGEST_STRETCH, begun, used
from specmine.daemon.controller.events import Arrived
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.loop import Step, run
from specmine.daemon.worker.process import InlineWorker
from specmine.model.batch import Batch, Sampling
from tests.support.planted import unimodal
from tests.support.simulated import MS, SECOND, FakeClock, SimulatedSource

DAEMON = Settings(agent=0.01)


class Costly(SimulatedSource):
    """A source whose own work costs 5 ms a window and 1 ms a poll, as measured on a quiet machine."""

    window_ns, poll_ns = 5 * MS, MS

    def __init__(self, *given: object, **more: object) -> None:
        super().__init__(*given, **more)  # type: ignore[arg-type]
        self.own_ns = self.polls = 0

    def poll(self, now_ns: int) -> Batch:
        batch = super().poll(now_ns)
        self.polls += 1
        self.own_ns += self.window_ns * len(batch.observations) + self.poll_ns
        return replace(batch, spent=replace(batch.spent, agent_ns=self.own_ns))


class Dear(Costly):
    """One beside programs that keep all CPUs busy, where a window costs 40 ms and a poll 12."""

    window_ns, poll_ns = 40 * MS, 12 * MS


def learned(seconds: int, settings: Settings) -> tuple[ControllerState, Costly, list[float]]:
    """Mine twenty functions at a high budget; return the end, the source, and the pressure step by step."""
    clock, pressures = FakeClock(), []
    source = Costly(tuple(unimodal(f"f{number:02d}", rate=900.0, own=0.048) for number in range(20)), clock)

    def listen(step: Step) -> None:
        pressures.append(step.state.agent_cost.pressure)

    state = run(source, settings, clock, InlineWorker(), listeners=[listen], deadline_ns=seconds * SECOND)
    return state, source, pressures


def test_our_own_time_is_kept_at_what_was_promised() -> None:
    """Work that would take several percent of a CPU is held near one percent over ten minutes, after the start."""
    chosen = replace(DAEMON, overhead=0.1, window_ns=SECOND, limit_ns=10 * SECOND)
    state, source, pressures = learned(600, chosen)
    _, free, _ = learned(60, replace(chosen, agent=0.0))
    assert free.own_ns / 60 > 0.03 * SECOND  # unheld it would cost more than three percent
    assert source.own_ns <= ALLOWANCE_NS + 0.01 * AVERAGED_NS * 1.1
    assert 0.2 < max(pressures) <= 1.0
    assert state.agent_cost.spent_ns == source.own_ns


@pytest.mark.parametrize(("longest", "least", "most"), [(1.0, 0.0115, 1.0), (LONGEST_STRETCH, 0.0, 0.0115)])
def test_where_our_work_is_dear_windows_and_polls_stretch(
    longest: float, least: float, most: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the first ten minutes the stretch saves what full pressure does not: without it the promise is broken."""
    monkeypatch.setattr(agent_cost, "LONGEST_STRETCH", longest)
    clock, spent, stretches = FakeClock(), dict[int, int](), list[float]()
    source = Dear(tuple(unimodal(f"f{number:02d}", rate=400.0, own=0.01) for number in range(8)), clock)

    def listen(step: Step) -> None:
        spent[step.state.now_ns // (60 * SECOND)] = source.own_ns
        stretches.append(step.state.agent_cost.stretch)

    run(source, DAEMON, clock, InlineWorker(), listeners=[listen], deadline_ns=1800 * SECOND)
    assert least * SECOND < (spent[29] - spent[14]) / 15 / 60 <= most * SECOND
    assert max(stretches) <= longest and stretches[-1] >= min(1.2, longest)


def test_checks_go_on_where_our_work_is_dear() -> None:
    """Functions that are on in phases only are observed each two minutes, too, within what was promised."""
    clock, ended, spent = FakeClock(), defaultdict[str, list[int]](list), dict[int, int]()
    source = Dear(tuple(unimodal(f"f{number:02d}", rate=20_000.0, own=0.01) for number in range(8)), clock)

    def listen(step: Step) -> None:
        spent[step.state.now_ns // (60 * SECOND)] = source.own_ns
        for each in step.event.batch.observations if isinstance(step.event, Arrived) else ():
            ended[each.function].append(each.end_ns)

    state = run(source, DAEMON, clock, InlineWorker(), listeners=[listen], deadline_ns=1500 * SECOND)
    first_ns = state.now_ns - 600 * SECOND
    late = {key: [each for each in times if each >= first_ns] for key, times in ended.items()}
    assert len(late) == 8
    for times in late.values():
        assert max(after - before for before, after in pairwise([first_ns, *times, state.now_ns])) <= 120 * SECOND
    minutes = sorted(spent)
    assert (spent[minutes[-1]] - spent[minutes[-11]]) / 600 <= 0.0115 * SECOND


def test_bursts_of_sampling_end_in_time_however_long_the_loop_rests() -> None:
    """Of a program of a fifth of a CPU they last two and a half seconds; turns are up to three seconds apart."""
    clock, lengths, turns = FakeClock(), list[float](), list[int]()
    source = Dear(tuple(unimodal(f"f{number:02d}", rate=400.0, own=0.01) for number in range(8)), clock, cpus=0.2)
    began_ns = 0

    def listen(step: Step) -> None:
        nonlocal began_ns
        turns.append(step.state.now_ns)
        for action in step.actions:
            if isinstance(action, Sampling) and action.hertz:
                began_ns = step.state.now_ns
            elif isinstance(action, Sampling) and began_ns:
                lengths.append((step.state.now_ns - began_ns) / SECOND)

    run(source, DAEMON, clock, InlineWorker(), listeners=[listen], deadline_ns=1200 * SECOND)
    assert max(after - before for before, after in pairwise(turns[-200:])) > 2 * SECOND
    assert len(lengths[-20:]) == 20
    assert max(lengths[-20:]) - min(lengths[-20:]) < 0.3


def test_what_is_owed_is_bounded_and_forgotten() -> None:
    """An hour of overspending is owed as a sixth of ten minutes' share at most, and paid back in two minutes."""
    begin = begun(0, DAEMON)
    assert used(begin, 60 * SECOND, AVERAGED_NS - 1, DAEMON).stretch == 1
    after = used(used(begin, 60 * SECOND, AVERAGED_NS - 1, DAEMON), 120 * SECOND, 3600 * SECOND, DAEMON)
    assert (after.pressure, after.stretch) == (1, LONGEST_STRETCH) and round(after.left_ns) == -1 * SECOND
    half = used(after, 120 * SECOND, 3650 * SECOND, DAEMON)
    assert half.stretch == pytest.approx(1 + (LONGEST_STRETCH - 1) / 2)
    paid = used(half, 120 * SECOND, 3700 * SECOND, DAEMON)
    assert (round(paid.left_ns), paid.stretch) == (0, 1)


def test_a_quiet_loop_turns_four_times_a_second() -> None:
    """Once nothing is due the source is asked only every 250 ms."""
    clock = FakeClock()
    source = Costly((unimodal("rare", rate=1.0, own=0.001),), clock)
    run(source, DAEMON, clock, InlineWorker(), deadline_ns=100 * SECOND)
    assert source.polls <= 100 * 4 + 10


def test_nothing_presses_where_nothing_was_promised() -> None:
    """A mining in the foreground is not held back, whatever it takes."""
    free = replace(DAEMON, agent=0.0)
    after = used(begun(0, free), 100 * SECOND, SECOND, free)
    assert after.pressure == 0 and after.spent_ns == 100 * SECOND


def test_what_is_there_at_the_start_is_the_allowance_and_half_of_ten_minutes() -> None:
    """Pressure begins when half of ten minutes' share is left and is full when all is spent."""
    begin = begun(0, DAEMON)
    assert used(begin, 8 * SECOND, 0, DAEMON).pressure == 0
    assert used(begin, int(9.5 * SECOND), 0, DAEMON).pressure == pytest.approx(0.5)
    assert used(begin, 11 * SECOND, 0, DAEMON).pressure == 1


def test_what_the_start_took_is_over_and_does_not_press() -> None:
    """Five seconds of loading leave the allowance and half of ten minutes' share; what comes later counts."""
    slow = begun(0, DAEMON, 5 * SECOND)
    assert used(slow, 13 * SECOND, 0, DAEMON).pressure == 0
    assert used(slow, 16 * SECOND, 0, DAEMON).pressure == 1
    assert used(slow, 16 * SECOND, 0, DAEMON).start_ns == 5 * SECOND


def test_the_allowance_lapses_after_ten_minutes() -> None:
    """What was not spent of it is not there for later: after that only the share of the time counts."""
    before = used(begun(0, DAEMON), 0, AVERAGED_NS - 1, DAEMON)
    assert before.left_ns == ALLOWANCE_NS + 3 * SECOND
    assert used(before, 0, AVERAGED_NS, DAEMON).left_ns == 3 * SECOND


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 2000)), min_size=1, max_size=60))
def test_never_more_is_left_than_was_promised(turns: list[tuple[int, int]]) -> None:
    """Spent and left together never exceed the allowance and the share of the time, ten minutes ahead at most."""
    state, now, spent = begun(0, DAEMON), 0, 0
    for seconds, cost_ms in turns:
        now, spent = now + seconds * SECOND, spent + cost_ms * MS
        state = used(state, spent, now, DAEMON)
        promised = ALLOWANCE_NS + 0.01 * max(now, AVERAGED_NS)
        assert state.left_ns + spent <= promised * (1 + 1e-9)
        assert 0 <= state.pressure <= 1


def test_programs_that_are_loaded_later_belong_to_the_start() -> None:
    """What loading takes is told as the start's, whenever it happens, and takes nothing from learning."""
    start = begun(0, DAEMON, 2 * SECOND)
    usual = used(start, 3 * SECOND, SECOND, DAEMON)
    loaded = used(start, 5 * SECOND, SECOND, DAEMON, loading_ns=2 * SECOND)
    assert (loaded.left_ns, loaded.start_ns) == (usual.left_ns, 4 * SECOND)
    later = used(loaded, 6 * SECOND, 2 * SECOND, DAEMON, loading_ns=2 * SECOND)
    assert later.start_ns == 4 * SECOND
    assert later.left_ns < loaded.left_ns


def test_answers_press_for_a_third_of_the_promise_at_most() -> None:
    """A user who asks without end, for an hour and 12 % of a CPU, costs learning no more than a third."""
    asked = quiet = begun(0, DAEMON)
    for second in range(1, 3601):
        own, answers, now_ns = 6 * MS * second, 120 * MS * second, second * SECOND
        asked = used(asked, own + answers, now_ns, DAEMON, answered_ns=answers)
        quiet = used(quiet, own, now_ns, DAEMON)
    assert quiet.pressure == 0
    assert asked.stretch == 1 and asked.pressure < 1
    assert asked.spent_ns == (6 + 120) * 3600 * MS
    assert asked.answered_ns == 120 * 3600 * MS
    held = used(asked, asked.spent_ns + SECOND, asked.now_ns, DAEMON, answered_ns=asked.answered_ns)
    assert held.left_ns == asked.left_ns - SECOND  # what is no answer counts as ever


def test_few_answers_count_whole() -> None:
    """Scrapes of 30 ms each 15 s are part of what was promised."""
    scraped = begun(0, DAEMON)
    for turn in range(1, 241):
        scraped = used(scraped, 30 * MS * turn, 15 * SECOND * turn, DAEMON, answered_ns=30 * MS * turn)
    after = used(scraped, scraped.spent_ns + 30 * MS, scraped.now_ns, DAEMON, answered_ns=scraped.answered_ns + 30 * MS)
    assert after.left_ns == scraped.left_ns - 30 * MS


def test_an_answer_may_be_told_after_its_time_was_spent() -> None:
    """The controller gets both from different sides: the order makes no difference."""
    first = used(begun(0, DAEMON), 8 * SECOND, SECOND, DAEMON)
    told = used(first, 8 * SECOND, 2 * SECOND, DAEMON, answered_ns=8 * SECOND)
    once = used(begun(0, DAEMON), 8 * SECOND, 2 * SECOND, DAEMON, answered_ns=8 * SECOND)
    assert told.left_ns == pytest.approx(once.left_ns)
    assert told.left_ns > first.left_ns
