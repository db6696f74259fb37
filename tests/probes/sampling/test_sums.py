"""From stacks to what was found of each function."""

from __future__ import annotations

from specmine.probes.sampling.sums import FunctionSum, hot_samples


def test_a_stack_that_stands_for_no_time_breaks_nothing() -> None:
    """A callee with samples and no time has no part in what its caller has in common with it."""
    outer, inner = FunctionSum(), FunctionSum()
    outer.callees["inner"] += 0.0
    _, found = hot_samples({"outer": outer, "inner": inner})
    assert (found.callee_ns, found.inclusive_ns) == (0.0, 0.0)
