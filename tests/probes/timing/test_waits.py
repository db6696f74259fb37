"""The waits of a function's calls: followed in phases, told by kind and place."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from specmine.mining.inside.waits import waits_of
from specmine.model.batch import FollowWaits
from specmine.model.buckets import BUCKETS
from specmine.model.function import Function
from specmine.model.inside.waits import Wait, WaitKind, Waits
from specmine.model.observation import Kind
from specmine.probes.arch.machine import machine
from specmine.probes.kernel.structs import (
    CALL_WAIT,
    MAX_SLOTS,
    NO_CALL,
    SAMPLE_VALUE,
    SETTINGS,
    WAIT,
    WAKER_FOREIGN,
    WAKER_WATCHED,
)
from specmine.probes.timing.waits import FEWEST_WALKS, MOST_WALKS, SPARSER, WANTED_PART, WaitMeter
from tests.support.source_driver import driven, running

Programs = Callable[..., Path]

TRUTH = {
    "lock": (WaitKind.FUTEX, "futex", "take_lock"),
    "file": (WaitKind.FILE, "fsync", "save"),
    "pipe": (WaitKind.PIPE, "read", "receive"),
    "socket": (WaitKind.SOCKET, "read", "receive"),
    "sleep": (WaitKind.SLEEP, "clock_nanosleep", "nap"),
    "poll": (WaitKind.POLL, "poll", "watch_nothing"),
    "fault": (WaitKind.FAULT, "", "touch"),
}
GIVEN = ("lock", "pipe", "socket")


def largest(told: Waits) -> Wait:
    """Return the place at which most time was waited."""
    return max(told.waits, key=lambda each: each.blocked_ns.total)


@pytest.mark.kernel
@pytest.mark.parametrize("mode", TRUTH)
def test_kind_and_place_are_those_of_the_program(program: Programs, mode: str, tmp_path: Path) -> None:
    """Each wait is told with the kind of what is waited for, the system call, and the function that waits."""
    kind, call, place = TRUTH[mode]
    told: list[Waits] = []
    with running(program("blocked"), mode, 600) as child, driven(child.pid, "top", sampling=True) as driver:
        key = driver.watch("top", Kind.TIME, window_calls=300, window_ns=10**10)
        driver.source.apply(FollowWaits(functions=(key,)))

        def heard() -> bool:
            told.extend(driver.last.waits)
            return bool(told)

        driver.poll(heard)
    found = largest(told[0])
    wakers = waits_of(told[0])[0].parts[0].wakers
    if mode in GIVEN and driver.source.parts.profiler.tracepoint.wakeups:
        assert wakers[0].place is not None and wakers[0].share > 0.5
        assert wakers[0].place.name == "giver", "another thread of the program gives what is waited for"
    else:
        assert wakers == (), "time, disk and kernel are nobody"
    assert (found.kind, found.call) == (kind, call)
    assert place in [frame.name for frame in found.frames]
    assert found.within is None
    assert 0 < found.waits.total <= told[0].calls.total


@pytest.mark.kernel
def test_on_phases_that_end_before_the_next_poll_are_followed(program: Programs) -> None:
    """The kernel ends each after a hundred hits, a poll comes each half second: at each the probes are off."""
    told: list[Waits] = []
    with running(program("blocked"), "lock", 600) as child, driven(child.pid, "top", sampling=True) as driver:
        short = {"on_ns": SECOND, "period_ns": 2 * SECOND, "burst_hits": 100, "hits_per_second": 100.0}
        key = driver.watch("top", Kind.TIME, window_calls=300, window_ns=10**10, **short)
        driver.source.apply(FollowWaits(functions=(key,)))

        def heard() -> bool:
            time.sleep(0.5)
            told.extend(each for each in driver.last.waits if each.waits)
            return bool(told)

        driver.poll(heard)
    assert largest(told[0]).call == "futex"
    assert 0 < told[0].followed_ns < SECOND // 2
    assert largest(told[0]).waits.total <= told[0].calls.total


class Kept:
    """A hash map with what was put there for the next look."""

    def __init__(self, key: Any, value: Any) -> None:
        self.key, self.value = np.dtype(key), np.dtype(value)
        self.rows: list[tuple[Any, Any]] = []

    def entries(self) -> tuple[Any, Any]:
        """Return keys and values."""
        return np.array([k for k, _ in self.rows], self.key), np.array([v for _, v in self.rows], self.value)

    def drain(self) -> tuple[Any, Any]:
        """Return keys and values, and forget them."""
        found, self.rows = self.entries(), []
        return found


FUNCTION = Function(build_id="b", offset=1, name="top", module="app")
IDENTITY, SLOT = 5 << 16 | 3, 3


class Host:
    """A host with one timed function, whose calls wait for a lock."""

    def __init__(self) -> None:
        self.on: set[str] = set()
        self.settings = np.zeros(1, SETTINGS)
        self.open, self.ended = Kept("<u4", WAIT), Kept(CALL_WAIT, SAMPLE_VALUE)
        self.histogram = np.zeros(MAX_SLOTS * BUCKETS, np.uint64)
        lock = Function(build_id="b", offset=2, name="take_lock", module="app")
        symbolizer: Any = SimpleNamespace(stack=lambda path, exact: [lock, FUNCTION])
        self.passes_ns = 0.0
        tracepoint: Any = SimpleNamespace(want=self.want, passes_ns=lambda: (self.passes_ns, self.passes_ns))
        began: Any = self.open
        ended: Any = self.ended
        self.meter = WaitMeter(tracepoint, self.settings, began, ended, symbolizer, self.histogram)
        self.watched_ns = 0
        self.waker = (NO_CALL, 0)
        self.timed: Any = SimpleNamespace(
            function=FUNCTION,
            probe=SimpleNamespace(timed=True),
            watch=SimpleNamespace(on_ns=0),
            slot=SimpleNamespace(number=SLOT),
            attachment=SimpleNamespace(on_ns=1, cookies=(IDENTITY,), watched_until=lambda now_ns: self.watched_ns),
        )

    def want(self, who: str, *, on: bool) -> None:
        """Have the tracepoint on or off."""
        self.on = self.on | {who} if on else self.on - {who}

    def run(self, now_ns: int, calls: int, walks: int | None = None) -> tuple[Waits, ...]:
        """Let calls end of which each waited for a ms, if waits are followed; then poll."""
        if self.settings["followed"][0] == IDENTITY and calls:
            self.end_calls(calls, walks)
        self.watched_ns = now_ns
        return self.meter.poll({FUNCTION.key: self.timed}, now_ns)

    def end_calls(self, calls: int, walks: int | None = None) -> None:
        """Let calls end of which each waited for a ms."""
        every = int(self.settings["follow_every"][0])
        seen = calls // every if walks is None else walks
        self.histogram[SLOT * BUCKETS + 700] += calls
        self.settings["left"][0] -= seen
        key = (1, IDENTITY, NUMBERS["futex"], 0, 700, *self.waker, 0, 9)
        self.ended.rows = [(key, (seen * every, seen * every * 1_000_000))]


NUMBERS = {call.name: number for number, call in machine().blocking_calls.items()}
SECOND = 1_000_000_000


def test_a_phase_is_followed_by_a_longer_pause() -> None:
    """The tracepoint is on for a second in four at first, then for one in twenty, and off once nobody asks."""
    host = Host()
    host.meter.ask((FUNCTION.key,), 0)
    on = []
    for tenth in range(1, 1600):
        host.run(tenth * SECOND // 10, calls=10)
        on.append(bool(host.on))
    assert 0.2 < np.mean(on[:300]) < 0.35
    assert 0.03 < np.mean(on[600:]) < 0.08
    host.meter.ask((), 160 * SECOND)
    for tenth in range(1600, 1640):
        host.run(tenth * SECOND // 10, calls=10)
    assert not host.on
    assert host.settings["followed"][0] == 0


def test_a_phase_says_how_long_calls_wait() -> None:
    """A hundred calls, each of which waits for a ms."""
    host = Host()
    host.meter.ask((FUNCTION.key,), 0)
    host.run(SECOND // 2, calls=0)
    host.run(SECOND, calls=100)
    (told,) = host.run(2 * SECOND, calls=0)
    assert told.calls.total == 100
    (wait,) = told.waits
    assert (wait.kind, wait.waits.total, wait.blocked_ns.total) == (WaitKind.FUTEX, 100, 100 * 1_000_000)
    assert [frame.name for frame in wait.frames] == ["take_lock"]


@pytest.mark.parametrize(
    ("call", "who", "expected"),
    [
        ("futex", WAKER_WATCHED, [("take_lock", "top")]),
        ("futex", WAKER_FOREIGN, [()]),
        ("write", WAKER_WATCHED, []),  # no such call ends a wait for a lock: an interrupt did, while this thread ran
        ("", WAKER_WATCHED, []),
    ],
)
def test_who_woke_a_thread_is_told_where_its_system_call_can_do_that(
    call: str, who: int, expected: list[tuple[str, ...]]
) -> None:
    """By its stack; of another program only that it was one."""
    host = Host()
    host.waker = (NUMBERS.get(call, NO_CALL), who)
    host.meter.ask((FUNCTION.key,), 0)
    host.run(SECOND // 2, calls=0)
    host.run(SECOND, calls=100)
    (told,) = host.run(2 * SECOND, calls=0)
    (wait,) = told.waits
    assert [tuple(frame.name for frame in each.frames) for each in wait.wakers] == expected
    assert all(each.blocked_ns == wait.blocked_ns for each in wait.wakers)


def test_too_many_waits_are_drawn_at_random_from_then_on() -> None:
    """A phase whose walks ran out says nothing; the next ones follow one wait in eight, which stands for eight."""
    host = Host()
    host.meter.ask((FUNCTION.key,), 0)
    host.run(SECOND // 2, calls=0)
    assert not host.run(2 * SECOND, calls=50_000, walks=MOST_WALKS)
    now_ns = 2 * SECOND
    while not host.settings["followed"][0]:
        now_ns += SECOND // 10
        host.run(now_ns, calls=0)
    assert host.settings["follow_every"][0] == SPARSER
    told = host.run(now_ns + SECOND, calls=800)
    assert told[0].waits[0].waits.total == 800
    assert host.meter.walked == MOST_WALKS + 100


def test_what_a_phase_costs_is_earned_before_the_next_one() -> None:
    """At 0.1 ms a second a hundred walks of 10 us take ten seconds, with as much for passes twenty.

    Forty seconds were saved: two phases come soon. A phase has no more than 200 walks then. Who asks for another
    function meanwhile waits as long.
    """
    host = Host()
    host.meter.ask((FUNCTION.key,), 100 * SECOND, most_ns=1e5, walk_ns=1e4)
    for begin_ns in (100 * SECOND, 110 * SECOND):
        host.run(begin_ns, calls=0)
        assert host.on
        assert host.settings["left"][0] == FEWEST_WALKS
        host.passes_ns += 1e6
        assert host.run(begin_ns + 3 * SECOND // 2, calls=100 * max(1, int(host.settings["follow_every"][0])))
        assert not host.on
        assert host.meter._every[FUNCTION.key] == 100 * WANTED_PART // FEWEST_WALKS
    host.meter.ask((FUNCTION.key, "other"), 112 * SECOND, most_ns=1e5, walk_ns=1e4)
    host.run(114 * SECOND, calls=0)
    assert not host.on  # the other one's turn
    host.run(121 * SECOND, calls=0)
    assert host.on
    host.passes_ns += 5e6
    host.run(123 * SECOND, calls=100 * int(host.settings["follow_every"][0]))
    assert not host.on
    host.run(159 * SECOND, calls=0)
    assert not host.on
    host.run(166 * SECOND, calls=0)
    assert host.on


def test_nothing_is_followed_while_the_probes_are_off() -> None:
    """Calls that are open when the probes go would look as if they waited for ever."""
    host = Host()
    host.meter.ask((FUNCTION.key,), 0)
    host.run(SECOND // 2, calls=0)
    assert host.settings["followed"][0] == IDENTITY
    host.meter.leaving(host.timed, SECOND)
    assert host.settings["followed"][0] == 0
    host.meter.coming(host.timed, SECOND)
    assert host.settings["followed"][0] == IDENTITY


def test_an_on_phase_is_followed_though_it_is_over_when_that_is_known() -> None:
    """From the moment when its probes are asked for, until they go; then the tracepoint is off as well."""
    host = Host()
    host.timed.watch.on_ns, host.timed.attachment.on_ns = SECOND // 5, 0
    host.meter.ask((FUNCTION.key,), 0)
    assert not host.run(SECOND, calls=0)
    assert not host.on
    host.meter.coming(host.timed, 2 * SECOND)
    assert host.on
    host.end_calls(100)
    host.watched_ns += SECOND // 5
    host.meter.leaving(host.timed, 2 * SECOND + SECOND // 5)
    assert host.settings["followed"][0] == 0
    (told,) = host.meter.poll({FUNCTION.key: host.timed}, 3 * SECOND)
    assert not host.on
    assert told.calls.total == told.waits[0].waits.total == 100
    assert told.followed_ns == SECOND // 5


def test_calls_by_path_count_though_they_are_read_after_the_on_phase() -> None:
    """Those of this attachment; others of the same slot do not."""
    host = Host()
    host.timed.watch.on_ns, host.timed.attachment.on_ns = SECOND // 5, 0
    host.meter.ask((FUNCTION.key,), 0)
    host.meter.coming(host.timed, SECOND)
    host.meter.leaving(host.timed, 2 * SECOND)
    host.meter.add_path(IDENTITY, 700, 30)
    host.meter.add_path(IDENTITY + (1 << 16), 700, 5)
    (told,) = host.meter.poll({FUNCTION.key: host.timed}, 2 * SECOND)
    assert told.calls.total == 30
