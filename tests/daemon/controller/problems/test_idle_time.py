"""Which part of a function's time waits for work."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specmine.daemon.controller.call_counts import ProbeState
from specmine.daemon.controller.function import FunctionState, Identity
from specmine.daemon.controller.problems.idle_time import idle_shares, loop_shares
from specmine.daemon.controller.sampling.profile import Profile
from specmine.model.function import Function

LIBRARY = ("epoll_wait", "fdatasync", "pause", "nanosleep")


def functions(*rows: tuple[str, float, float, float, dict[str, float]]) -> dict[str, FunctionState]:
    """Return functions of (name, own, on CPU, inclusive, time through each caller)."""
    names = {
        name: Function(name=name, module="m", build_id="b", offset=16 * place, in_program=name not in LIBRARY)
        for place, (name, *_) in enumerate(rows)
    }
    return {
        names[name].key: FunctionState(
            identity=Identity(function=names[name]),
            profile=Profile(
                samples=10, own_ns=own, cpu_ns=cpu, inclusive_ns=inclusive,
                callers=tuple((names[caller].key, ns) for caller, ns in callers.items()),
            ),
        )
        for name, own, cpu, inclusive, callers in rows
    }  # fmt: skip


def shares(found: dict[str, FunctionState]) -> dict[str, float]:
    """Return the idle shares by name."""
    return {found[key].function.name: share for key, share in idle_shares(found).items()}


def test_what_an_event_loop_calls_comes_before_it() -> None:
    """Of 100 s the loop waits for 90; what it does in the others waits for nothing, but for a disk."""
    found = functions(
        ("main", 0.0, 0.0, 100.0, {}),
        ("loop", 0.0, 0.0, 100.0, {"main": 100.0}),
        ("epoll_wait", 90.0, 1.0, 90.0, {"loop": 90.0}),
        ("work", 4.0, 4.0, 10.0, {"loop": 10.0}),
        ("fdatasync", 6.0, 0.0, 6.0, {"work": 6.0}),
    )
    assert shares(found) == pytest.approx({"epoll_wait": 1.0, "loop": 0.9, "main": 0.9})


def test_a_wait_is_divided_among_callers() -> None:
    """Half of a wait comes from work that also computes; waits inside waits count once."""
    found = functions(
        ("busy", 30.0, 30.0, 40.0, {}),
        ("idle", 0.0, 0.0, 10.0, {}),
        ("pause", 0.0, 0.0, 20.0, {"busy": 10.0, "idle": 10.0}),
        ("nanosleep", 20.0, 0.0, 20.0, {"pause": 20.0}),
    )
    assert shares(found) == pytest.approx({"pause": 1.0, "nanosleep": 1.0, "busy": 0.25, "idle": 1.0})


def test_what_only_jumps_to_a_wait_counts_once() -> None:
    """It stands on no stack, and has the time and the callers of the wait that it jumps to."""
    found = functions(
        ("commit", 0.0, 0.0, 10.0, {}),
        ("fdatasync", 6.0, 0.0, 6.0, {"commit": 6.0}),
        ("nanosleep", 4.0, 0.0, 4.0, {"commit": 4.0}),
        ("pause", 0.0, 0.0, 4.0, {"commit": 4.0}),
    )
    assert shares(found) == pytest.approx({"commit": 0.4, "nanosleep": 1.0, "pause": 1.0})


def test_recursion_ends() -> None:
    """Two functions that call each other and wait: no share is above one."""
    found = functions(
        ("a", 0.0, 0.0, 100.0, {"b": 100.0}),
        ("b", 0.0, 0.0, 100.0, {"a": 100.0}),
        ("epoll_wait", 50.0, 0.0, 50.0, {"a": 50.0}),
    )
    assert max(shares(found).values()) <= 1.0
    assert idle_shares({}) == {}


def test_a_wait_for_a_lock_is_not_for_lack_of_work() -> None:
    """One latch serves a main loop for 90 s, and for 10 s a request that waits for a lock and computes for as long."""
    found = functions(
        ("main", 0.0, 0.0, 110.0, {}),
        ("loop", 0.0, 0.0, 110.0, {"main": 110.0}),
        ("request", 10.0, 10.0, 20.0 + 1.0, {"loop": 21.0}),
        ("lock", 0.0, 0.0, 10.0, {"request": 10.0}),
        ("latch", 0.0, 0.0, 100.0, {"loop": 90.0, "lock": 10.0}),
        ("epoll_wait", 100.0, 0.0, 100.0, {"latch": 100.0}),
    )
    idle = idle_shares(found)
    waits = {found[key].function.name: share for key, share in loop_shares(found, idle).items()}
    assert waits == pytest.approx({"main": 100 / 110, "loop": 100 / 110, "latch": 0.9, "epoll_wait": 0.9})
    assert shares(found)["lock"] == 1.0


def test_a_busy_main_loop_is_known_by_that_nobody_calls_it() -> None:
    """Its latch waits for work as long as it is known to be never called, though it waits for a third of its time."""
    found = functions(
        ("loop", 20.0, 20.0, 30.0, {}),
        ("epoll_wait", 10.0, 0.0, 10.0, {"loop": 10.0}),
    )
    idle = idle_shares(found)
    assert loop_shares(found, idle) == {}
    seen = {key: replace(one, probe=ProbeState(rate=0.0)) for key, one in found.items()}
    assert loop_shares(seen, idle) == pytest.approx(idle)


def test_recursion_above_a_wait_ends() -> None:
    """What calls itself in a ring, with nothing above that works, waits for work."""
    found = functions(
        ("a", 0.0, 0.0, 100.0, {"b": 100.0}),
        ("b", 0.0, 0.0, 100.0, {"a": 100.0}),
        ("epoll_wait", 100.0, 0.0, 100.0, {"a": 100.0}),
    )
    assert set(loop_shares(found, idle_shares(found)).values()) == {1.0}
