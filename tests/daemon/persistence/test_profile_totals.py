"""Profiles go on where the store left them, whoever ran meanwhile, and few are held in memory."""

from __future__ import annotations

from specmine.daemon.persistence.profile_totals import KEPT, ProfileTotals
from specmine.model.batch import Batch, HotSample, Lifetime
from specmine.store import FunctionProfile


def sampled(build: str, *, processes: int = 1) -> Batch:
    """Return a batch in which a build has 5 ns of CPU time, or ends."""
    hot = HotSample(function=f"{build}+0x10", samples=1, cpu_samples=1, on_cpu_ns=5.0, off_cpu_ns=0.0, inclusive_ns=5.0)
    life = Lifetime(id=f"boot:{build}:1", pid=1, executable="/app", build_id=build, start_ns=0, processes=processes)
    return Batch(now_ns=1, lifetimes=(life,), hot_samples=(hot,) if processes else ())


def test_a_build_that_comes_back_goes_on_from_the_store() -> None:
    """A hundred builds come and go, and the first one runs again: its time is that of both runs."""
    store: dict[tuple[str, str], FunctionProfile] = {}
    totals = ProfileTotals(lambda build: [each for key, each in store.items() if key[0] == build])
    for build in ("first", *map(str, range(100)), "first"):
        totals.add(sampled(build))
        totals.add(sampled(build, processes=0))
        store |= {(each.build_id, each.function): each for each in totals.changed()}
        assert len(totals._rows) <= KEPT
    assert store["first", "first+0x10"].cpu_ns == 10.0
    assert store["7", "7+0x10"].cpu_ns == 5.0
