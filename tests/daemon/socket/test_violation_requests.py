"""Which violations a request means."""

from __future__ import annotations

from specmine.daemon.socket.violation_requests import with_explained
from specmine.model.violation import ViolationState
from tests.support.violations import violation


def test_what_is_slower_only_through_a_violation_goes_with_it() -> None:
    """Down the whole chain; not what closed before, and not what another function explains."""
    cause = violation("cause")
    through, above = violation("through", because="cause"), violation("above", because="through")
    closed = violation("closed", because="cause", state=ViolationState.RECOVERED, closed_ns=1)
    other, mine = violation("other", because="elsewhere"), violation("mine")
    every = [above, closed, other, through, mine, cause]
    assert with_explained([cause], every) == [cause, through, above]
    assert with_explained([through], every) == [through, above], "its cause stays open"
    assert with_explained([mine], every) == [mine]
    assert with_explained([], every) == []


def test_two_that_explain_each_other_end() -> None:
    """Each is there once."""
    one, two = violation("one", because="two"), violation("two", because="one")
    assert with_explained([one], [one, two]) == [one, two]
