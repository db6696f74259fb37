"""The cause of a violation, by its evidence: what is measured decides, and what is the same is ruled out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from specmine.daemon.controller.violations.cause import cause_of
from specmine.daemon.controller.violations.facts import Callee, Facts
from specmine.daemon.controller.violations.usual import Usual
from specmine.model.histogram import Histogram
from specmine.model.violation import Cause, CauseKind, Direction, Growth


def usual(running_us: float, waiting_us: float = 0.0, blocked_us: float = 0.0, rate: float = 100.0) -> Usual:
    """Return sums over 1,000 calls that run, wait and are blocked for so long each."""
    mean_ns = (running_us + waiting_us + blocked_us) * 1e3
    return Usual(
        calls=1000, total_ns=1000 * mean_ns, split_calls=1000, split_ns=1000 * mean_ns, waiting_ns=waiting_us * 1e6,
        blocked_ns=blocked_us * 1e6, counted=round(10 * rate), watched_ns=10 * 10**9, rates=10,
        histogram=Histogram.from_durations([int(mean_ns)] * 1000),
    )  # fmt: skip


def found(now: Usual, **more: Any) -> Cause:
    """Return the cause of a function that usually runs for 100 us a call, 100 times a second."""
    return cause_of(Facts(direction=Direction.SLOWER, usual=usual(100.0), now=now, **more))


def changed(cause: Cause) -> dict[CauseKind, bool]:
    """Return which kinds of evidence changed."""
    return {one.kind: one.changed for one in cause.evidence}


@pytest.mark.parametrize(
    ("now", "kind", "proven"),
    [
        (usual(100.0, waiting_us=100.0), CauseKind.HOST, True),
        (usual(125.0, waiting_us=75.0), CauseKind.HOST, False),
        (usual(100.0, blocked_us=900.0), CauseKind.WAIT, True),
        (usual(120.0, blocked_us=80.0), CauseKind.WAIT, False),
        (usual(200.0), CauseKind.LOAD, False),
        (usual(150.0, waiting_us=25.0, blocked_us=25.0), CauseKind.UNKNOWN, False),
        (usual(150.0, waiting_us=25.0, blocked_us=25.0, rate=300.0), CauseKind.LOAD, False),
    ],
)
def test_the_part_of_its_time_that_grew_decides(now: Usual, kind: CauseKind, proven: bool) -> None:
    """Waiting for a CPU is the host, blocked is waiting, on CPU with the same code is load; a mixture is not known."""
    cause = found(now)
    assert (cause.kind, cause.proven) == (kind, proven)
    assert changed(cause)[CauseKind.CODE] is False
    assert cause.text.endswith(".")


def test_fewer_calls_are_no_reason_for_longer_waiting() -> None:
    """Who waits longer comes less often: that is no load. More calls than usual may be why each of them waits."""
    waiting = {"running_us": 100.0, "waiting_us": 66.0, "blocked_us": 34.0}
    rarer, oftener = found(usual(**waiting, rate=40.0)), found(usual(**waiting, rate=300.0))
    assert (rarer.kind, oftener.kind) == (CauseKind.UNKNOWN, CauseKind.LOAD)
    assert rarer.text.startswith("66 % of the difference is waiting for a CPU, and 34 %")
    assert changed(rarer)[CauseKind.LOAD]
    assert found(usual(200.0, rate=40.0)).kind is CauseKind.LOAD


def sums(running_us: float, preempted: int, waits_us: float, blocked_us: float = 0.0) -> Usual:
    """Return sums over 1,000 calls of which some wait for a CPU; the others run, and are blocked for so long."""
    ran = [running_us * (0.9 + 0.0002 * place) * 1e3 for place in range(1000)]
    took = [one + blocked_us * 1e3 + (waits_us * 1e3 if place < preempted else 0.0) for place, one in enumerate(ran)]
    return Usual(
        calls=1000, total_ns=sum(took), split_calls=1000, split_ns=sum(took), waiting_ns=preempted * waits_us * 1e3,
        blocked_ns=1000 * blocked_us * 1e3, on_cpu=Histogram.from_durations(ran),
        histogram=Histogram.from_durations(took),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("now", "quantile", "kind"),
    [
        (sums(200.0, 20, 20_000.0), "p50", CauseKind.LOAD),  # twice the work; by the mean, waiting has 80 %
        (sums(200.0, 20, 20_000.0), "", CauseKind.HOST),  # of the slowest calls
        (sums(100.0, 20, 20_000.0), "p99", CauseKind.HOST),
        (sums(100.0, 5, 20_000.0, blocked_us=90.0), "p50", CauseKind.UNKNOWN),
        (sums(100.0, 5, 2_000.0, blocked_us=90.0), "p50", CauseKind.WAIT),
        (sums(5_000.0, 900, 5_000.0), "p50", CauseKind.LOAD),  # who works that much longer waits for CPUs, too
        (sums(150.0, 900, 50.0), "p50", CauseKind.UNKNOWN),
    ],
)
def test_the_calls_that_the_change_is_about_decide(now: Usual, quantile: str, kind: CauseKind) -> None:
    """Few calls that wait for long have most of the mean, but the median is slower for another reason."""
    before = sums(100.0, 5, 1_000.0)
    cause = cause_of(Facts(direction=Direction.SLOWER, usual=before, now=now, quantile=quantile))
    assert cause.kind is kind


def test_calls_that_come_less_often_because_they_are_slow_are_no_load() -> None:
    """Half as many calls, each twice as long, all of it work: other data. Over other paths, it is the load."""
    rarer = found(usual(200.0, rate=40.0))
    assert rarer.kind is CauseKind.LOAD and rarer.text.startswith("Its calls work longer, while code and host are")
    other = found(usual(200.0, rate=40.0), mix=0.5)
    assert other.text.startswith("40 calls/s, usually 100; call paths have another mix")
    assert found(usual(150.0, waiting_us=25.0, blocked_us=25.0, rate=40.0)).kind is CauseKind.UNKNOWN


def test_the_slowest_of_calls_that_all_work_longer_are_not_held_up_by_the_host() -> None:
    """The slowest one in a hundred waits for a CPU, too; but typical calls work five times as long."""
    before, now = sums(100.0, 5, 1_000.0), sums(500.0, 30, 20_000.0)
    cause = cause_of(Facts(direction=Direction.SLOWER, usual=before, now=now, quantile="p99"))
    assert cause.kind is CauseKind.LOAD


def test_unchanged_code_is_never_blamed() -> None:
    """Not even if a new run of the same build began shortly before, or another build has the same machine code."""
    assert found(usual(200.0), started="a new run of it started 3 s before").kind is CauseKind.LOAD
    same = found(usual(200.0), new_build="b2e", code="same")
    assert same.kind is CauseKind.LOAD
    assert "the same in build b2e" in [one.text for one in same.evidence if one.kind is CauseKind.CODE]


def test_changed_code_is_proven_if_nothing_else_changed() -> None:
    """More calls a second at the same time leave it likely."""
    cause = found(usual(200.0), new_build="b2e", code="changed")
    assert (cause.kind, cause.proven) == (CauseKind.CODE, True)
    assert cause.evidence[0].kind is CauseKind.CODE and cause.evidence[0].changed
    busier = found(usual(200.0, rate=300.0), new_build="b2e", code="changed")
    assert (busier.kind, busier.proven) == (CauseKind.CODE, False)


def test_a_host_that_explains_the_excess_is_a_veto_against_code() -> None:
    """Though the build is new and its code changed, its calls wait for a CPU."""
    cause = found(usual(100.0, waiting_us=100.0), new_build="b2e", code="changed")
    assert cause.kind is CauseKind.HOST
    assert found(usual(200.0), new_build="b2e", code="changed", common=True).kind is CauseKind.HOST


def test_a_callee_that_has_the_difference_comes_before_waiting() -> None:
    """Its share of the difference is told; one with little of it is evidence only."""
    callee = Callee(key="b+0x1", name="checksum (shop)", part=0.95)
    cause = found(usual(100.0, blocked_us=900.0), callee=callee)
    assert (cause.kind, cause.proven) == (CauseKind.CALLEE, True)
    assert "checksum (shop)" in cause.text and "95 %" in cause.text
    little = found(usual(100.0, blocked_us=900.0), callee=Callee(key="b+0x1", name="checksum", part=0.2))
    assert little.kind is CauseKind.WAIT and changed(little)[CauseKind.CALLEE] is False


def test_another_mix_of_paths_is_load() -> None:
    """The same function called from elsewhere."""
    cause = found(usual(150.0, blocked_us=50.0), mix=0.4)
    assert cause.kind is CauseKind.LOAD and "another mix" in cause.text


def test_without_a_split_little_is_known() -> None:
    """No evidence is made up: waiting is not mentioned."""
    blank = Usual(calls=10, total_ns=1e6)
    cause = cause_of(Facts(direction=Direction.SLOWER, usual=blank, now=Usual(calls=10, total_ns=9e6)))
    assert cause.kind is CauseKind.UNKNOWN
    assert CauseKind.WAIT not in changed(cause)


def test_more_work_by_as_many_calls_is_data_or_configuration() -> None:
    """The sentence says what is as usual, and nothing that was not measured."""
    counted = found(usual(200.0))
    assert counted.text == (
        "Its calls work longer, while code, host and calls a second are as usual: other data or another configuration."
    )
    blank = replace(usual(200.0), counted=0, watched_ns=0)
    assert "code and host are as usual" in found(blank).text


def test_neither_host_nor_waiting_changes_who_calls() -> None:
    """A violation about new call paths is put down to another build, else to what is asked for."""
    waits = usual(100.0, waiting_us=100.0)
    assert found(waits).kind is CauseKind.HOST
    cause = found(waits, new_paths=True)
    assert (cause.kind, cause.proven) == (CauseKind.LOAD, False)
    assert found(waits, new_paths=True, common=True).kind is CauseKind.LOAD
    assert found(waits, new_paths=True, new_build="b2e", code="changed").kind is CauseKind.CODE
    assert found(waits, new_paths=True, new_build="b2e", code="same").kind is CauseKind.LOAD


def halves(slow_us: float, waits: int) -> Usual:
    """Return sums over 1,000 calls: half run for 30 us, half for so long, and some of these wait for 5 ms too."""
    ran = [(30.0 if place < 500 else slow_us) * (0.9 + 0.0002 * place) * 1e3 for place in range(1000)]
    took = [one + (5e6 if place >= 1000 - waits else 0.0) for place, one in enumerate(ran)]
    return Usual(
        calls=1000, total_ns=sum(took), split_calls=1000, split_ns=sum(took), waiting_ns=5e6 * waits,
        on_cpu=Histogram.from_durations(ran), histogram=Histogram.from_durations(took),
    )  # fmt: skip


def test_of_some_calls_the_slowest_do_not_decide() -> None:
    """Half of the calls work six times as long; a few of them wait, as on any busy host, and have most of the mean."""
    before, now = halves(50.0, 5), halves(300.0, 40)
    cause = cause_of(Facts(direction=Direction.SLOWER, usual=before, now=now, typical=True))
    assert cause.kind is CauseKind.LOAD and "work longer" in cause.text
    waiting = cause_of(Facts(direction=Direction.SLOWER, usual=before, now=halves(50.0, 400), typical=True))
    assert waiting.kind is CauseKind.HOST


def test_a_median_between_fast_and_slow_calls_does_not_hide_the_work() -> None:
    """Half of the calls became slow: the median duration is among these, that on CPU still among the fast ones."""
    before, now = halves(40.0, 5), halves(330.0, 5)
    slow, fast = (Histogram.from_durations([ns] * 60) for ns in (330e3, 27e3))
    shifted = replace(now, histogram=now.histogram + slow, on_cpu=now.on_cpu + fast)
    cause = cause_of(Facts(direction=Direction.SLOWER, usual=before, now=shifted, quantile="p50"))
    assert cause.kind is CauseKind.LOAD and "work longer" in cause.text


def test_waits_for_cpus_that_the_programs_keep_busy_themselves_are_load() -> None:
    """The same waits are the host's where others have the CPUs; a callee, or changed code, comes before the load."""
    before, now = saturating(1.0, 0.05), saturating(1.0, 20.0)
    facts = Facts(direction=Direction.SLOWER, usual=before, now=now, common=True)
    assert cause_of(facts).kind is CauseKind.HOST
    busy = replace(facts, busy="the watched programs keep 1.9 of 2 CPUs busy, usually 0.3")
    cause = cause_of(busy)
    assert cause.kind is CauseKind.LOAD and "wait for a CPU: the watched programs keep 1.9 of 2" in cause.text
    assert cause.evidence[0].kind is CauseKind.LOAD and cause.evidence[0].changed
    assert cause_of(replace(busy, callee=Callee(key="c", name="c", part=0.8))).kind is CauseKind.CALLEE
    assert cause_of(replace(busy, new_build="b2e", code="changed")).kind is CauseKind.CODE
    works = cause_of(replace(busy, now=saturating(1.5, 0.05), common=False))
    assert "CPUs busy" not in works.text and not any("CPUs busy" in one.text for one in works.evidence)


