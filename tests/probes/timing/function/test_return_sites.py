"""Return sites that other calls pass too often are given up; those that trap while links come and go are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from specmine.model.function import Reason
from specmine.model.observation import Kind
from specmine.probes.safety import gate
from specmine.probes.symbols.module import Module
from specmine.probes.timing.function.return_sites import PASSED_BY_LEAST, PASSED_BY_TIMES, UNCALLED_TIMES, ReturnSites
from specmine.probes.timing.function.slot import Hits, Slot
from tests.support.binary_samples import compiled
from tests.support.source_driver import driven, running

# often() and, as one of so many, work() are called from one place
SHARED_PLACE = r"""
#include <stdlib.h>
#include <unistd.h>
static volatile int sink;
__attribute__((noinline)) void work(void) { for (int i = 0; i < 100; i++) sink += i; }
__attribute__((noinline)) void often(void) { sink++; }
int main(int argc, char **argv)
{
	void (*volatile each[2])(void) = { often, work };
	int one_of = atoi(argv[1]);
	for (long n = 1; n; n++) {
		each[n % one_of == 0]();
		if (n % 100 == 0)
			usleep(100);
	}
	return argc;
}
"""


def test_callers_in_closed_files_are_forgotten() -> None:
    """A library function that each of a hundred deployed builds calls has as many callers as builds that run."""
    r = ReturnSites()
    for number in range(100):
        module = Module(file=(1, number), path=f"/app{number}", fd=-1)
        for offset in (16, 32):
            r.ask((module, offset))
            r.learn((module, offset), offset, stepped=True, direct=True)
        assert r.verdict(1, 1, 1) is None
        r.forget({module})
    assert not r.probed and r.answered
    assert not any((r.sites, r.asked, r.direct, r.stepped, r.take_learned()))


def test_what_traps_once_between_two_links_is_no_verdict() -> None:
    """Hits before the entry's link is made are as many as fit into that time, and end with it."""
    r = ReturnSites()
    for start in range(0, 100_000, 10_000):
        r.check(start + 5000, start // 2)
        r.check(start + 10_000, start // 2 + 5000)
        assert r.passed_by <= 1


def test_traps_without_calls_are_a_verdict_after_three_checks() -> None:
    """Also when a single check sees too few of them to judge."""
    r, hits = ReturnSites(), 0
    while r.passed_by < PASSED_BY_TIMES:
        hits += 100
        r.check(hits, hits // 100)
    assert PASSED_BY_TIMES * PASSED_BY_LEAST < hits < 1.5 * PASSED_BY_TIMES * PASSED_BY_LEAST


def test_traps_while_nothing_is_counted_are_a_verdict_later() -> None:
    """The return sites may have been probed before the entry; a single time with calls shows that."""
    r, hits = ReturnSites(), 0

    def busy() -> bool:
        reason = r.verdict(10, 0, 0)
        return reason is not None and reason.code == "busy-return-site"

    for _ in range(PASSED_BY_TIMES * UNCALLED_TIMES - 1):
        hits += 2 * PASSED_BY_LEAST
        r.check(hits, 0)
        assert not busy()
    r.check(hits + 2000, 1000)
    for number in range(1, PASSED_BY_TIMES * UNCALLED_TIMES + 1):
        r.check(hits + 2000 + number * 2 * PASSED_BY_LEAST, 1000)
        assert busy() == (number == PASSED_BY_TIMES * UNCALLED_TIMES)


def test_they_are_judged_anew_once_a_function_was_given_up() -> None:
    """What was too busy then may be used when it is tried again, and it may be found too busy again."""
    r, hits = ReturnSites(), 0
    for _ in range(2):
        assert r.verdict(10, 0, 0) is None
        while not r.verdict(10, 0, 0):
            hits += 2 * PASSED_BY_LEAST
            r.check(hits, hits // 200)
        r.judge_anew()


def test_two_traps_a_call_are_no_verdict() -> None:
    """That is what a timed call makes."""
    r = ReturnSites()
    for calls in range(0, 10**6, 1000):
        r.check(2 * calls, calls)
    assert not r.passed_by


@pytest.mark.kernel
@pytest.mark.parametrize(("one_of", "limits"), [(200, {}), (200, {"hits_per_second": 2000.0, "burst_hits": 1000})])
def test_busy_return_sites_are_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one_of: int, limits: dict[str, float]
) -> None:
    """A function called from a place that others are called from two hundred times as often is not timed."""
    reason = Reason(code="unwinder", text="the test wants it")
    monkeypatch.setattr(gate, "forbids_replacing", lambda *_: reason)
    with running(compiled(tmp_path, "shared", SHARED_PLACE, "-O1"), one_of) as child, driven(child.pid, "work") as d:
        d.watch("work", Kind.TIME, window_calls=10**6, **limits)
        d.poll(lambda: d.refusals)
        assert [each.reason.code for each in d.refusals] == ["busy-return-site"]


@pytest.mark.kernel
def test_a_place_that_few_others_are_called_from_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One trap in vain for each call is a price that is paid."""
    reason = Reason(code="unwinder", text="the test wants it")
    monkeypatch.setattr(gate, "forbids_replacing", lambda *_: reason)
    with running(compiled(tmp_path, "shared", SHARED_PLACE, "-O1"), 2) as child, driven(child.pid, "work") as d:
        d.watch("work", Kind.TIME, window_calls=1000)
        d.poll(lambda: len(d.observations) >= 4)
        assert not d.refusals


# one call in four of work() returns to a pop, the others to a jump
STEPPED_PLACE = r"""
#include <unistd.h>
static volatile int sink;
__attribute__((noinline)) void work(void) { for (int i = 0; i < 100; i++) sink += i; }
void jumped(void), popped(void);
__asm__(".type jumped, @function\n.type popped, @function\n"
	"jumped:\n\tpush %rbx\n\tcall work\n\tjmp 1f\n1:\tpop %rbx\n\tret\n.size jumped, . - jumped\n"
	"popped:\n\tpush %rbx\n\tcall work\n\tpop %rbx\n\tret\n.size popped, . - popped\n");
int main(int argc, char **argv)
{
	(void)argv;
	for (long n = 1; n; n++) {
		if (n % 4) {
			jumped();
			__asm__ volatile("jmp 1f\n1:");
		} else {
			popped();
			__asm__ volatile("jmp 1f\n1:");
		}
		if (n % 100 == 0)
			usleep(100);
	}
	return argc;
}
"""


def _between_calls(slot: Slot) -> Hits:
    """Return the totals of a moment in which nothing was counted, also if we lost the CPU while we read."""
    while (hits := slot.hits) != slot.hits:
        pass
    return hits


@pytest.mark.kernel
def test_single_steps_are_counted_by_the_site_that_makes_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls that return elsewhere are charged no step, and none is subtracted from the calls around them."""
    reason = Reason(code="unwinder", text="the test wants it")
    monkeypatch.setattr(gate, "forbids_replacing", lambda *_: reason)
    binary, names = compiled(tmp_path, "stepped", STEPPED_PLACE, "-O1"), ("work", "jumped", "popped")
    with running(binary) as child, driven(child.pid, *names, isolate=False) as d:
        keys = [d.watch(name, Kind.TIME, window_calls=1000) for name in names]
        d.poll(lambda: all(sum(o.function == key for o in d.observations) >= 3 for key in keys))
        work, jumped, popped = (d.source.parts.registry.by_function[key].slot for key in keys)
        before = _between_calls(work)  # until both sites are learned
        d.poll(lambda: work.hits.timed >= before.timed + 4000)
        new = _between_calls(work).since(before)
        assert new.stepped / (new.hits - new.calls) == pytest.approx(0.25, abs=0.01)
        subtracted = [slot.count("nested_ns") / slot.count("nested") for slot in (jumped, popped)]
        step_ns = d.source._prices.stepped_mean_ns
        assert subtracted[1] - subtracted[0] == pytest.approx(step_ns, rel=0.1)
