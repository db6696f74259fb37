"""Time of functions divided among those that call them."""

from __future__ import annotations

import pytest

from specmine.daemon.controller.sampling.callers import carried_up
from specmine.daemon.controller.sampling.profile import Profile


def profiles(**rows: tuple[float, dict[str, float]]) -> dict[str, Profile]:
    """Return profiles of (inclusive time, time through each caller)."""
    return {
        name: Profile(samples=10, inclusive_ns=time_ns, callers=tuple(callers.items()))
        for name, (time_ns, callers) in rows.items()
    }


def test_time_is_divided_by_the_time_through_each_caller() -> None:
    """A quarter of a helper's time is below parse(), the rest below run(), all below main()."""
    known = profiles(
        main=(100.0, {}),
        parse=(40.0, {"main": 40.0}),
        run=(60.0, {"main": 60.0}),
        helper=(20.0, {"parse": 5.0, "run": 15.0}),
    )
    found = carried_up({"helper": 8.0}, ["helper"], known)
    assert found == pytest.approx({"helper": 8.0, "parse": 2.0, "run": 6.0, "main": 8.0})


def test_what_comes_up_to_a_function_that_is_looked_at_itself_ends_there() -> None:
    """Its own time has that; and what must not go up stays."""
    known = profiles(main=(100.0, {}), run=(60.0, {"main": 60.0}), helper=(20.0, {"run": 20.0}))
    found = carried_up({"helper": 20.0, "run": 60.0}, ["helper", "run"], known)
    assert found == pytest.approx({"helper": 20.0, "run": 60.0, "main": 60.0})
    assert carried_up({"helper": 20.0}, [], known) == {"helper": 20.0}


def test_recursion_and_callers_that_nobody_knows_end_it() -> None:
    """A ring of two that call each other, above which is a function without a profile."""
    known = profiles(a=(10.0, {"b": 5.0, "gone": 5.0}), b=(10.0, {"a": 10.0}), helper=(4.0, {"a": 4.0}))
    found = carried_up({"helper": 4.0}, ["helper"], known)
    assert found["a"] == pytest.approx(8.0, rel=0.01)
    assert found["b"] == pytest.approx(4.0, rel=0.01)
