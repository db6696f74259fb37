"""Violations open once, stay open until the function holds again, and are opened by nothing but changes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from specmine.daemon.config.settings import SECOND, Settings
from specmine.daemon.controller.violations.asserted import Asserted
from specmine.daemon.controller.violations.function_violations import FunctionViolations
from specmine.daemon.controller.violations.lifecycle import watched
from specmine.daemon.controller.violations.watching import Watching
from specmine.daemon.controller.violations.yardstick import begun
from specmine.daemon.controller.violations.yardstick_comparison import change_of
from specmine.mining.detection.alarm import Alarm, Stream
from specmine.model.histogram import Histogram
from specmine.model.observation import Kind, Observation
from specmine.model.violation import Direction, Violation, ViolationState, What
from tests.support.changing import Life, called, lived, paused, slower
from tests.support.planted import paper_program, unimodal


def opened(life: Life) -> list[tuple[What, Direction, str, str]]:
    """Return what was opened: what, direction, expression, quantile."""
    return [(one.what, one.direction, one.expression, one.quantile) for _, one in life.opened.values()]


@pytest.mark.parametrize("factor", [1.5, 2.0, 10.0])
def test_a_function_of_one_class_that_becomes_slower_is_violated(factor: float) -> None:
    """Opened once, within a minute, with the right factor and moment; it stays open."""
    life = lived((unimodal(),), 300.0, [(150.0, "smooth", slower(factor))])
    ((second, one),) = life.opened.values()
    assert opened(life) == [(What.LEVEL, Direction.SLOWER, "true", "p50")]
    assert 150 < second < 210
    assert one.factor == pytest.approx(factor, rel=0.1)
    assert one.factor_low < factor < one.factor_high * 1.02
    assert abs((one.since_ns - life.began_ns) * 1e-9 - 150) < 20
    assert [each.id for each in life.named("smooth").violations.open] == [one.id]
    expected, observed = one.expected.p50, one.observed.p50
    assert expected is not None and observed is not None and expected.high_ns is not None
    assert expected.low_ns is not None and expected.low_ns < expected.ns < expected.high_ns < observed.ns


def test_faster_is_told_too() -> None:
    """An improvement is no problem, but a change."""
    life = lived((unimodal(),), 300.0, [(150.0, "smooth", slower(0.5))])
    assert opened(life) == [(What.LEVEL, Direction.FASTER, "true", "p50")]
    assert not any(one.is_problem for one in life.named("smooth").violations.open)


def test_only_calls_over_one_edge_are_slower() -> None:
    """The violation names the behaviour that changed, though its calls cross the border."""
    life = lived(paper_program(), 280.0, [(200.0, "z", slower(3.0, ways=(0,)))])
    assert [each[:3] for each in opened(life)] == [(What.LEVEL, Direction.SLOWER, "b->c")]
    ((_, one),) = life.opened.values()
    assert one.factor == pytest.approx(3.0, rel=0.1)


def test_only_the_slow_class_is_slower() -> None:
    """A quantile above the border shows it; the median is as usual."""
    life = lived(paper_program(), 280.0, [(200.0, "z", slower(3.0, classes=(1,)))])
    ((_, one),) = life.opened.values()
    assert (one.what, one.direction, one.quantile) == (What.LEVEL, Direction.SLOWER, "p90")
    assert one.factor == pytest.approx(3.0, rel=0.15)


def test_more_or_fewer_calls_open_nothing() -> None:
    """The rate of calls is load, not slowness."""
    planted = (unimodal(), unimodal("other", rate=300.0))
    life = lived(planted, 500.0, [(150.0, "smooth", called(2.0)), (300.0, "other", called(0.4))])
    assert life.opened == {}


def test_it_closes_once_it_has_held_for_recover_after() -> None:
    """Not with the first window that holds; and nothing opens because of the way back."""
    changes = [(150.0, "smooth", slower(3.0)), (300.0, "smooth", slower(1 / 3))]
    life = lived((unimodal(),), 800.0, changes)
    assert len(life.opened) == 1
    ((second, one),) = life.closed.values()
    assert one.state is ViolationState.RECOVERED
    assert 300 + 150 < second < 300 + 330
    function = life.named("smooth")
    assert function.violations.open == () and function.reason is None


def test_a_change_that_shrinks_stays_open_with_its_numbers() -> None:
    """From four times to twice as slow: the factor follows, and it does not close."""
    changes = [(150.0, "smooth", slower(4.0)), (300.0, "smooth", slower(0.5))]
    life = lived((unimodal(),), 800.0, changes)
    assert life.closed == {}
    (one,) = life.named("smooth").violations.open
    assert one.factor == pytest.approx(2.0, rel=0.1)


def test_a_way_back_in_steps_is_a_way_back() -> None:
    """From four times to once as slow over twice: what it was at its worst decides how near is near."""
    changes = [(150.0, "smooth", slower(4.0)), (260.0, "smooth", slower(0.5)), (340.0, "smooth", slower(0.58))]
    life = lived((unimodal(),), 800.0, changes)
    ((second, one),) = life.closed.values()
    assert one.state is ViolationState.RECOVERED and 340 + 150 < second < 340 + 330


def test_what_is_acknowledged_is_the_yardstick() -> None:
    """It closes at once, is not opened again, and the way back is a change."""
    changes = [(150.0, "smooth", slower(3.0)), (450.0, "smooth", slower(1 / 3))]
    life = lived((unimodal(),), 560.0, changes, acknowledge_at=250.0)
    first, second = life.opened.values()
    ((at, closed),) = life.closed.values()
    assert (closed.state, closed.closed_by, closed.comment) == (ViolationState.ACKNOWLEDGED, "ann", "wanted")
    assert 250 <= at < 252
    assert first[1].direction is Direction.SLOWER
    assert second[1].direction is Direction.FASTER and second[0] > 450
    assert second[1].factor == pytest.approx(1 / 3, rel=0.1)


def test_what_is_acknowledged_after_it_went_away_leaves_the_yardstick() -> None:
    """Calls take again what is asserted, not yet for recover_after: that is no news, and no slower state is adopted."""
    changes = [(150.0, "smooth", slower(3.0)), (300.0, "smooth", slower(1 / 3)), (600.0, "smooth", slower(3.0))]
    life = lived((unimodal(),), 560.0, changes[:2], acknowledge_at=345.0)
    assert len(life.opened) == 1
    ((_, closed),) = life.closed.values()
    assert closed.state is ViolationState.ACKNOWLEDGED
    yardstick, expected = life.named("smooth").violations.yardstick, closed.expected.p50
    assert yardstick is not None and yardstick.level.p50 is not None and expected is not None
    assert yardstick.level.p50.ns == pytest.approx(expected.ns, rel=0.05)
    life = lived((unimodal(),), 700.0, changes, acknowledge_at=345.0)
    assert [one.direction for _, one in life.opened.values()] == [Direction.SLOWER, Direction.SLOWER]


def test_windows_of_few_calls_are_looked_at_together() -> None:
    """Of each window alone too little is known; three in two minutes say that it holds again."""
    began = life_of_small_windows(40, 25 * SECOND)
    assert [one.state for one in began.closed] == [ViolationState.RECOVERED] and not began.open
    assert life_of_small_windows(40, 100 * SECOND).open


def test_short_windows_of_an_open_violation_are_looked_at_one_by_one() -> None:
    """Twenty seconds apart, two together would hold calls of before and after its end: four tell that it is over."""
    (closed,) = life_of_small_windows(110, 20 * SECOND, lasting_ns=SECOND // 2, recover_after_ns=30 * SECOND).closed
    assert closed.closed_ns is not None and closed.closed_ns <= (24 * 10 + 3 * 20) * SECOND


AROUND = Watching(function="f", build_id="b", asserted=Asserted())


def window(end_ns: int, length_ns: int, calls: int, times: float = 1.0) -> Observation:
    """Return a window of calls of 50 us, or so many times as long."""
    drawn = np.random.default_rng(end_ns % 2**32)
    histogram = Histogram.from_durations(50_000 * times * np.exp(drawn.normal(0, 0.1, calls)))
    return Observation(
        function="f", lifetime="a", kind=Kind.TIME, start_ns=end_ns - length_ns, end_ns=end_ns,
        histogram=histogram, calls=calls, watched_ns=length_ns,
    )  # fmt: skip


def known() -> FunctionViolations:
    """Return what is known after twelve windows, the last of which ended after two minutes."""
    violations = FunctionViolations()
    windows = [window(10 * at * SECOND, 2 * SECOND, 400) for at in range(1, 13)]
    for at, one in enumerate(windows):
        violations = watched(violations, one, replace(AROUND, newest=tuple(windows[: at + 1])))
    assert not violations.urgency
    return violations


@pytest.mark.parametrize(("times", "soon"), [(4.0, True), (1.1, False), (0.3, False)])
def test_after_a_small_window_that_is_far_off_the_next_comes_soon(times: float, soon: bool) -> None:
    """It is judged with the next one, which would else come when a check is due: up to a minute later."""
    violations = known()
    first = watched(violations, window(130 * SECOND, 2 * SECOND, 60, times), AROUND)
    assert bool(first.urgency) is soon and first.detector == violations.detector
    second = watched(first, window(135 * SECOND, 2 * SECOND, 60, times), AROUND)
    assert bool(second.urgency) is soon and second.detector != violations.detector


def test_short_windows_are_looked_at_together_only_if_they_follow_each_other() -> None:
    """Else what shares a disturbance would count several times; seconds apart it is not shared."""
    violations = known()
    first = watched(violations, window(130 * SECOND, SECOND // 3, 120, 4.0), AROUND)
    assert first.detector != violations.detector and not first.pending
    second = watched(first, window(130 * SECOND + SECOND // 2, SECOND // 3, 120, 4.0), AROUND)
    assert second.detector == first.detector and second.pending
    third = watched(second, window(132 * SECOND, SECOND // 3, 120, 4.0), AROUND)
    assert third.detector != second.detector and not third.pending


def life_of_small_windows(
    calls: int, apart_ns: int, *, lasting_ns: int = 2 * SECOND, recover_after_ns: int = 300 * SECOND
) -> FunctionViolations:
    """Return what is known after a function was slower in whole windows and then as usual in small ones."""
    drawn, windows = np.random.default_rng(5), list[Observation]()
    around = Watching(function="f", build_id="b", asserted=Asserted(), recover_after_ns=recover_after_ns)
    violations = FunctionViolations()
    for number in range(60):
        whole, slow = number < 24, 12 <= number < 24
        last_ns = windows[-1].end_ns if windows else 0
        end_ns = last_ns + (10 * SECOND if whole else apart_ns)
        durations = 50_000 * (4.0 if slow else 1.0) * np.exp(drawn.normal(0, 0.1, 400 if whole else calls))
        windows.append(
            Observation(
                function="f",
                lifetime="a",
                kind=Kind.TIME,
                start_ns=end_ns - (2 * SECOND if whole else lasting_ns),
                end_ns=end_ns,
                histogram=Histogram.from_durations(durations),
                calls=len(durations),
                watched_ns=2 * SECOND,
            )
        )
        violations = watched(violations, windows[-1], replace(around, newest=tuple(windows[-20:])))
        assert number < 23 or whole is False or violations.open
    return violations


def test_a_few_pauses_are_open_for_as_long_as_they_last() -> None:
    """Many windows have a p99 as before, so the mean is told; it closes once none shows a pause."""
    as_before = unimodal().ways
    changes = [
        (200.0, "smooth", paused(0.008, 300.0)),
        (700.0, "smooth", lambda planted: replace(planted, ways=as_before)),
    ]
    life = lived((unimodal(),), 1_200.0, changes)
    ((second, one),) = life.opened.values()
    assert (one.what, one.direction, one.quantile) == (What.LEVEL, Direction.SLOWER, "mean")
    assert one.factor == pytest.approx(1 + 0.008 * 299, rel=0.4)
    assert one.factor_low > 1
    assert 200 < second < 320
    (closed,) = life.named("smooth").violations.closed
    assert closed.id == one.id and closed.closed_ns is not None
    assert 700 < (closed.closed_ns - life.began_ns) * 1e-9 < 1_100


@pytest.mark.parametrize("seed", [1, 2])
def test_an_open_violation_never_says_that_calls_may_be_as_before(seed: int) -> None:
    """One call in a hundred pauses: of windows of 120 calls many have a p99 as before, and it says nothing sure."""
    drawn, windows = np.random.default_rng(seed), list[Observation]()
    around, violations = Watching(function="f", build_id="b", asserted=Asserted()), FunctionViolations()
    seen = list[Violation]()
    for number in range(60):
        durations = 50_000 * np.exp(drawn.normal(0, 0.1, 120))
        durations[:2] *= np.exp(abs(drawn.normal(0, 0.5, 2)))
        if number >= 24:
            durations[drawn.random(120) < 0.01] *= 300
        windows.append(
            Observation(
                function="f", lifetime="a", kind=Kind.TIME, start_ns=number * 10 * SECOND,
                end_ns=(number * 10 + 5) * SECOND, histogram=Histogram.from_durations(durations.astype(np.int64)),
                calls=120, watched_ns=5 * SECOND,
            )
        )  # fmt: skip
        violations = watched(violations, windows[-1], replace(around, newest=tuple(windows[-20:])))
        assert number < 30 or violations.open
        seen += violations.open
    assert all(one.direction is Direction.SLOWER and one.factor_low > 1 for one in seen)


def test_pauses_too_few_for_a_quantile_are_told_by_the_mean() -> None:
    """Half a hundredth of the calls have no part in the p99; it closes once there are none."""
    as_before = unimodal().ways
    changes = [
        (200.0, "smooth", paused(0.004, 600.0)),
        (500.0, "smooth", lambda planted: replace(planted, ways=as_before)),
    ]
    life = lived((unimodal(),), 1_000.0, changes)
    ((second, one),) = life.opened.values()
    assert (one.what, one.direction, one.quantile) == (What.LEVEL, Direction.SLOWER, "mean")
    assert 200 < second < 320
    assert one.factor == pytest.approx(1 + 0.004 * 599, rel=0.4)
    ((_, closed),) = life.closed.values()
    assert closed.state is ViolationState.RECOVERED and closed.closed_ns is not None
    assert 500 < (closed.closed_ns - life.began_ns) * 1e-9 < 900


def test_slower_closes_where_calls_are_faster_than_before() -> None:
    """They are slower no longer; that they are faster is a change of its own."""
    changes = [(150.0, "smooth", slower(3.0)), (300.0, "smooth", slower(1 / 6))]
    life = lived((unimodal(),), 800.0, changes)
    (closed,) = (one for one in life.named("smooth").violations.closed if one.direction is Direction.SLOWER)
    assert closed.state is ViolationState.RECOVERED
    assert (What.LEVEL, Direction.FASTER, "true", "p50") in opened(life)


def test_for_a_minute_after_one_has_closed_no_window_becomes_usual() -> None:
    """What calls are like by then may be news by itself; after that the yardstick takes windows up again."""
    life = lived((unimodal(),), 800.0, [(150.0, "smooth", slower(3.0)), (300.0, "smooth", slower(1 / 3))])
    key = life.named("smooth").key
    (closed_ns,) = (one.closed_ns or 0 for one in life.named("smooth").violations.closed)

    def yardsticks(from_s: float, to_s: float) -> set[int]:
        """Return which there were in this time after it closed, by identity."""
        times = (closed_ns + round(each * SECOND) for each in (from_s, to_s))
        first_ns, last_ns = times
        within = (step.state.functions[key] for step in life.steps if first_ns < step.state.now_ns < last_ns)
        return {id(function.violations.yardstick) for function in within}

    assert len(yardsticks(1, 60)) == 1
    assert len(yardsticks(60, 300)) > 1


def test_it_closes_though_windows_are_rare() -> None:
    """With a window each half minute a recover_after of a minute holds too few: the newest four decide."""
    settings = Settings(recover_after_ns=60 * SECOND)
    changes = [(900.0, "rare", slower(4.0)), (1500.0, "rare", slower(0.25))]
    life = lived((unimodal("rare", rate=8.0),), 1900.0, changes, settings=settings)
    ((_, opened_),) = life.opened.values()
    ((second, closed),) = life.closed.values()
    assert opened_.id == closed.id and closed.state is ViolationState.RECOVERED
    assert 1560 < second < 1800


FACTORS = (1.0, 2.0, 0.5, 1.8, 0.6, 1.0, 2.0, 0.5, 1.7, 1.0)


def test_a_level_inside_its_range_is_no_change() -> None:
    """The detector may follow a change and alarm on the way back: by the yardstick nothing is other than asserted."""
    durations = np.random.default_rng(1).lognormal(10.0, 0.3, 4000)
    windows = [
        Observation(
            function="f", lifetime="l", kind=Kind.TIME, start_ns=at * SECOND, end_ns=(at + 1) * SECOND,
            histogram=Histogram.from_durations((part * factor).astype(np.int64)), calls=400, watched_ns=SECOND,
        )
        for at, (part, factor) in enumerate(zip(np.split(durations, 10), FACTORS, strict=True))
    ]  # fmt: skip
    yardstick = begun("b", Asserted(), windows, 0)
    alarm = Alarm(
        stream=Stream(what=What.LEVEL, part="all"), direction=Direction.FASTER, factor=0.6, factor_low=0.5,
        factor_high=0.7, since_ns=0, windows=5, log_e=30.0, opened=True,
    )  # fmt: skip
    assert change_of(yardstick, alarm, [windows[4]]) is None
    far = replace(windows[4], histogram=Histogram.from_durations((durations[:400] * 30).astype(np.int64)))
    change = change_of(yardstick, alarm, [far])
    assert change is not None and change.direction is Direction.SLOWER


@pytest.mark.parametrize(("name", "opened"), [("epoll_wait", 0), ("fdatasync", 1)])
def test_waiting_for_work_is_not_slow(name: str, opened: int) -> None:
    """A wait at the bottom of a main loop has any length; one for a disk is slow there too."""
    waits = replace(unimodal(name), loop_bottom=True)
    assert len(lived((waits,), 280.0, [(200.0, name, slower(3.0))]).opened) == opened


@pytest.mark.parametrize(("name", "opened"), [("epoll_wait", 0), ("fdatasync", 1)])
def test_a_thread_that_only_waits_for_a_disk_is_slower_though_it_waits_all_the_time(name: str, opened: int) -> None:
    """Three times as long and a third as often is as much time a second: of waits for work only that is no news."""
    waits = replace(unimodal(name), loop_bottom=True)
    life = lived((waits,), 280.0, [(200.0, name, slower(3.0)), (200.0, name, called(1 / 3))])
    assert len(life.opened) == opened
    assert bool(life.state.idle) == (opened == 0)


@pytest.mark.parametrize("offset", [0, 1])
def test_what_recovered_is_not_opened_again_by_another_stream(offset: int) -> None:
    """The slowest tenth has a value in large windows only; it is about the same change, and over with it."""
    rng = np.random.default_rng(5)
    violations, held, ids = FunctionViolations(), [], set()
    for at in range(110):
        factor, calls = 3.0 if 40 <= at < 60 else 1.0, 600 if at % 2 == offset else 150
        window = Observation(
            function="f", lifetime="l", kind=Kind.TIME, start_ns=10 * at * SECOND, end_ns=10 * (at + 1) * SECOND,
            histogram=Histogram.from_durations((factor * 40_000 * rng.lognormal(0, 0.3, calls)).astype(np.int64)),
            calls=calls, watched_ns=10 * SECOND,
        )  # fmt: skip
        held.append(window)
        around = Watching(
            function="f", build_id="b", asserted=Asserted(), newest=tuple(held[-40:]), recover_after_ns=60 * SECOND
        )
        violations = watched(violations, window, around)
        ids |= {one.id for one in violations.all}
    assert len(ids) == 1
    assert violations.standing == ()