def saturating(work: float, waiting: float) -> Usual:
    """Return sums over 1,000 calls that take so many times 300 us of a CPU, and wait for one for as many."""
    ran = [300e3 * work * (0.9 + 0.0002 * place) for place in range(1000)]
    took = [one + 300e3 * waiting for one in ran]
    return Usual(
        calls=1000, total_ns=sum(took), split_calls=1000, split_ns=sum(took), waiting_ns=300e6 * waiting,
        on_cpu=Histogram.from_durations(ran), histogram=Histogram.from_durations(took),
    )  # fmt: skip


def test_who_works_many_times_as_long_waits_for_cpus_that_it_keeps_busy_itself() -> None:
    """Calls that work nine times as long and wait for twice that are not slowed by the host; others are."""
    before = saturating(1.0, 0.05)
    cause = cause_of(Facts(direction=Direction.SLOWER, usual=before, now=saturating(9.0, 20.0)))
    assert cause.kind is CauseKind.LOAD
    told = "Its calls work longer, and wait for the CPUs that this keeps busy, while code is as usual"
    assert cause.text.startswith(told)
    nearly = cause_of(Facts(direction=Direction.SLOWER, usual=before, now=saturating(9.0, 17.0)))
    assert nearly.kind is CauseKind.LOAD and nearly.text.startswith(told)  # a third of the difference is work
    assert cause_of(Facts(direction=Direction.SLOWER, usual=before, now=saturating(2.0, 20.0))).kind is CauseKind.HOST
    syncs = replace(saturating(4.0, 4.0), blocked_ns=300e6 * 4, split_ns=300e6 * 12, total_ns=300e6 * 12)
    took = Histogram.from_durations([300e3 * 12 * (0.9 + 0.0002 * place) for place in range(1000)])
    cause = cause_of(Facts(direction=Direction.SLOWER, usual=before, now=replace(syncs, histogram=took)))
    assert cause.kind is CauseKind.UNKNOWN and "being blocked" in cause.text  # most of it is no work
    around = Facts(direction=Direction.SLOWER, usual=before, now=saturating(9.0, 0.05), common=True)
    cause = cause_of(around)  # most functions that are known call it
    assert cause.kind is CauseKind.LOAD and "work longer" in cause.text
    assert cause_of(replace(around, callee=Callee(key="c", name="c", part=0.9))).kind is CauseKind.CALLEE
    assert cause_of(replace(around, now=saturating(2.0, 0.05))).kind is CauseKind.HOST
    new = Facts(direction=Direction.SLOWER, usual=before, now=saturating(9.0, 20.0), new_build="b2e", code="changed")
    assert cause_of(new).kind is CauseKind.CODE


