"""The loop: what it starts it closes, whatever happens in between."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from specmine.daemon.config.settings import Settings
from specmine.daemon.controller.decide import decide
from specmine.daemon.controller.events import Arrived, Begun, Mined, Reloaded, Stopping
from specmine.daemon.controller.function import FunctionState, Identity
from specmine.daemon.controller.phase import State
from specmine.daemon.controller.sampling.profile import Profile
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.loop import Step, _rest_ns, run
from specmine.daemon.worker.jobs import Job
from specmine.daemon.worker.process import Done, InlineWorker
from specmine.mining.detection.alarm import Alarm, Stream
from specmine.model.batch import Batch, Lifetime, Started
from specmine.model.errors import ProbeError
from specmine.model.function import Function
from specmine.model.violation import Direction, What
from tests.support.planted import paper_program
from tests.support.simulated import MS, PRICES, SECOND, FakeClock, SimulatedSource

SHORT = Settings(window_ns=SECOND, limit_ns=10 * SECOND)


class Watcher:
    """A listener that keeps every step."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def __call__(self, step: Step) -> None:
        self.steps.append(step)


class FailingWorker(InlineWorker):
    """Fails the first jobs, as a crash would."""

    def __init__(self, failures: int) -> None:
        super().__init__()
        self.failures, self.submitted, self.closed = failures, 0, False

    def submit(self, number: int, job: Job) -> None:
        self.submitted += 1
        super().submit(number, job)

    def collect(self, now_ns: int) -> list[Done]:
        done = super().collect(now_ns)
        for place, (number, _, _) in enumerate(done):
            if self.failures:
                self.failures -= 1
                done[place] = (number, None, "the mining process ended with status -9")
        return done

    def close(self) -> None:
        self.closed = True


def test_steps_begin_and_stop() -> None:
    """The first event is Begun, the last Stopping with its reason, numbers have no gap, time never goes back."""
    clock, watcher = FakeClock(), Watcher()
    source = SimulatedSource(paper_program(), clock)
    run(source, SHORT, clock, InlineWorker(), listeners=[watcher], deadline_ns=3 * SECOND)
    steps = watcher.steps
    assert isinstance(steps[0].event, Begun)
    assert isinstance(steps[-1].event, Stopping) and steps[-1].event.why == "deadline"
    assert [step.number for step in steps] == list(range(len(steps)))
    times = [step.state.now_ns for step in steps]
    assert times == sorted(times) and times[-1] - times[0] == 3 * SECOND
    assert source.closed


def test_the_end_of_the_program_ends_the_loop() -> None:
    """When no process is left the loop ends by itself and keeps the exit status."""
    clock = FakeClock()
    source = SimulatedSource(paper_program(), clock, ends_after_ns=2 * SECOND)
    state = run(source, SHORT, clock, InlineWorker())
    assert state.stopped == "ended"
    assert state.batch is not None and state.batch.exit_status == 0


def test_the_inbox_stops_and_reloads() -> None:
    """Messages of the user become events in their order."""
    clock, watcher = FakeClock(), Watcher()
    source = SimulatedSource(paper_program(), clock)
    waiting: list[Reloaded | Stopping] = [Reloaded(now_ns=0, settings=SHORT), Stopping(now_ns=0, why="signal")]

    def inbox(now_ns: int) -> list[Reloaded | Stopping]:
        return [waiting.pop(0)] if waiting and now_ns > source.began_ns + SECOND else []

    state = run(source, SHORT, clock, InlineWorker(), listeners=[watcher], inbox=inbox)
    assert state.stopped == "signal"
    assert sum(isinstance(step.event, Reloaded) for step in watcher.steps) == 1


@pytest.mark.parametrize("fail_at", [1, 2, 3, 10, 40, 80, 120])
def test_a_source_that_fails_is_closed(fail_at: int) -> None:
    """Whichever call into the kernel side fails, the error comes out and the probes come off."""
    clock, worker = FakeClock(), FailingWorker(0)
    source = SimulatedSource(paper_program(), clock, fail_at=fail_at)
    with pytest.raises(ProbeError):
        run(source, SHORT, clock, worker, deadline_ns=60 * SECOND)
    assert source.closed and worker.closed


def test_a_listener_that_fails_ends_the_loop() -> None:
    """A recorder on a full disk must not leave probes behind."""
    clock = FakeClock()
    source = SimulatedSource(paper_program(), clock)

    def full(step: Step) -> None:
        if isinstance(step.event, Arrived) and step.number > 20:
            raise OSError("no space left on device")

    with pytest.raises(OSError, match="no space"):
        run(source, SHORT, clock, InlineWorker(), listeners=[full])
    assert source.closed


def test_a_crash_of_the_worker_is_tried_once_more() -> None:
    """One crash costs a retry and nothing else; two give the function up, and say why."""
    for failures, state, submitted in ((1, State.EXPLAINED, 2), (2, State.UNEXPLAINED, 2)):
        clock, worker = FakeClock(), FailingWorker(failures)
        source = SimulatedSource(paper_program(), clock)
        last = run(source, SHORT, clock, worker, deadline_ns=12 * SECOND)
        z = next(each for each in last.functions.values() if each.function.name == "z")
        assert (z.state, worker.submitted) == (state, submitted)
        assert state is State.EXPLAINED or (z.reason is not None and z.reason.code == "mining-failed")


def test_jobs_that_run_at_the_end_are_waited_for() -> None:
    """What was measured before the deadline is still explained after it, with the probes already off."""
    clock, watcher = FakeClock(), Watcher()
    source = SimulatedSource(paper_program(), clock)

    class Late(InlineWorker):
        def collect(self, now_ns: int) -> list[Done]:
            return super().collect(now_ns) if source.closed else []

    state = run(source, SHORT, clock, Late(), listeners=[watcher], deadline_ns=12 * SECOND)
    z = next(each for each in state.functions.values() if each.function.name == "z")
    assert z.state is State.EXPLAINED
    assert isinstance(watcher.steps[-2].event, Mined)


