"""Classes explained by what their calls did of their time, on made-up calls whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from specmine.mining.off_cpu.breakdown import Part, Parts, parts
from specmine.mining.off_cpu.host_causes import HostTimes
from specmine.model.buckets import BUCKETS, bucket_of
from specmine.model.histogram import Histogram
from specmine.model.split import Split

MS = 1_000_000
HOST = HostTimes(
    slice_ns=4.02 * MS, slice_low_ns=4.018 * MS, slice_high_ns=4.025 * MS, pause_ns=80 * MS, tick_ns=18_000
)
Array = NDArray[np.float64]


def split_of(running: Array, waiting: Array, blocked: Array) -> tuple[Histogram, Split]:
    """Return histogram and split of calls of which all three are known, ns."""
    buckets = bucket_of((running + waiting + blocked).round())
    waited, off = (
        Histogram.from_dense(np.bincount(buckets, weights=part, minlength=BUCKETS)) for part in (waiting, blocked)
    )
    split = Split(waiting_ns=waited, blocked_ns=off, on_cpu=Histogram.from_durations(running.round()))
    return Histogram.from_durations((running + waiting + blocked).round()), split


def told(extra: str, size: float, border_ns: float, host: HostTimes = HOST) -> Parts:
    """Return the parts of 2,000 calls of 1 ms, a quarter of which does something of ``size`` ns more."""
    chance = np.random.default_rng(7)
    spread = chance.normal(1, 0.02, 2000)
    more = np.where(np.arange(2000) % 4 == 0, size * chance.normal(1, 0.003, 2000), 0.0)
    each = {name: np.zeros(2000) for name in ("running", "waiting", "blocked")}
    each["running"] += MS * spread
    each[extra] += more
    counts, split = split_of(**each)
    return parts(counts, split, [int(bucket_of(border_ns))], host)


def upper(found: Parts) -> Part:
    """Return the higher class."""
    assert found.main == 0
    return found.classes[1]


@pytest.mark.parametrize("slices", [1, 2, 3])
def test_waits_of_whole_slices_are_counted(slices: int) -> None:
    """A class whose calls waited for k turns is told as k timeslices, with what was waited and its interval."""
    found = upper(told("waiting", slices * 4.02 * MS, 2.5 * MS))
    assert (found.cause, found.slices) == ("slices", slices)
    assert found.label == f"+{slices} timeslice{'' if slices == 1 else 's'}: preempted"
    assert found.waited_low_ns <= found.waited_ns <= found.waited_high_ns
    assert found.waited_ns == pytest.approx(slices * 4.02 * MS, rel=0.01)
    assert found.excess_ns == pytest.approx(slices * 4.02 * MS, rel=0.03)
    assert found.on_cpu_ns == pytest.approx(MS, rel=0.08)


@pytest.mark.parametrize(
    ("extra", "size", "host", "cause", "label"),
    [
        ("waiting", 4.02 * MS, HostTimes(), "preempted", "preempted"),
        ("waiting", 6 * MS, HOST, "preempted", "preempted, by no whole number of timeslices"),
        ("waiting", 80 * MS, HOST, "quota", "the pause of the CPU limit"),
        ("blocked", 24 * MS, HOST, "blocked", "blocked 96 %"),
        ("running", 5 * MS, HOST, "", ""),
    ],
)
def test_other_causes_are_not_called_slices(extra: str, size: float, host: HostTimes, cause: str, label: str) -> None:
    """Without a derived slice, or off its multiples, no number of slices is claimed; more work has no cause."""
    found = upper(told(extra, size, 3 * MS, host))
    assert (found.cause, found.label, found.slices) == (cause, label, 0)


def test_calls_that_block_are_not_called_preempted() -> None:
    """A call that was woken waits for a CPU without having been preempted."""
    chance = np.random.default_rng(11)
    waiting = np.where(np.arange(2000) % 4 == 0, 1.7 * MS * chance.normal(1, 0.01, 2000), 0.0)
    counts, split = split_of(np.full(2000, 20_000.0), waiting, MS * chance.normal(1, 0.02, 2000))
    found = upper(parts(counts, split, [int(bucket_of(1.8 * MS))], HOST))
    assert (found.cause, found.label) == ("waiting", "waited for a CPU, preempted or after a wake-up")


def test_shares_of_time_add_up() -> None:
    """Running, waiting and blocked are the whole time of each class."""
    for each in told("blocked", 24 * MS, 3 * MS).classes:
        assert each.running + each.waiting + each.blocked == pytest.approx(1)


def test_a_class_within_the_noise_of_ticks_is_told_as_such() -> None:
    """Some more time on CPU, as much as a timer interrupt takes, is the host's."""
    chance = np.random.default_rng(3)
    running = 20_000 + np.where(np.arange(4000) % 8 == 0, 18_000.0, 0) + chance.normal(0, 200, 4000)
    zero = np.zeros(4000)
    counts, split = split_of(running, zero, zero)
    assert upper(parts(counts, split, [int(bucket_of(28_000))], HOST)).cause == "ticks"


def test_waiting_explains_what_paths_do_not_and_the_other_way_round() -> None:
    """The better explanation wins; paths of one call each explain nothing."""
    slices = told("waiting", 4.02 * MS, 2.5 * MS)
    assert slices.explained
    assert slices.by_waiting > 0.95
    chance = np.random.default_rng(5)
    slow = np.arange(2000) % 4 == 0
    running = np.where(slow, 5.0, 1.0) * MS * chance.normal(1, 0.02, 2000)
    counts, split = split_of(running, np.zeros(2000), np.zeros(2000))
    edges = [int(bucket_of(2.5 * MS))]
    work = parts(counts, split, edges, HOST, path_classes=[(1500, 0), (0, 500)])
    assert not work.explained
    assert work.by_paths == pytest.approx(1)
    single = parts(counts, split, edges, HOST, path_classes=[(1, 0)] * 15 + [(0, 1)] * 5)
    assert single.by_paths == 0


def test_empty_and_tiny_classes_have_no_cause() -> None:
    """Of next to no calls nothing is said."""
    counts, split = split_of(np.full(100, 1e6), np.zeros(100), np.zeros(100))
    found = parts(counts, split, [int(bucket_of(5 * MS))], HOST)
    assert found.classes[1] == Part(calls=0, running=0.0, waiting=0.0, blocked=0.0)
    assert not found.explained
