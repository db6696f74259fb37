"""What was learned while something else was slower is no assertion, and is learned anew once that is over."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specmine.daemon.config.settings import SECOND, Settings
from specmine.daemon.controller.phase import State
from specmine.daemon.controller.problems.learned_during import earliest_ns, with_learned_during
from specmine.daemon.controller.reasons import LEARNED_DURING
from specmine.daemon.documents.verdicts import verdict_of
from specmine.model.verdict import Verdict
from specmine.model.violation import Direction
from tests.support.changing import Life, called, lived, slower
from tests.support.planted import Planted, Way

SETTINGS = replace(Settings(), recover_after_ns=30 * SECOND)
FAULT_S, LATER_S, OVER_S = 200.0, 240.0, 420.0
"""One function becomes slower; then another one is called for the first time, three times slower than it will be."""


def program() -> tuple[Planted, ...]:
    """Return one function that is called all the time, and one that is hardly called before the fault."""
    steady = Planted(
        name="steady", rate=500.0, own=0.5, inclusive=0.5,
        ways=(Way(callers="main", weight=1.0, classes=((1.0, 80_000.0, 0.2),)),),
    )  # fmt: skip
    late = Planted(
        name="late", rate=0.001, own=0.3, inclusive=0.3,
        ways=(Way(callers="main", weight=1.0, classes=((1.0, 120_000.0, 0.2),)),),
    )  # fmt: skip
    return steady, late


CHANGES = [
    (FAULT_S, "steady", slower(3.0)),
    (LATER_S, "late", called(400_000.0)),
    (OVER_S, "steady", slower(1 / 3)),
    (OVER_S, "late", slower(1 / 3)),
]


@pytest.fixture(scope="module")
def after() -> Life:
    """Return what the daemon made of the fault and of its end."""
    return lived(program(), 620.0, CHANGES, settings=SETTINGS)


def test_the_end_of_a_fault_is_no_news(after: Life) -> None:
    """A function that was learned during a fault is not called faster once the fault is over."""
    names = {each.key: each.function.name for each in after.state.functions.values()}
    assert [(names[one.function], one.direction) for _, one in after.opened.values()] == [("steady", Direction.SLOWER)]
    assert not any(each.violations.open for each in after.state.functions.values())


def test_it_is_learned_anew(after: Life) -> None:
    """Its yardstick is that of the time after the fault."""
    late = after.named("late")
    assert late.state is State.SINGLE and late.violations.yardstick is not None
    assert not late.violations.yardstick.during
    median = late.violations.yardstick.level.p50
    assert median is not None and median.ns == pytest.approx(40_000.0, rel=0.1)


def test_until_then_nothing_is_asserted_of_it() -> None:
    """While the other function is slower the verdict is unknown, and the reason names that function."""
    life = lived(program(), OVER_S - 10.0, CHANGES, settings=SETTINGS)
    late = life.named("late")
    assert late.state is State.SINGLE and late.violations.yardstick is not None
    assert [each.function for each in late.violations.yardstick.during] == [life.named("steady").function.title]
    assert verdict_of(late, Verdict.HOLDS) is Verdict.UNKNOWN
    assert late.reason is not None and late.reason.code == LEARNED_DURING and "steady" in late.reason.text


def test_what_is_slower_still_is_reported() -> None:
    """Three times slower than what was learned during a fault is a violation."""
    life = lived(program(), 460.0, [*CHANGES[:2], (400.0, "late", slower(3.0))], settings=SETTINGS)
    assert [one.direction for one in life.named("late").violations.open] == [Direction.SLOWER]


def test_a_fault_may_have_begun_right_after_the_window_before_it() -> None:
    """Windows come a minute apart: what was learned between the last usual one and the moment told is in doubt, too."""
    state = lived(program(), OVER_S - 10.0, CHANGES, settings=SETTINGS)
    steady, late = state.named("steady"), state.named("late")
    (violation,) = steady.violations.open
    usual = [each for each in steady.history.timing if each.end_ns <= violation.since_ns][-1:]
    assert earliest_ns(violation, steady) == (usual[0].end_ns if usual else violation.since_ns)
    yardstick = late.violations.yardstick
    assert yardstick is not None and yardstick.settling is not None
    learned_ns = (yardstick.settling.began_ns + yardstick.since_ns) // 2
    for ago_s, during in ((60.0, True), (1.0, False)):
        told = replace(violation, since_ns=learned_ns + 2 * SECOND)
        standing = replace(steady.violations.standing[0], violation=told)
        window = replace(steady.history.timing[-1], start_ns=0, end_ns=told.since_ns - round(ago_s * SECOND))
        history = replace(steady.history, timing=(window,), paths=())
        other = replace(steady, history=history, violations=replace(steady.violations, standing=(standing,)))
        fresh = replace(late, violations=replace(late.violations, yardstick=replace(yardstick, during=())))
        functions = {other.key: other, fresh.key: fresh}
        with_learned_during(functions, SETTINGS, told.since_ns + 60 * SECOND)
        after = functions[fresh.key].violations.yardstick
        assert after is not None and bool(after.during) is during


def test_an_acknowledged_fault_is_the_usual_state() -> None:
    """Once a person says that the fault is known, what was learned during it is asserted."""
    life = lived(program(), 460.0, CHANGES[:2], settings=SETTINGS, acknowledge_at=400.0)
    late = life.named("late")
    assert late.state is State.SINGLE and late.violations.yardstick is not None
    assert not late.violations.yardstick.during and late.reason is None
    median = late.violations.yardstick.level.p50
    assert median is not None and median.ns == pytest.approx(120_000.0, rel=0.1)
