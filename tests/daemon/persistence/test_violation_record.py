"""What the store gets of violations, and when."""

from __future__ import annotations

from dataclasses import replace

from specmine.daemon.controller.function import FunctionState, Identity
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.persistence.violation_record import LISTED_NS, ViolationRecord, listed
from specmine.model.violation import Violation, ViolationState
from specmine.store import stored
from tests.support.planted import unimodal
from tests.support.violations import SECOND, standing, violation

FUNCTION = unimodal("f").function


def state(*violations: Violation, now_s: int = 160) -> ControllerState:
    """Return a state in which one function has these violations."""
    function = FunctionState(identity=Identity(function=FUNCTION), violations=standing(*violations))
    return ControllerState(functions={FUNCTION.key: function}, now_ns=now_s * SECOND)


def test_an_opening_is_news_at_once_and_then_no_longer() -> None:
    """The function is named as well: its state goes to the store with the violation."""
    record, one = ViolationRecord(), violation(FUNCTION.key)
    news = record.news(state(one))
    assert news.functions == (FUNCTION.key,)
    assert [each.violation for each in news.records] == [one]
    assert record.news(state(one)).records == ()


def test_what_grows_while_open_is_written_now_and_then() -> None:
    """The observed level changes with every window; the store gets it each ten seconds."""
    record, one = ViolationRecord(), violation(FUNCTION.key)
    record.news(state(one))
    assert record.news(state(replace(one, factor=3.0), now_s=165)).records == ()
    later = record.news(state(replace(one, factor=3.5), now_s=171))
    assert (len(later.records), later.functions) == (1, ())


def test_a_close_is_news_even_right_after_an_update() -> None:
    """Whoever was told that it is over must find it closed after a restart."""
    record, one = ViolationRecord(), violation(FUNCTION.key)
    before = state(one)
    record.news(before)
    function = before.functions[FUNCTION.key]
    over = one.closed(ViolationState.RECOVERED, 161 * SECOND)
    after = replace(
        before, functions={FUNCTION.key: replace(function, violations=function.violations.with_closed([over]))}
    )
    news = record.news(after)
    assert news.functions == (FUNCTION.key,)
    assert news.records[0].closed_utc_ns == 161 * SECOND


def test_what_was_restored_is_no_news() -> None:
    """A restart writes nothing twice."""
    record, one = ViolationRecord(), violation(FUNCTION.key)
    record.restore([one])
    assert record.news(state(one)).records == ()


def test_what_closed_long_ago_is_not_listed() -> None:
    """The daemon remembers a week; the store has all."""
    one = violation(FUNCTION.key)
    closed = one.closed(ViolationState.RECOVERED, 200 * SECOND)
    held = [stored(one, 0), stored(replace(closed, id="b"), 0)]
    assert [each.id for each in listed(held, 200 * SECOND + LISTED_NS)] == [one.id, "b"]
    assert [each.id for each in listed(held, 201 * SECOND + LISTED_NS)] == [one.id]
