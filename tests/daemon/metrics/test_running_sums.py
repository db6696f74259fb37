"""Sums never fall, and no call is counted in two of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from specmine.daemon.metrics.running_sums import RunningSums

STEPS = st.lists(st.lists(st.tuples(st.integers(0, 30), st.booleans(), st.booleans()), min_size=3, max_size=3))


@given(STEPS)
def test_what_is_counted_is_in_one_sum(steps: list[list[tuple[int, bool, bool]]]) -> None:
    """Functions are added now to one sum, now to the other, come, go and begin anew."""
    sums, last = RunningSums(), {"a": 0.0, "b": 0.0}
    value, told = [0, 0, 0], [0, 0, 0]
    counted = 0
    for step in steps:
        values = []
        for number, (more, there, anew) in enumerate(step):
            value[number] = more if anew else value[number] + more
            if there:
                counted += value[number] - (told[number] if value[number] >= told[number] else 0)
                told[number] = value[number]
                values.append((str(number), ("calls", ("a" if more % 2 else "b", "f", "m"), float(value[number]))))
        for _, labels, total in sums.with_values(values):
            assert total >= last[labels[0]]
            last[labels[0]] = total
    assert sum(last.values()) == counted


def test_functions_that_are_gone_leave_their_calls_behind() -> None:
    """A thousand builds of a function: the sum has all their calls, and nothing is held of all but the last."""
    sums, total = RunningSums(), 0.0
    for number in range(1000):
        key = f"build{number}"
        ((_, _, total),) = sums.with_values([(key, ("calls", ("app", "f", "m"), 3.0))])
        sums.keep({key})
    assert total == 3000.0
    assert len(sums._last) == 1