def test_what_no_rule_explains_is_told_by_its_parts() -> None:
    """A third each: the reader sees where the time went."""
    cause = cause_of(Facts(direction=Direction.SLOWER, usual=usual(100.0), now=usual(200.0, 100.0, 100.0)))
    assert cause.kind is CauseKind.UNKNOWN
    assert cause.text.startswith("33 % of the difference is time on CPU, 33 % waiting for a CPU, 33 % being blocked")


SHORT = {"short_of_cpu": True, "shortage": "its CPU limit of 0.5 CPUs stopped it in 80 % of the periods, usually 0 %"}


def test_who_keeps_a_program_from_cpu_time_is_said() -> None:
    """The limit, the hypervisor or others: whom to ask for more."""
    cause = found(usual(100.0, waiting_us=100.0), **SHORT)
    assert cause.kind is CauseKind.HOST
    assert cause.text.endswith(f"is time in which its calls wait for a CPU: {SHORT['shortage']}.")
    assert str(SHORT["shortage"]) in cause.evidence[0].text
    calm = found(usual(200.0), shortage="steal 0 %, no throttling")
    (host,) = (one for one in calm.evidence if one.kind is CauseKind.HOST)
    assert host.text.endswith("; steal 0 %, no throttling") and not host.changed


def test_a_program_that_is_short_of_cpu_time_waits_for_its_other_threads_too() -> None:
    """Half waiting for a CPU, half blocked: neither explains it alone. A limit that stops the program does."""
    mixed = usual(100.0, waiting_us=50.0, blocked_us=50.0)
    assert found(mixed).kind is CauseKind.UNKNOWN
    assert found(mixed, **SHORT).kind is CauseKind.HOST
    assert found(usual(100.0, waiting_us=20.0, blocked_us=80.0), **SHORT).kind is CauseKind.WAIT
    assert found(usual(200.0, waiting_us=50.0, blocked_us=50.0), **SHORT).kind is CauseKind.UNKNOWN


