"""A call that has not returned after ``max_open`` is given up: censored once, and never a duration."""

from __future__ import annotations

import signal
from pathlib import Path

import numpy as np
import pytest

from specmine.model.buckets import BUCKET_EDGES
from specmine.model.function import Reason
from specmine.model.observation import Kind
from specmine.probes.kernel.structs import COUNTERS, PERIODS, SLOT
from specmine.probes.safety import gate
from specmine.probes.timing.function.open_calls import OpenCalls
from specmine.probes.timing.function.slot import Slot
from tests.support.binary_samples import compiled
from tests.support.source_driver import driven, running

SECOND = 1_000_000_000

# step() is quick, but every thirtieth call sleeps for 0.3 s; after SIGUSR1 one more, in another thread, has no end.
# Before that one thread at a time is in a call, so that no more than one call is open when a window ends.
SLEEPER = r"""
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
static volatile int sink, stuck;
static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
__attribute__((noinline)) void step(int sleep_us)
{
	for (int i = 0; i < 5000; i++) sink += i;
	if (sleep_us) usleep(sleep_us);
}
static void on_signal(int number) { stuck = number; }
static void *endless(void *nothing)
{
	for (;;) {
		pthread_mutex_lock(&one);
		int forever = stuck;
		if (forever) pthread_mutex_unlock(&one);
		step(forever ? 1000 * 1000 * 1000 : 0);
		pthread_mutex_unlock(&one);
		usleep(10 * 1000);
	}
	return nothing;
}
int main(void)
{
	pthread_t thread;
	signal(SIGUSR1, on_signal);
	pthread_create(&thread, 0, endless, 0);
	for (long n = 1; n; n++) {
		pthread_mutex_lock(&one);
		step(n % 30 == 0 ? 300 * 1000 : 0);
		pthread_mutex_unlock(&one);
		usleep(1000);
	}
}
"""


class Kernel:
    """Counts calls as the programs do."""

    def __init__(self) -> None:
        self.limits, self.counters = np.zeros(1, SLOT), np.zeros(1, COUNTERS)
        self.open_calls = OpenCalls(Slot(0, self.limits, self.counters), SECOND)

    def begin(self) -> int:
        """Begin a call; return its period."""
        period = int(self.limits["period"][0])
        self.counters["open"][0, period % PERIODS] += 1
        return period

    def end(self, period: int, *, too_late: bool = False) -> None:
        """Return from a call of a period."""
        self.counters["open"][0, period % PERIODS] -= 1
        if int(self.limits["period"][0]) - period >= 2:
            self.counters["late"][0, period % PERIODS] += 1
        elif too_late:
            self.counters["censored"] += 1


def test_a_call_is_given_up_once() -> None:
    """Between one and two times the limit; neither time nor its late end count it again."""
    kernel = Kernel()
    kernel.open_calls.poll(0)
    period, found = kernel.begin(), []
    for now_ns in range(0, 12 * SECOND, SECOND // 4):
        kernel.open_calls.poll(now_ns)
        found.append(kernel.open_calls.censored)
        if now_ns == 9 * SECOND:
            kernel.end(period)
    assert found[4] == 0
    assert found[8:] == [1] * (len(found) - 8)


def test_a_call_that_ends_too_late_by_itself_is_counted_by_the_kernel() -> None:
    """One that ends before it is given up is no longer open then."""
    kernel = Kernel()
    kernel.open_calls.poll(0)
    kernel.end(kernel.begin(), too_late=True)
    kernel.end(kernel.begin())
    for now_ns in range(0, 9 * SECOND, SECOND):
        kernel.open_calls.poll(now_ns)
    assert kernel.open_calls.censored == 1


def test_another_function_of_the_slot_does_not_pay() -> None:
    """Calls of the function before are forgotten, also while they last."""
    kernel = Kernel()
    periods = [kernel.begin() for _ in range(3)]
    kernel.open_calls.forget_all()
    kernel.begin()
    kernel.end(periods[0])
    for now_ns in range(0, 9 * SECOND, SECOND):
        kernel.open_calls.poll(now_ns)
    assert kernel.open_calls.censored == 1


def test_all_that_is_open_is_given_up_at_the_end() -> None:
    """Young calls too, and only once."""
    kernel = Kernel()
    period = kernel.begin()
    kernel.open_calls.give_up_all()
    kernel.open_calls.give_up_all()
    assert kernel.open_calls.censored == 1
    kernel.end(period)
    kernel.open_calls.give_up_all()
    assert kernel.open_calls.censored == 1


@pytest.mark.kernel
@pytest.mark.parametrize("by_site", [False, True])
@pytest.mark.parametrize("kind", [Kind.TIME, Kind.PATH])
def test_slow_calls_are_censored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Kind, *, by_site: bool) -> None:
    """Each slow call is counted, no duration reaches the limit, and a call without an end is counted once."""
    if by_site:
        reason = Reason(code="unwinder", text="the test wants it")
        monkeypatch.setattr(gate, "forbids_replacing", lambda *_: reason)
    program = compiled(tmp_path, "sleeper", SLEEPER, "-O1", "-pthread")
    with running(program) as child, driven(child.pid, "step", max_open_ns=SECOND // 10) as driver:
        driver.watch("step", kind, window_calls=10**6, window_ns=SECOND // 2, minimum_calls=20)
        driver.poll(lambda: len(driver.observations) >= 3, 60)
        driver.observations.clear()  # the first calls from places that had no probe yet
        driver.poll(lambda: len(driver.observations) >= 4, 60)
        child.send_signal(signal.SIGUSR1)
        driver.poll(lambda: len(driver.observations) >= 8, 60)
    timed = sum(each.timed for each in driver.observations)
    censored = sum(each.censored for each in driver.observations)
    slowest = max(int(each.histogram.buckets[-1]) for each in driver.observations if each.timed)
    assert BUCKET_EDGES[slowest] < SECOND // 10
    without_end = sum(each.calls for each in driver.observations) - timed
    assert without_end >= 8
    assert abs(without_end - censored) <= 1, "one may be open at either end"
