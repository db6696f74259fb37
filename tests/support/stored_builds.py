"""A store with two builds of one program."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from specmine.model.batch import Lifetime
from specmine.model.function import Function
from specmine.model.histogram import Histogram
from specmine.model.observation import Kind, Observation
from specmine.store import FunctionProfile, Host, Writes, open_store


def two_builds(path: Path, slow: float) -> Path:
    """Write a store with two builds: a handler calls a parser twice, whose code and time change."""
    rng = np.random.default_rng(7)
    with open_store(path) as store:
        store.write(Writes((Host(boot_id="boot", hostname="here", utc_offset_ns=10**18),)), 10**18)
        for number, (build, factor) in enumerate((("aaaa", 1.0), ("bbbb", slow))):
            digest = {"handle": "1:c:l0", "parse": f"1:{build}:l0", "aside": "1:d:l0"}
            functions = {
                name: Function(build_id=build, offset=16 * at + 1000 * number, name=name, module="app", code=code)
                for at, (name, code) in enumerate(digest.items(), 1)
            }
            profiles = (
                FunctionProfile(build_id=build, function="", samples=1000, cpu_ns=1e9),
                FunctionProfile(build_id=build, function=functions["parse"].key, samples=500, cpu_ns=5e8,
                                inclusive_ns=5e8, callers={functions["handle"].key: 5e8}),
                FunctionProfile(build_id=build, function=functions["handle"].key, samples=100, cpu_ns=1e8,
                                inclusive_ns=6e8),
            )  # fmt: skip
            store.write(Writes((*functions.values(), *profiles)), 10**18)
            for at in range(5):
                identity = f"boot:{number}{at}:{100 * at}"
                lifetime = Lifetime(id=identity, pid=at, executable="/bin/app", build_id=build,
                                    start_ns=at * 10**9, processes=0)  # fmt: skip
                store.write(Writes((lifetime,)), 10**18)
                start = np.exp(rng.normal(0, 0.01))
                for name, median, calls in (("parse", 40e3 * factor, 1000), ("handle", 20e3 + 80e3 * factor, 500),
                                            ("aside", 30e3, 500)):  # fmt: skip
                    durations = start * median * rng.lognormal(0, 0.05, calls)
                    window = Observation(
                        function=functions[name].key, lifetime=identity, kind=Kind.TIME, start_ns=(60 + at) * 10**9,
                        end_ns=(61 + at) * 10**9,
                        histogram=Histogram.from_durations(durations), calls=calls, watched_ns=10**9,
                    )  # fmt: skip
                    store.write(Writes((window,)), 10**18)
    return path
