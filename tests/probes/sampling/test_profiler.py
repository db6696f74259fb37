"""Waits are followed as often as it stays cheap, what that costs is told, and times are those of all the waits."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from specmine.model.function import Function
from specmine.probes.kernel.structs import SAMPLE, SAMPLE_VALUE, SETTINGS, SWITCHES, SWITCHES_A_TIMED, WAIT
from specmine.probes.sampling import profiler
from specmine.probes.sampling.blocked_threads import BlockedThreads
from specmine.probes.sampling.followed_waits import SELDOM
from specmine.probes.sampling.profiler import SUM_NS, Profiler
from specmine.probes.sampling.sums import StackTime

SAMPLE_NS, HERTZ = 4000.0, 100


class Emptied:
    """A hash map with what was put there for the next look."""

    def __init__(self, key: Any, value: Any) -> None:
        self.key, self.value = np.dtype(key), np.dtype(value)
        self.rows: list[tuple[Any, Any]] = []

    def entries(self) -> tuple[Any, Any]:
        """Return keys and values."""
        keys = np.array([k for k, _ in self.rows], self.key)
        return keys, np.array([v for _, v in self.rows], self.value)

    def drain(self) -> tuple[Any, Any]:
        """Return keys and values, and forget them."""
        found, self.rows = self.entries(), []
        return found


class Kernel:
    """Stands for the kernel's maps and the holder: a host of so many switches, each wait 1 ms long."""

    def __init__(
        self, switches: float, pass_ns: float, own: float = 1.0, note: Callable[[str], None] = lambda text: None
    ) -> None:
        self.on: dict[int, str] = {}
        self.next = 1
        self.programs = {"on_switch": 1}
        self.asked: list[int] = []
        self.samples, self.waits = Emptied(SAMPLE, SAMPLE_VALUE), Emptied("<u4", WAIT)
        self.switches = np.zeros(1, SWITCHES)
        self.settings = np.zeros(1, SETTINGS)
        self.timed = switches / SWITCHES_A_TIMED
        self.pass_ns, self.own = pass_ns, own
        function = Function(build_id="0", offset=1, name="wait", module="m")
        naming = SimpleNamespace(stack=lambda path, exact: [function], ask=lambda: self.asked.append(len(self.on)))
        marks = np.zeros(16, np.uint64)
        rest: Any = (self.samples, self.waits, marks, self.settings, self.switches, None, note)
        self.finder = Profiler(self, naming, *rest)  # type: ignore[arg-type]

    def clock(self, hertz: int) -> int:
        """Put the clock on."""
        return self._link("clock")

    def tracepoint(self, name: str, program: str) -> int:
        """Put the tracepoint on."""
        return self._link(name)

    def close(self, number: int) -> None:
        """Take a link off, if it is on."""
        self.on.pop(number, None)

    def _link(self, what: str) -> int:
        self.next += 1
        self.on[self.next] = what
        return self.next

    def half_a_second(self) -> None:
        """Let as much happen as is seen in one sum."""
        self.samples.rows.append(((1, 0, 0), (HERTZ // 2, SUM_NS // 2)))
        if "sched_switch" in self.on.values():
            timed = self.timed * SUM_NS * 1e-9
            self.switches["timed"] += round(timed)
            self.switches["ns"] += round(timed * self.pass_ns)
            self.switches["own"] += round(timed * self.own)
            self.samples.rows.append(((1, 0, 1), (200, 200 * 1_000_000)))


def run(kernel: Kernel, sums: int) -> tuple[list[bool], float, float]:
    """Sample for so many sums; return in which of them waits were followed, time found on the CPU and off it."""
    kernel.finder.set_rate(HERTZ, 0, sample_ns=SAMPLE_NS)
    followed, on, off = [], 0.0, 0.0
    for number in range(1, sums + 1):
        followed.append("sched_switch" in kernel.on.values())
        kernel.half_a_second()
        for each in kernel.finder.poll(number * SUM_NS):
            on += each.on_cpu_ns
            off += each.off_cpu_ns
    return followed, on, off


def test_few_switches_are_followed_all_the_time() -> None:
    """200 switches a second cost far less than the samples."""
    followed, _, off = run(Kernel(switches=200, pass_ns=100), 20)
    assert all(followed)
    assert off == 20 * 200 * 1_000_000


def test_many_switches_are_followed_as_often_as_samples_cost() -> None:
    """10,000 switches a second of 160 ns cost four times that: one sum in four is followed, times are the same."""
    kernel = Kernel(switches=10_000, pass_ns=160)
    followed, on, off = run(kernel, 41)
    assert 9 <= sum(followed) <= 12
    assert off == pytest.approx(41 * 200 * 1_000_000, rel=0.1)
    assert on == 41 * SUM_NS // 2
    own, everybody = kernel.finder.passes_ns()
    assert own == everybody == pytest.approx(sum(followed) * 5000 * 160, rel=0.02)
    assert own < 1.4 * kernel.finder.sampled * SAMPLE_NS


def test_others_switches_are_told_apart_and_bounded() -> None:
    """A host that switches a million times a second for others is followed seldom; its cost is not the program's."""
    kernel = Kernel(switches=1_000_000, pass_ns=100, own=0.01)
    followed, _, _ = run(kernel, 100)
    assert sum(followed) <= 2 + 100 // SELDOM
    own, everybody = kernel.finder.passes_ns()
    assert own == pytest.approx(0.01 * everybody, rel=0.01)


def test_bursts_go_on_where_the_last_one_ended() -> None:
    """One sum in so many is followed over all bursts, not the first of each: they are shorter than that."""
    kernel = Kernel(switches=1_000_000, pass_ns=100)
    followed, now_ns = 0, 0
    for _ in range(20):
        kernel.finder.set_rate(HERTZ, now_ns, sample_ns=SAMPLE_NS)
        for _ in range(5):
            followed += "sched_switch" in kernel.on.values()
            kernel.half_a_second()
            now_ns += SUM_NS
            kernel.finder.poll(now_ns)
        kernel.finder.set_rate(0, now_ns, sample_ns=SAMPLE_NS)
        now_ns += 10 * SUM_NS
    assert 100 // SELDOM <= followed <= 2 + 100 // SELDOM


def test_waits_that_were_missed_by_chance_are_not_taken_for_none() -> None:
    """Of 5,000 waits a second one in hundreds is followed. That a sum has none does not make the next follow all."""
    kernel = Kernel(switches=10_000, pass_ns=1)
    every = []
    kernel.finder.set_rate(HERTZ, 0, sample_ns=SAMPLE_NS)
    for number in range(1, 9):
        kernel.half_a_second()
        if number > 4:
            kernel.samples.rows.pop()  # the clock's samples remain
        kernel.finder.poll(number * SUM_NS)
        every.append(int(kernel.settings["wait_every"][0]))
    assert min(every[4:]) >= 200


def test_nothing_stays_on() -> None:
    """At a rate of 0, and after the holder took everything off, there is what was asked for."""
    kernel = Kernel(switches=200, pass_ns=100)
    run(kernel, 3)
    assert sorted(kernel.on.values()) == ["clock", "sched_switch"]
    kernel.on.clear()
    for _ in range(2):  # the second time nothing was taken off: what was asked for came after the kill switch had gone
        kernel.finder.resume(4 * SUM_NS)
        assert sorted(kernel.on.values()) == ["clock", "sched_switch"]
    kernel.finder.set_rate(0, 5 * SUM_NS, sample_ns=SAMPLE_NS)
    assert not kernel.on


def test_what_a_function_has_in_common_with_a_callee_is_the_part_that_nobody_else_calls() -> None:
    """A callee of two tells nothing of either; one that only this function calls tells all of it."""
    kernel = Kernel(0.0, 0.0)
    work, render, load = (Function(build_id="0", offset=at, name=f"f{at}", module="m") for at in (2, 3, 4))
    stacks = {1: [work, render], 2: [work, load]}
    kernel.finder._symbolizer = SimpleNamespace(stack=lambda path, exact: stacks[path])  # type: ignore[assignment]
    kernel.finder.set_rate(HERTZ, 0, sample_ns=SAMPLE_NS, waits=0)
    kernel.samples.rows += [((1, 0, 0), (30, 300_000)), ((2, 0, 0), (10, 100_000))]
    found = {each.function: each for each in kernel.finder.poll(SUM_NS)}
    assert found[render.key].inclusive_ns == 300_000
    assert found[render.key].callee_ns == pytest.approx(300_000 * 0.75)
    assert found[load.key].callee_ns == pytest.approx(100_000 * 0.25)
    assert found[work.key].callee_ns == 0
    stacks[2] = [work, render]
    kernel.samples.rows += [((1, 0, 0), (30, 300_000)), ((2, 0, 0), (10, 100_000))]
    found = {each.function: each for each in kernel.finder.poll(2 * SUM_NS)}
    assert found[render.key].callee_ns == found[render.key].inclusive_ns == 400_000


class Seeing(BlockedThreads):
    """Looks that see no blocked thread."""

    def __init__(self, program: int, settings: Any) -> None:
        """Begin no thread."""
        self.polls = 0

    def poll(self, now_ns: int) -> None:
        """Look once."""
        self.polls += 1

    def stacks(self, length_ns: int) -> list[StackTime]:
        """Return nothing."""
        return []

    def forget(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class Refusing(Seeing):
    """Looks that the kernel refuses from the second one on."""

    def poll(self, now_ns: int) -> None:
        """Look once."""
        super().poll(now_ns)
        if self.polls > 1:
            raise OSError(errno.EPERM, os.strerror(errno.EPERM))


def test_waits_are_followed_where_looks_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """While looks work no tracepoint is on; once the kernel refuses one it is, and a user reads why, once."""
    monkeypatch.setattr(profiler, "BlockedThreads", Refusing)
    notes: list[str] = []
    kernel = Kernel(switches=200, pass_ns=100, note=notes.append)
    kernel.programs["on_look"] = 2
    followed, _, off = run(kernel, 6)
    assert followed == [False, False, True, True, True, True]
    assert off > 0
    assert len(notes) == 1
    assert "waits are followed" in notes[0]
    kernel.finder.set_rate(0, 7 * SUM_NS, sample_ns=SAMPLE_NS)
    kernel.finder.set_rate(HERTZ, 8 * SUM_NS, sample_ns=SAMPLE_NS)
    assert "sched_switch" not in kernel.on.values(), "the next burst tries to look again"
    for _ in range(3):
        kernel.finder.poll(9 * SUM_NS)
    assert len(notes) == 1


def test_later_sums_are_longer_and_a_burst_that_ends_is_told_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once functions are known a burst of a second is one sum; its time is told when it ends."""
    monkeypatch.setattr(profiler, "BlockedThreads", Seeing)
    kernel = Kernel(switches=200, pass_ns=100)
    kernel.programs["on_look"] = 2
    _, on, _ = run(kernel, profiler.SHORT_SUMS)
    assert on == profiler.SHORT_SUMS * SUM_NS // 2
    now_ns = profiler.SHORT_SUMS * SUM_NS
    for _ in range(2):
        kernel.half_a_second()
        now_ns += SUM_NS
        assert kernel.finder.poll(now_ns) == ()
    kernel.finder.set_rate(0, now_ns, sample_ns=SAMPLE_NS)
    assert len(kernel.asked) == 1, "names are asked for at once"
    assert sum(each.on_cpu_ns for each in kernel.finder.poll(now_ns)) == SUM_NS