class WokenClock(FakeClock):
    """A clock whose sleeper is woken at once, once, by one descriptor after a time."""

    def __init__(self, wake: int, after_ns: int) -> None:
        super().__init__()
        self.wake, self.at_ns = wake, self.now + after_ns
        self.woken_ns = 0

    def sleep_until_ns(self, deadline_ns: int, wake: int = -1) -> None:
        if wake == self.wake and not self.woken_ns and deadline_ns > self.at_ns:
            self.woken_ns = deadline_ns = max(self.now, self.at_ns)
        super().sleep_until_ns(deadline_ns, wake)


class Wakeable(SimulatedSource):
    """A source with descriptors, that remembers when it was polled."""

    def fileno(self, *, urgent: bool = False) -> int:
        return 8 if urgent else 7

    def poll(self, now_ns: int) -> Batch:
        self.polled.append(now_ns)
        return super().poll(now_ns)

    polled: list[int]


@pytest.mark.parametrize(("wake", "window_s", "rest_ms"), [(8, 10, 50), (7, 10, 300), (8, 1, 50), (7, 1, 66)])
def test_the_loop_rests_unless_a_watched_process_needs_it(wake: int, window_s: int, rest_ms: int) -> None:
    """After the first seconds what links report waits for 300 ms, or a fifteenth of a window; what is urgent for 50."""
    clock = WokenClock(wake, 20 * SECOND)
    source = Wakeable(paper_program(), clock)
    source.polled = []
    settings = Settings(window_ns=window_s * SECOND, limit_ns=10 * window_s * SECOND)
    run(source, settings, clock, InlineWorker(), deadline_ns=30 * SECOND)
    before = max(at for at in source.polled if at < clock.woken_ns)
    after = min(at for at in source.polled if at >= clock.woken_ns)
    assert after == clock.woken_ns
    assert after - before >= rest_ms * MS


class Spending(Wakeable):
    """A source whose own processes take a whole CPU."""

    def poll(self, now_ns: int) -> Batch:
        batch = super().poll(now_ns)
        return replace(batch, spent=replace(batch.spent, agent_ns=now_ns))


class Guarded(Spending):
    """One that must look again after 250 ms whether its probes are still safe."""

    def poll(self, now_ns: int) -> Batch:
        return replace(super().poll(now_ns), safety_ns=now_ns + 250 * MS)


@pytest.mark.parametrize(("kind", "least_ms", "longest_ms"), [(Guarded, 240, 250), (Spending, 1_200, 2_000)])
def test_safety_does_not_wait_until_cpu_time_of_our_own_is_left(
    kind: type[Wakeable], least_ms: int, longest_ms: int
) -> None:
    """However long the loop rests to save our own CPU time, what bounds harm to a program is looked at in time."""
    clock = WokenClock(-1, 0)
    source = kind(paper_program(), clock)
    source.polled = []
    state = run(source, replace(Settings(), agent=0.01), clock, InlineWorker(), deadline_ns=30 * SECOND)
    assert state.agent_cost.pressure == 1
    late = [at for at in source.polled if at > clock.now - 10 * SECOND]
    gaps = [after - before for before, after in itertools.pairwise(late)]
    assert max(gaps[:-1]) <= longest_ms * MS
    assert max(gaps) >= least_ms * MS


@pytest.mark.parametrize(
    ("stretch", "hertz", "age_s", "urgent", "rest_s"),
    [
        (1.0, 0, 60, False, 1.2),
        (2.0, 0, 60, False, 3.0),
        (4.0, 0, 60, False, 3.0),
        (4.0, 49, 60, False, 3.0),
        (4.0, 0, 2, False, 0.6),
        (4.0, 0, 60, True, 0.6),
    ],
)
@pytest.mark.parametrize("waits", [False, True])
def test_turns_are_stretched_unless_something_is_awaited(
    stretch: float, hertz: int, age_s: int, urgent: bool, rest_s: float, waits: bool
) -> None:
    """With debts of our own time turns come three seconds apart, but not after starts or beside doubts.

    Of a function that waits for work no doubt stands: no windows decide it.
    """
    began = Begun(started=Started(now_ns=0, host={}, prices=PRICES), settings=Settings())
    state, _ = decide(ControllerState(), began)
    program = Lifetime(
        id="boot:5:1", pid=5, executable="/p", build_id="b", start_ns=(100 - age_s) * SECOND, processes=1
    )
    identity = Identity(function=Function(name="clock_nanosleep", module="m", build_id="b", offset=1, in_program=False))
    function = FunctionState(identity=identity, profile=Profile(own_ns=100.0, cpu_ns=1.0 if waits else 99.0))
    alarm = Alarm(
        stream=Stream(what=What.LEVEL, part="all"), direction=Direction.SLOWER, factor=2.0, factor_low=1.5,
        factor_high=2.5, since_ns=99 * SECOND, windows=2, log_e=5.0, opened=False,
    )  # fmt: skip
    function = replace(function, violations=replace(function.violations, alarms=(alarm,) if urgent else ()))
    state = replace(
        state, now_ns=100 * SECOND, hertz=hertz, lifetimes={program.id: program}, functions={function.key: function},
        agent_cost=replace(state.agent_cost, pressure=1.0, stretch=stretch),
    )  # fmt: skip
    assert _rest_ns(state) == round((3.0 if urgent and waits else rest_s) * SECOND)
