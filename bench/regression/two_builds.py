"""Is the one function found that differs by 10 % between two builds, and is no other one blamed for what the host did?

    .venv/bin/python -m bench.regression.two_builds [REPETITIONS]

Stores are simulated: a program of nine functions, ten lifetimes of each of two builds, one after the other or in turns.
The speed of the host drifts from lifetime to lifetime, and each function reacts to it in its own way. ``compare`` reads
the stores as those of a live program. Needs no root.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from specmine.analysis.compare.comparing import compare_functions
from specmine.analysis.compare.document import document_of, fails
from specmine.analysis.compare.sides import chosen_functions, read_sides
from specmine.mining.regression.comparison import Change, Rule
from specmine.model.batch import Lifetime
from specmine.model.function import Function
from specmine.model.histogram import Histogram
from specmine.model.observation import Kind, Observation
from specmine.store import FunctionProfile, Host, Writes, open_store

BUILDS = ("aaaa", "bbbb")
LIFETIMES, CALLS, FACTOR = 10, 500, 1.1
SECOND = 10**9
UTC = 1_700_000_000 * SECOND
CALLERS = {"handle": "main", "checksum": "handle", "parse": "main", "render": "main", "lookup": "parse",
           "encode": "render", "log_write": "main", "hash": "lookup", "copy": "encode"}  # fmt: skip
MEDIANS_NS = {"handle": 130e3, "checksum": 100e3, "parse": 40e3, "render": 60e3, "lookup": 20e3, "encode": 30e3,
              "log_write": 15e3, "hash": 8e3, "copy": 5e3}  # fmt: skip
CHANGED = "checksum"
THROUGH = "handle"
"""Its own code is as it was, but it calls the changed function in each call."""


@dataclass(frozen=True)
class SimulatedHost:
    """How a host drifts: an autoregressive process of log speed over lifetimes."""

    name: str
    deviation: float
    correlation: float
    reaction: float
    """Standard deviation of how strongly functions react; 1 is the mean."""


HOSTS = (
    SimulatedHost("steady", 0.0, 0.0, 0.0),
    SimulatedHost("drifts, 3 %", 0.03, 0.9, 0.2),
    SimulatedHost("drifts, 10 %", 0.10, 0.9, 0.2),
)


def drift(host: SimulatedHost, rng: np.random.Generator) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the log speed in each of the lifetimes, in the order of time."""
    values = [rng.normal(0.0, host.deviation)]
    for _ in range(2 * LIFETIMES - 1):
        step = host.deviation * np.sqrt(1.0 - host.correlation**2)
        values.append(host.correlation * values[-1] + rng.normal(0.0, step))
    return np.array(values)


def simulated(path: Path, host: SimulatedHost, rng: np.random.Generator, *, turns: bool, code: bool) -> None:
    """Write a store of both builds; without ``code`` nothing is known of their machine code."""
    speeds = drift(host, rng)
    reactions = {name: 1.0 + rng.normal(0.0, host.reaction) for name in MEDIANS_NS}
    order = [number % 2 if turns else number // LIFETIMES for number in range(2 * LIFETIMES)]
    functions = {
        (build, name): Function(build_id=BUILDS[build], offset=16 * (at + 1) + 8 * build, name=name, module="app",
                                code=f"1:{name}{build if name == CHANGED else ''}:l0" if code else "")
        for build in (0, 1)
        for at, name in enumerate(("main", *MEDIANS_NS))
    }  # fmt: skip
    writes: list[Host | Function | FunctionProfile | Lifetime | Observation] = [
        Host(boot_id="boot", hostname="here", utc_offset_ns=UTC),
        *functions.values(),
    ]
    for build in (0, 1):
        writes.append(FunctionProfile(build_id=BUILDS[build], function="", samples=9000, cpu_ns=9e9))
        for name in MEDIANS_NS:
            caller = functions[build, CALLERS[name]].key
            writes.append(FunctionProfile(build_id=BUILDS[build], function=functions[build, name].key, samples=1000,
                                          cpu_ns=1e9, inclusive_ns=1e9, callers={caller: 1e9}))  # fmt: skip
    for number, build in enumerate(order):
        start = (1000 + 60 * number) * SECOND
        life = Lifetime(id=f"boot:{number}:{start // 10**7 - 2000}", pid=number + 1, executable="/bin/app",
                        build_id=BUILDS[build], start_ns=start, processes=0)  # fmt: skip
        writes.append(life)
        for name, median in MEDIANS_NS.items():
            factor = FACTOR if build and name == CHANGED else 1.0
            if build and name == THROUGH:
                factor = 1.0 + (FACTOR - 1.0) * MEDIANS_NS[CHANGED] / median
            level = median * factor * np.exp(reactions[name] * speeds[number] + rng.normal(0.0, 0.01))
            durations = level * rng.lognormal(0.0, 0.2, CALLS)
            writes.append(Observation(function=functions[build, name].key, lifetime=life.id, kind=Kind.TIME,
                                      start_ns=start, end_ns=start + 10 * SECOND,
                                      histogram=Histogram.from_durations(durations), calls=CALLS,
                                      watched_ns=10 * SECOND))  # fmt: skip
    with open_store(path) as store:
        store.write(Writes(tuple(writes)), UTC)


def repetition(host: SimulatedHost, rng: np.random.Generator, *, turns: bool, code: bool) -> Counter[str]:
    """Return what one comparison said."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.db"
        simulated(path, host, rng, turns=turns, code=code)
        sides = read_sides((BUILDS[0], BUILDS[1]), path, (None, None), skip_bad=False, warmup=True)
        rule = Rule()
        document = document_of(sides, compare_functions(sides, chosen_functions(sides, ()), rule), rule, fdr=False)
    found = {each["function"]: each for each in document["functions"]}
    others = [each for name, each in found.items() if name not in (CHANGED, THROUGH)]
    low, high = found[CHANGED]["interval"]
    return Counter({
        f"changed {found[CHANGED]['verdict']}": 1,
        "interval covers": int(low <= FACTOR <= high),
        "caller worse": int(found[THROUGH]["verdict"] == Change.WORSE.value),
        "unchanged worse": sum(each["verdict"] == Change.WORSE.value for each in others),
        "unchanged fails": int(any(fails(each, strict=False) for each in others)),
        "exit 1": int(any(fails(each, strict=False) for each in found.values())),
        "warned": int(document["order"]["warning"] is not None),
    })  # fmt: skip


def main() -> None:
    """Print a row per host and order."""
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    columns = ("changed worse", "changed undecided", "changed equivalent", "changed better", "interval covers",
               "caller worse", "unchanged worse", "unchanged fails", "exit 1", "warned")  # fmt: skip
    print(f"{times} repetitions each; unchanged worse: of {times * (len(MEDIANS_NS) - 2)} verdicts")
    print(f"{'host':12} {'order':9} {'code':7} " + " ".join(f"{each:>18}" for each in columns))
    for host in HOSTS:
        for turns, code in ((True, True), (False, True), (False, False)):
            rng = np.random.default_rng(12)
            total: Counter[str] = Counter()
            for _ in range(times):
                total += repetition(host, rng, turns=turns, code=code)
            order, known = "turns" if turns else "in blocks", "known" if code else "unknown"
            print(
                f"{host.name:12} {order:9} {known:7} " + " ".join(f"{total[each]:18}" for each in columns), flush=True
            )


if __name__ == "__main__":
    main()
