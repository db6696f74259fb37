"""What answers took is told to the controller in turns, never less than a millisecond."""

from __future__ import annotations

from specmine.daemon.controller.events import Answered
from specmine.daemon.socket.answered_time import AnsweredTime


def test_what_servers_took_is_told_together_and_once() -> None:
    """Totals, so that a lost event would lose nothing."""
    took = {"socket": 0.0, "metrics": 0.0}
    answered = AnsweredTime((lambda: took["socket"], lambda: took["metrics"]))
    assert answered.turn(1) is None
    took |= {"socket": 0.5, "metrics": 0.25}
    assert answered.turn(2) == Answered(now_ns=2, cpu_ns=750_000_000)
    took["socket"] += 0.0004
    assert answered.turn(3) is None
    took["socket"] += 0.0007
    assert answered.turn(4) == Answered(now_ns=4, cpu_ns=751_100_000)
    assert answered.turn(5) is None
