"""When a program is short of CPU time, and in which words."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from specmine.daemon.controller.violations.cpu_shortage import (
    LEAST_LOOKS,
    NEWEST,
    USUAL_LOOKS,
    Shortage,
    began,
    in_words,
    with_looks,
)
from specmine.model.host.cpu_shortage import CpuShortage
from tests.support.simulated import SECOND

CALM = CpuShortage(program="shop", waiting=0.1, steal=0.01)


def after(*looks: CpuShortage, known: Mapping[str, Shortage] | None = None) -> Mapping[str, Shortage]:
    """Return what is known after looks, one each five seconds."""
    known = known or {}
    for number, look in enumerate(looks):
        known = with_looks(known, [look], (number + 1) * 5 * SECOND)
    return known


def learned() -> Mapping[str, Shortage]:
    """Return what is known of a program that waits as usual."""
    return after(*[CALM] * 20)


def test_without_a_look_nothing_changes() -> None:
    """The value stays the same one."""
    known = learned()
    assert with_looks(known, [], 0) is known


@pytest.mark.parametrize(
    ("look", "words"),
    [
        (
            CpuShortage(program="shop", waiting=0.9, throttled=0.8, limit_cpus=0.5, steal=0.01),
            "its CPU limit of 0.5 CPUs stopped it in 80 % of the periods, usually 0 %",
        ),
        (
            CpuShortage(program="shop", waiting=0.6, steal=0.3),
            "the hypervisor took 30 % of the CPUs, usually 1 %",
        ),
        (CpuShortage(program="shop", waiting=0.6), "other processes keep 1.9 of 2 CPUs busy, usually 0.2"),
    ],
)
def test_who_keeps_it_from_cpu_time_is_said(look: CpuShortage, words: str) -> None:
    """Its limit, the hypervisor, or other processes: each in numbers beside the usual ones."""
    known = after(*[look] * NEWEST, known=learned())
    assert known["shop"].is_more
    assert 0 < known["shop"].since_ns <= NEWEST * 5 * SECOND
    assert in_words(known["shop"], (1.9, 0.2), 2) == words


def test_waiting_that_nobody_explains_is_said_as_such() -> None:
    """As where the program's own threads fill the CPUs."""
    known = after(*[CpuShortage(program="shop", waiting=0.6)] * NEWEST, known=learned())
    words = "its program waits for a CPU 60 % of the time in which it could run, usually 10 %"
    assert in_words(known["shop"], (0.2, 0.2), 2) == words
    assert in_words(known["shop"], (1.9, 0.2), 0) == words


def test_what_is_as_usual_is_said_too() -> None:
    """It speaks against the host as a cause."""
    assert in_words(learned()["shop"], (0.2, 0.2), 2) == "steal 1 %, no throttling"
    limited = after(*[CpuShortage(program="shop", throttled=0.3, limit_cpus=1.0)] * 20)
    assert in_words(limited["shop"], (0.2, 0.2), 2) == "steal 0 %, stopped by its CPU limit as usual (30 %)"


@pytest.mark.parametrize(
    ("usual", "now", "more"), [(0.1, 0.2, False), (0.1, 0.3, True), (0.5, 0.7, False), (0.5, 0.8, True)]
)
def test_waiting_counts_for_each_second_on_cpu(usual: float, now: float, more: bool) -> None:
    """A share near all of the time cannot double: what threads wait for each second that they run can."""
    known = after(*[CpuShortage(program="shop", waiting=usual)] * 20)
    assert after(*[CpuShortage(program="shop", waiting=now)] * NEWEST, known=known)["shop"].is_more is more


def test_little_is_known_at_first() -> None:
    """What is usual must be known before anything is more."""
    look = CpuShortage(program="shop", waiting=0.9)
    assert not after(*[CALM] * (LEAST_LOOKS - 1), *[look] * NEWEST)["shop"].is_more
    assert after(*[CALM] * LEAST_LOOKS, *[look] * NEWEST)["shop"].is_more


def test_what_lasts_becomes_usual_slowly() -> None:
    """Ten minutes of a shortage are still one, a day is not; a program that is idle changes nothing."""
    look = CpuShortage(program="shop", waiting=0.5, throttled=0.5, limit_cpus=1.0)
    known = after(*[look] * 120, known=after(*[CALM] * USUAL_LOOKS))
    assert known["shop"].throttled_more
    known = after(*[CpuShortage(program="shop")] * 10, known=known)
    assert known["shop"].usual.waiting == pytest.approx(0.1, abs=0.05)
    assert known["shop"].now.waiting is None
    assert not after(*[look] * 10_000, known=known)["shop"].is_more


def test_its_begin_is_noticed_once() -> None:
    """Then functions are timed at once."""
    before = learned()
    one = after(*[CpuShortage(program="shop", waiting=0.9)] * NEWEST, known=before)
    assert began(one, before)
    assert not began(after(CpuShortage(program="shop", waiting=0.9), known=one), one)
    assert not began(before, before)
    assert began(one, {})


def test_it_must_be_known_that_all_is_as_usual() -> None:
    """Not in the first half minute, and not with twice the waiting, a limit or a hypervisor that takes more."""
    assert learned()["shop"].is_as_usual
    assert not after(*[CALM] * 5)["shop"].is_as_usual
    for look in (
        CpuShortage(program="shop", waiting=0.25, steal=0.01),
        CpuShortage(program="shop", waiting=0.1, throttled=0.3, limit_cpus=1.0),
        CpuShortage(program="shop", waiting=0.1, steal=0.2),
        CpuShortage(program="shop"),
    ):
        assert not after(*[look] * NEWEST, known=learned())["shop"].is_as_usual


def test_a_program_that_ended_is_short_of_nothing() -> None:
    """When it comes back, what was usual still is."""
    short = after(*[CpuShortage(program="shop", waiting=0.9)] * NEWEST, known=learned())
    others = after(CpuShortage(program="redis", waiting=0.2), known=short)
    assert short["shop"].since_ns and not others["shop"].since_ns
    assert others["shop"].usual == short["shop"].usual
    assert set(others) == {"shop", "redis"}
