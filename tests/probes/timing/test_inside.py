"""What the timed calls within a call took: counted where they happened, told only of callees timed all the while."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from specmine.model.batch import Unwatch
from specmine.model.buckets import bucket_of
from specmine.model.call_path import Frame
from specmine.model.histogram import EMPTY, Histogram
from specmine.model.inside.parts import CalleeSet, Inside
from specmine.model.inside.sums import pooled_inside
from specmine.model.observation import Kind
from tests.support.source_driver import Driver, driven, running

Programs = Callable[..., Path]


def names(frames: tuple[Frame, ...]) -> list[str]:
    """Return the names of frames."""
    return [frame.name for frame in frames]


def told(driver: Driver, key: str, timed: list[str]) -> list[Inside]:
    """Return what is told of windows during which these callees were timed, and no other in part."""
    parts = [part for each in driver.observations if each.function == key for part in each.inside]
    return [part for part in parts if names(part.timed) == timed and not part.partly]


def by_names(part: Inside) -> dict[tuple[str, ...], CalleeSet]:
    """Return the sets by the names of their callees, wherever their calls were blocked."""
    alike = replace(part, sets=tuple(replace(each, blocked=()) for each in part.sets))
    (joined,) = pooled_inside([alike, replace(alike, calls=EMPTY, sets=())])
    return {tuple(one.callee.name for one in each.callees): each for each in joined.sets}


@pytest.mark.kernel
@pytest.mark.parametrize(("kind", "preload"), [(Kind.TIME, ""), (Kind.PATH, ""), (Kind.TIME, "libgcc_s.so.1")])
def test_callees_are_counted_in_the_very_calls(
    program: Programs, kind: Kind, preload: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call of request() holds two of parse(), some hold one of flush(), with sessions and with return sites."""
    if preload:
        monkeypatch.setenv("LD_PRELOAD", preload)
    with (
        running(program("insides"), 600) as child,
        driven(child.pid, "request", "parse", "flush", isolate=False) as driver,
    ):
        request = driver.watch("request", kind, window_calls=300, window_ns=10**10)
        for name in ("parse", "flush"):
            driver.watch(name, Kind.TIME, window_calls=300, window_ns=10**10)
        driver.poll(lambda: len(told(driver, request, ["flush", "parse"])) >= 2, 60)
    for part in told(driver, request, ["flush", "parse"])[1:]:
        sets = by_names(part)
        assert set(sets) <= {("parse",), ("flush", "parse")}
        assert sum(each.calls.total for each in sets.values()) == pytest.approx(part.calls.total, abs=2)
        fast, slow = sets[("parse",)], sets[("flush", "parse")]
        for each in (fast, slow):
            assert each.callees[-1].calls.total == 2 * each.calls.total
            assert np.array_equal(each.callees[-1].calls.buckets, each.calls.buckets)
        assert slow.callees[0].calls.total == slow.calls.total
        flush = slow.callees[0]
        assert flush.time_ns.total > 950_000 * slow.calls.total, "it asks for a sleep of 1 ms"
        assert part.split
        blocked = [each for each in part.sets if "flush" in names(each.blocked)]
        in_time = int(bucket_of(7_500_000))  # one that waits longer for a CPU sleeps for less than an eighth
        numbers = [each.calls.part(0, in_time).total for each in blocked]
        assert sum(numbers) == slow.calls.part(0, in_time).total > 0, "each call of flush() sleeps"
        assert all(each.blocked_ns.total > 900_000 * each.calls.total for each in blocked)
        asleep = sum(each.calls.total for each in part.sets if "parse" in names(each.blocked))
        assert asleep <= 0.01 * part.calls.total, "it never sleeps, but where a page fault lets it"
        assert flush.blocked_ns.total > 0.9 * 1_000_000 * slow.calls.total
        assert flush.blocked_ns.total + flush.waiting_ns.total <= flush.time_ns.total * 1.01 + 1e5
        assert sum(one.time_ns.total for one in slow.callees) < slow.calls.time_ns() * 1.04


@pytest.mark.kernel
def test_the_nearest_timed_call_has_it(program: Programs) -> None:
    """flush() counts in middle() while that is timed, in deep() while it is not."""
    with (
        running(program("insides"), 600) as child,
        driven(child.pid, "deep", "middle", "flush", isolate=False) as driver,
    ):
        limits = {"window_calls": 40, "window_ns": 10**10}
        deep = driver.watch("deep", Kind.TIME, **limits)
        driver.watch("flush", Kind.TIME, **limits)
        driver.poll(lambda: told(driver, deep, ["flush"]), 60)
        middle = driver.watch("middle", Kind.TIME, **limits)
        driver.poll(lambda: len(told(driver, deep, ["flush", "middle"])) >= 2, 60)
        driver.poll(lambda: told(driver, middle, ["flush"]), 60)
    last = told(driver, deep, ["flush", "middle"])[-1]
    assert set(by_names(last)) == {("middle",)}
    assert set(by_names(told(driver, middle, ["flush"])[-1])) == {("flush",)}


@pytest.mark.kernel
def test_calls_while_a_callee_is_not_timed_stay_apart(program: Programs) -> None:
    """Its time while its probes are off must not pass for its caller's own time; of the other calls all is known."""
    with running(program("insides"), 600) as child, driven(child.pid, "request", "parse", isolate=False) as driver:
        request = driver.watch("request", Kind.TIME, window_calls=300, window_ns=10**10)
        driver.watch("parse", Kind.TIME, on_ns=60_000_000, period_ns=150_000_000, window_calls=50, window_ns=10**10)

        def parts(which: str) -> list[Inside]:
            every = [part for each in driver.observations if each.function == request for part in each.inside]
            return [part for part in every if names(getattr(part, which)) == ["parse"]]

        driver.poll(lambda: sum(part.calls.total for part in parts("timed")) > 300 and parts("partly"), 60)
    for part in parts("timed"):
        assert not part.partly
        assert set(by_names(part)) == {("parse",)}, "each call of request() holds two of parse()"
        (only,) = by_names(part).values()
        assert only.calls == part.calls
        assert only.callees[0].calls.total == 2 * part.calls.total
    assert all(not part.timed for part in parts("partly"))


@pytest.mark.kernel
def test_a_function_that_is_given_up_holds_no_window(program: Programs) -> None:
    """Its attachments can be named for long after; its histograms, 9 kB and more each, are forgotten."""
    with running(program("insides"), 600) as child, driven(child.pid, "request", isolate=False) as driver:
        for number in range(1, 4):
            key = driver.watch("request", Kind.TIME, window_calls=50)
            driver.poll(lambda number=number: len(driver.observations) >= number)  # type: ignore[misc]
            driver.source.apply(Unwatch(function=key))
        known = set(driver.source.parts.registry.windows._inside._attached.values())
        assert len(known) >= 2
        assert [each for each in known if each.window is not None] == []


def test_parts_of_the_same_callees_add_up() -> None:
    """Windows in which other callees were timed stay apart."""
    g, h = Frame("g", "m"), Frame("h", "m")
    one, two = Histogram.from_pairs([7], [3]), Histogram.from_pairs([7, 9], [1, 2])
    parts = [
        Inside(calls=one, timed=(g,), sets=(CalleeSet(calls=one, callees=()),)),
        Inside(calls=two, timed=(g, h)),
        Inside(calls=two, timed=(g,), sets=(CalleeSet(calls=two, callees=()),)),
    ]
    first, second = pooled_inside(parts)
    assert (first.calls.pairs, first.sets[0].calls.pairs) == ([[7, 4], [9, 2]], [[7, 4], [9, 2]])
    assert second is parts[1]
