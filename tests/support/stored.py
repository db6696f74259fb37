"""What tests put into a store."""

from __future__ import annotations

import numpy as np

from specmine.model.batch import Lifetime
from specmine.model.call_path import CallPath, Frame
from specmine.model.function import Function
from specmine.model.histogram import EMPTY, Histogram
from specmine.model.observation import Kind, Observation, PathHistogram
from specmine.model.split import Split, sum_of_splits, unbroken
from specmine.store import Host, Store, Writes

SECOND = 10**9
UTC = 1_700_000_000 * SECOND
HOST = Host(boot_id="boot", hostname="here", utc_offset_ns=UTC, facts={"kernel": "6.18"})
LIFETIME = Lifetime(id="boot:7:99", pid=7, executable="/bin/app", build_id="ab", start_ns=5, processes=2)
FUNCTION = Function(
    build_id="ab",
    offset=16,
    name="z",
    module="app",
    aliases=("zz",),
    mangled="_z",
    in_program=True,
    stepped=True,
)


def observation(
    second: int, *, key: str = FUNCTION.key, lifetime: str = LIFETIME.id, names: tuple[str, ...] = ("b",)
) -> Observation:
    """Return an observation of one second that holds 100 calls over each path."""
    rng = np.random.default_rng(second)
    paths = []
    for number, name in enumerate(names):
        path = CallPath((Frame("main", "app"), Frame(name, "app"), Frame("z", "app")), name != "?")
        histogram = Histogram.from_durations(rng.integers(1000, 9000, 100))
        # of every second path the calls were blocked for half of their time
        split = Split(
            waiting_ns=EMPTY,
            blocked_ns=Histogram.from_pairs(histogram.buckets, histogram.counts * 500),
            on_cpu=Histogram.from_pairs(histogram.buckets - 16, histogram.counts),
        )
        paths.append(PathHistogram(path=path, histogram=histogram, split=split if number % 2 else None))
    splits = [each.split or unbroken(each.histogram) for each in paths]
    return Observation(
        function=key,
        lifetime=lifetime,
        kind=Kind.PATH,
        start_ns=second * SECOND,
        end_ns=(second + 1) * SECOND,
        histogram=Histogram.sum(path.histogram for path in paths),
        calls=120 * len(names),
        watched_ns=SECOND // 2,
        inner=3,
        censored=1,
        bias_ns=float(second % 7),
        uncertainty_ns=float(second % 5),
        paths=tuple(paths),
        split=sum_of_splits(splits),
    )


def fill(store: Store, observations: list[Observation]) -> None:
    """Write a host, a lifetime, a function and observations."""
    store.write(Writes((HOST, LIFETIME, FUNCTION, *observations)), UTC)
