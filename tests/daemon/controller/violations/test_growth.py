"""What in the calls of a violated function takes more: named only where it surely has half of the difference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from specmine.daemon.controller.violations.growth import callee_growth, steady, wait_growth
from specmine.daemon.controller.violations.usual import Usual
from specmine.model.buckets import bucket_of
from specmine.model.call_path import Frame
from specmine.model.histogram import Histogram
from specmine.model.inside.waits import Wait, WaitKind, Waits, Waker
from specmine.model.observation import Observation
from tests.support.insides import inside_of_calls, observation_of

US, MS = 1e3, 1e6
LOCK, DISK = Frame("take_lock", "app"), Frame("save", "app")


def usual(running_ns: float, blocked_ns: float) -> Usual:
    """Return sums over 1,000 calls."""
    mean = running_ns + blocked_ns
    return Usual(calls=1000, total_ns=1000 * mean, split_calls=1000, split_ns=1000 * mean, blocked_ns=1000 * blocked_ns)


def followed(calls: int = 100, **mean_ns: float) -> Waits:
    """Return waits by place: mean time of a call."""
    places = {"lock": (WaitKind.FUTEX, "futex", LOCK), "disk": (WaitKind.FILE, "fsync", DISK)}
    at = bucket_of(np.array([5e6]))
    waits = [
        Wait(
            kind=places[name][0],
            call=places[name][1],
            frames=(Frame("syscall", "libc.so.6"), places[name][2]),
            waits=Histogram.from_pairs(at, [calls]),
            blocked_ns=Histogram.from_pairs(at, [round(calls * ns)]),
        )
        for name, ns in mean_ns.items()
    ]
    durations = Histogram.from_pairs(at, [calls])
    return Waits(function="f", calls=durations, followed_ns=10**9, end_ns=1, waits=tuple(waits))


def test_the_wait_that_grew_is_named_with_its_numbers() -> None:
    """Calls take 4.3 ms more, 4.1 ms of it for a lock."""
    found = wait_growth(usual(0.2 * MS, 0.0), usual(0.4 * MS, 4.1 * MS), followed(lock=4.1 * MS))
    assert found is not None
    assert (found.what, found.call, found.function) == ("futex", "futex", "take_lock")
    assert found.more_ns == pytest.approx(4.1 * MS)
    assert found.of_ns == pytest.approx(4.3 * MS)


def test_several_places_are_named_by_the_function_that_has_them_all() -> None:
    """Half of the calls wait for the disk, half for those; both in flush(). Without it only the parts are told."""
    waits = followed(lock=2 * MS, disk=1.9 * MS)
    inside = tuple(replace(each, frames=(*each.frames, Frame("flush", "app"))) for each in waits.waits)
    for each, name in ((replace(waits, waits=inside), "flush"), (waits, "")):
        found = wait_growth(usual(MS, 0.0), usual(1.1 * MS, 4 * MS), each)
        assert found is not None
        assert (found.function, found.what) == (name, "futex")
        assert found.more_ns == pytest.approx(4 * MS)
        assert [(part.what, part.call, part.function) for part in found.parts] == [
            ("futex", "futex", "take_lock"),
            ("file", "fsync", "save"),
        ]
        assert [part.share for part in found.parts] == pytest.approx([0.51, 0.49])


def test_who_calls_the_place_and_who_ended_the_waits_is_told() -> None:
    """A wait for a lock says little without the callers; who ended a third of the time is not told, nor are others."""
    waits = followed(lock=4 * MS)
    (wait,) = waits.waits
    wait = replace(wait, frames=(*wait.frames, Frame("change_row", "app"), Frame("run", "app")))
    held = [wakers_of(wait, {(Frame("unlock", "app"),): 0.6, (): 0.4}), wakers_of(wait, {(): 0.9})]
    for each, name in zip([wait, *held], ["", "unlock", ""], strict=True):
        found = wait_growth(usual(MS, 0.0), usual(MS, 4 * MS), replace(waits, waits=(each,)))
        assert found is not None
        assert found.callers == ("change_row", "run")
        assert found.waker == name


def wakers_of(wait: Wait, shares: dict[tuple[Frame, ...], float]) -> Wait:
    """Return a wait that these stacks ended."""
    total = wait.blocked_ns.total
    at = wait.blocked_ns.buckets
    return replace(
        wait,
        wakers=tuple(
            Waker(frames=frames, blocked_ns=Histogram.from_pairs(at, [round(total * share)]))
            for frames, share in shares.items()
        ),
    )


@pytest.mark.parametrize(
    ("before", "now", "waits"),
    [
        (usual(MS, 0.0), usual(MS, 4 * MS), None),  # nobody looked
        (usual(MS, 0.0), usual(MS, 4 * MS), followed()),  # no wait was seen
        (usual(MS, 0.0), usual(MS, 4 * MS), followed(calls=3, lock=4 * MS)),  # in too few calls
        (usual(MS, 0.0), usual(MS, 4 * MS), followed(lock=1 * MS)),  # those that wait long were missed
        (usual(MS, 0.0), usual(6 * MS, 4 * MS), followed(lock=4 * MS)),  # they work more, mostly
        (usual(MS, 4 * MS), usual(1.5 * MS, 4.4 * MS), followed(lock=4.4 * MS)),  # they work more, mostly
        (usual(MS, 4 * MS), usual(MS, 1 * MS), followed(lock=1 * MS)),  # less than usual
    ],
)
def test_none_is_named_without_half_of_the_difference(before: Usual, now: Usual, waits: Waits | None) -> None:
    """What is not known, or may have been there before, is not named."""
    assert wait_growth(before, now, waits) is None


def test_numbers_that_hardly_change_stay() -> None:
    """A tenth more is no news; twice as much is, and so is another place. What was known is not forgotten."""
    first = wait_growth(usual(MS, 0.0), usual(MS, 4 * MS), followed(lock=4 * MS))
    assert first is not None
    near = replace(first, more_ns=1.1 * first.more_ns)
    assert steady(first, near) is first
    twice = replace(first, more_ns=2 * first.more_ns)
    assert steady(first, twice) is twice
    other = replace(first, function="save")
    assert steady(first, other) is other
    assert steady(None, first) is first
    assert steady(first, None) is first


def window(flush_ns: float, parse_ns: float, own_ns: float, start_ns: int) -> Observation:
    """Return a window of 500 calls."""
    callees = {Frame("flush", "libc"): np.full(500, flush_ns), Frame("parse", "app"): np.full(500, parse_ns)}
    return observation_of(inside_of_calls(callees, np.full(500, own_ns)), start_ns=start_ns)


def test_the_callee_that_grew_is_named() -> None:
    """Calls take 2.1 ms more, 2 ms of it in flush()."""
    before, after = window(MS, MS, MS, 0), window(3 * MS, MS, 1.1 * MS, 20)
    found = callee_growth([before], [after])
    assert found is not None
    assert (found.what, found.function, found.module) == ("callee", "flush", "libc")
    assert found.more_ns == pytest.approx(2 * MS, rel=0.03)
    assert found.of_ns == pytest.approx(2.1 * MS, rel=0.05)


def test_no_callee_is_named_where_none_grew_or_others_were_timed() -> None:
    """Own code, a mixture, and windows that cannot be compared."""
    before = window(MS, MS, MS, 0)
    assert callee_growth([before], [window(MS, MS, 4 * MS, 20)]) is None
    assert callee_growth([before], [window(1.4 * MS, 1.4 * MS, 1.4 * MS, 20)]) is None
    assert callee_growth([], [window(3 * MS, MS, MS, 20)]) is None
    fewer = observation_of(inside_of_calls({Frame("flush", "libc"): np.full(500, 3 * MS)}, np.full(500, MS)))
    assert callee_growth([before], [fewer]) is None