@pytest.mark.parametrize(
    ("what", "waiting_us", "kind"),
    [
        (None, 25.0, CauseKind.HOST), ("futex", 25.0, CauseKind.HOST), ("poll", 25.0, CauseKind.HOST),
        ("file", 25.0, CauseKind.WAIT), ("sleep", 25.0, CauseKind.WAIT), ("futex", 5.0, CauseKind.WAIT),
    ],
)  # fmt: skip
def test_a_lock_waits_for_a_thread_that_the_limit_stops(what: str | None, waiting_us: float, kind: CauseKind) -> None:
    """All threads stop together; a disk does not stop with them."""
    growth = None if what is None else Growth(what=what, more_ns=7e4, of_ns=1e5)
    locks = usual(100.0, waiting_us=waiting_us, blocked_us=100.0 - waiting_us)
    cause = found(locks, throttled=True, waits=growth, **SHORT)
    assert cause.kind is kind
    assert found(locks, waits=growth, shortage="no throttling").kind is CauseKind.WAIT
    (host,) = (one for one in cause.evidence if one.kind is CauseKind.HOST)
    assert host.changed and f"{waiting_us:.0f} % of the difference" in host.text.replace("5.0", "5")
    if kind is CauseKind.HOST:
        assert cause.text == (
            "25 % of the difference is time in which its calls wait for a CPU, and 75 % in which they are blocked: "
            f"{SHORT['shortage']}."
        )


