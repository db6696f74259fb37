"""What tests put into a store."""

from __future__ import annotations

import numpy as np

from specmine.daemon.store import Host, Store
from specmine.mining.observation import (
    CallPath,
    Frame,
    Function,
    Kind,
    Observation,
    PathHistogram,
    histogram_of,
)
from specmine.probes.batch import Lifetime

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
    paths = tuple(
        PathHistogram(
            path=CallPath((Frame("main", "app"), Frame(name, "app"), Frame("z", "app")), name != "?"),
            counts=histogram_of(rng.integers(1000, 9000, 100)),
        )
        for name in names
    )
    return Observation(
        function=key,
        lifetime=lifetime,
        kind=Kind.PATH,
        start_ns=second * SECOND,
        end_ns=(second + 1) * SECOND,
        counts=np.sum([path.counts for path in paths], axis=0),
        calls=120 * len(names),
        watched_ns=SECOND // 2,
        inner=3,
        censored=1,
        bias_ns=float(second % 7),
        paths=paths,
    )


def fill(store: Store, observations: list[Observation]) -> None:
    """Put a host, a lifetime, a function and observations."""
    with store.transaction():
        store.put_host(HOST)
        store.put_lifetimes([LIFETIME])
        store.put_functions([FUNCTION])
        store.put_observations(observations)