def test_programs_under_a_limit_do_not_fill_the_cpus() -> None:
    """Who is stopped by a limit waits for that, however much the programs use."""
    busy = "the watched programs keep 1.9 of 2 CPUs busy, usually 0.5"
    waits = usual(100.0, waiting_us=100.0)
    assert found(waits, busy=busy).kind is CauseKind.LOAD
    assert found(waits, busy=busy, **SHORT).kind is CauseKind.LOAD
    assert found(waits, busy=busy, throttled=True, **SHORT).kind is CauseKind.HOST


def test_who_is_blocked_more_waits_for_a_cpu_afterwards() -> None:
    """That is no host's doing while the program gets CPU time as usual, and no reason to know nothing."""
    sleeps = usual(110.0, waiting_us=350.0, blocked_us=640.0)
    cause = found(sleeps, supplied=True)
    assert (cause.kind, cause.proven) == (CauseKind.WAIT, False)
    assert cause.text == (
        "64 % of the difference is time in which its calls are blocked, "
        "and 35 % in which they wait for a CPU afterwards."
    )
    assert changed(cause)[CauseKind.WAIT] is True
    assert found(sleeps).kind is CauseKind.UNKNOWN
    works = usual(200.0, waiting_us=250.0, blocked_us=640.0)
    assert found(works, supplied=True).kind is CauseKind.WAIT  # a tenth of it is work
    works = usual(350.0, waiting_us=150.0, blocked_us=600.0)
    assert found(works, supplied=True).kind is CauseKind.UNKNOWN  # a quarter of it
    assert found(usual(110.0, waiting_us=600.0, blocked_us=400.0), supplied=True).kind is CauseKind.UNKNOWN


def test_calls_that_wait_for_a_cpu_do_not_blame_a_host_that_gives_as_much_as_usual() -> None:
    """A program whose threads wait for each other's work is not kept from CPU time by others."""
    waits = usual(100.0, waiting_us=100.0)
    cause = found(waits, supplied=True, shortage="steal 2 %, no throttling")
    assert cause.kind is CauseKind.UNKNOWN
    assert cause.text == "100 % of the difference is waiting for a CPU, though its program gets CPU time as usual."
    assert not changed(cause)[CauseKind.HOST]
    assert found(usual(100.0, waiting_us=100.0, rate=300.0), supplied=True).kind is CauseKind.LOAD
    assert found(waits, supplied=True, common=True).kind is CauseKind.HOST


def test_the_callee_that_has_most_of_a_wait_is_told_until_its_place_is_known() -> None:
    """Waits are followed only once a violation is open."""
    inside = Growth(what="callee", function="read_block", more_ns=9e5, of_ns=9e5)
    place = Growth(what="sleep", call="clock_nanosleep", function="read_block", more_ns=9e5, of_ns=9e5)
    blocked = usual(100.0, blocked_us=900.0)
    assert found(blocked, inside=inside).growth == inside
    assert found(blocked, inside=inside, waits=place).growth == place
    assert found(blocked, inside=inside).kind is CauseKind.WAIT


def test_who_waits_for_another_function_waits() -> None:
    """Its calls do not call that one: they wait until calls of it, in other threads, end the wait."""
    commit = Callee(key="c", name="commit", part=0.95, is_waited_for=True)
    place = Growth(what="futex", call="futex", function="take_lock", more_ns=9e4, of_ns=1e5)
    cause = found(usual(100.0, blocked_us=100.0), callee=commit, waits=place)
    assert (cause.kind, cause.proven, cause.growth) == (CauseKind.WAIT, True, place)
    assert cause.text == "It waits for what commit does in other threads: 95 % of the difference."
