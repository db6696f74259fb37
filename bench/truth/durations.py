"""Are durations true, whatever the probes and the caches add to them?

    .venv/bin/python -m bench.truth.durations [bias] [spins] [nested] [cold] [split] [--times 5]

bias: what durations are corrected by, alone and beside three busy processes a CPU. At most a quarter apart is good.
spins: functions that spin 20 and 5 us by the clock. The most frequent duration, corrected, is at most 15 % longer.
nested: outer() with and without a probe on inner(), which it calls forty times, relative to plain() without calls. At
most 15 % apart is good. An empty function is 0 within the stated uncertainty.
cold: an empty function in a loop and amid 384 kB of code is 0 within the stated uncertainty in both.
split: the time on CPU of a call that asks for 1 ms by the thread's own clock. The middle call is within 5 % of it.

Neighbours and clocks that change their speed move all of these. So each is repeated, its spread is stated, and
`steal` tells what part of the time the hypervisor gave to others meanwhile. The kernel tests ask for the identities
alone (tests/probes/timing, tests/probes/calibration). Needs root.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from specmine.model.buckets import BUCKET_MIDDLES, BUCKETS
from specmine.model.observation import Kind, Observation
from specmine.model.split import sum_of_splits
from specmine.probes.calibration.recalibrate import measured_here
from specmine.probes.kernel.loader import LINK_KINDS, load
from tests.support.paths import TESTS
from tests.support.source_driver import Driver, driven, running

BUSY = [sys.executable, "-c", "while True: bytes(range(256)) * 1000"]


def main() -> int:
    """Measure what was asked for; 0 if everything was as true as claimed in the middle of its repetitions."""
    checks: dict[str, Callable[[Path], dict[str, tuple[float, float, float]]]] = {
        "bias": bias,
        "spins": spins,
        "nested": nested,
        "cold": cold,
        "split": split,
    }
    parser = argparse.ArgumentParser(description="Are durations true?")
    parser.add_argument("what", nargs="*", help=f"some of {', '.join(checks)}; all of them if none is given")
    parser.add_argument("--times", type=int, default=5)
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("bench.truth.durations: needs root", file=sys.stderr)
        return 4
    wrong = 0
    print("what                          least   middle     most   claimed        steal")
    with tempfile.TemporaryDirectory(prefix="specmine-bench-") as folder:
        os.environ["CACHE_DIRECTORY"] = folder
        for name in options.what or checks:
            before = stolen()
            runs = [checks[name](Path(folder)) for _ in range(options.times)]
            steal = np.subtract(stolen(), before)
            for each, (_, low, high) in runs[0].items():
                values = sorted(run[each][0] for run in runs)
                middle = float(np.median(values))
                wrong += not low <= middle <= high
                shown = f"{values[0]:8.3f} {middle:8.3f} {values[-1]:8.3f}   {low:5.2f} .. {high:5.2f}"
                print(f"{each:26} {shown} {steal[0] / max(1, steal[1]):8.1%}", flush=True)
    return 1 if wrong else 0


def bias(folder: Path) -> dict[str, tuple[float, float, float]]:
    """Compare the correction beside busy processes with that without."""
    loaded = load(interpreter="/usr/bin/python3", memory_bytes=16 << 20, buckets=BUCKETS, cache=folder, sampling=False)
    try:
        quiet = measured_here(loaded)
        busy = [subprocess.Popen(BUSY) for _ in range(3 * (os.cpu_count() or 1))]
        try:
            time.sleep(0.3)
            found = measured_here(loaded)
        finally:
            for each in busy:
                each.kill()
                each.wait()
    finally:
        loaded.close()
    names = ["bias_ns"] + ["site_bias_ns"] * (quiet.site_bias_ns > 0)
    return {f"{name} beside / alone": (getattr(found, name) / getattr(quiet, name), 0.75, 1.33) for name in names}


def spins(folder: Path) -> dict[str, tuple[float, float, float]]:
    """Compare the most frequent durations with what was spun."""
    found = {}
    for name, function, kind, spun_ns in (("paths", "z", Kind.PATH, 20_000), ("throws", "thrower*", Kind.TIME, 5_000)):
        with running(built(folder, name), 600) as child, driven(child.pid, function) as driver:
            driver.poll(lambda: driver.functions)
            key = driver.watch(next(iter(driver.functions.values())).name, kind)
            last = wait(driver, 3, key)[-1]
            ns = BUCKET_MIDDLES[int(last.histogram.dense.argmax())] - last.bias_ns
        found[f"{name}: duration / spun"] = (float(ns) / spun_ns, 0.9, 1.15)
    return found


def nested(folder: Path) -> dict[str, tuple[float, float, float]]:
    """Compare a function with and without probes on what it calls, by all kinds of link and by multi links."""
    found = {}
    for kind, links in (("any", LINK_KINDS), ("multi", ("multi",))):
        names = ("outer", "light", "plain", "inner")
        with running(built(folder, "nests"), 600) as child, driven(child.pid, *names, links=links) as driver:
            outer, light, plain = (driver.watch(name, Kind.TIME) for name in names[:3])
            before = lately(driver, outer, light, plain)
            inner = driver.watch("inner", Kind.TIME, window_calls=5000)
            driver.poll(lambda: driver.last.lost["perturbed_calls"] > 0)
            driver.observations.clear()
            after = lately(driver, outer, light, plain)
            within = [empty(each) for each in wait(driver, 5, inner)]
            found[f"outer, {kind}"] = (after[0] / after[2] / (before[0] / before[2]), 0.85, 1.15)
            found[f"light, {kind}"] = (after[1] / after[2], 0.96, 1.04)
            found[f"inner is empty, {kind}"] = (float(np.mean(within)), 0.9, 1.0)
    return found


def cold(folder: Path) -> dict[str, tuple[float, float, float]]:
    """Tell how many observations of an empty function are 0 within what they state."""
    with running(built(folder, "caches"), 600) as child, driven(child.pid, "warm", "cold") as driver:
        keys = {name: driver.watch(name, Kind.TIME) for name in ("warm", "cold")}
        driver.poll(lambda: min(len(of(driver, key)) for key in keys.values()) >= 10)
        return {
            f"{name} is empty": (float(np.mean([empty(each) for each in of(driver, key)[-5:]])), 0.6, 1.0)
            for name, key in keys.items()
        }


def split(folder: Path) -> dict[str, tuple[float, float, float]]:
    """Compare the middle call's time on CPU with the 1 ms that it asks for."""
    with running(built(folder, "splits"), 600) as child, driven(child.pid, "work") as driver:
        key = driver.watch("work", Kind.TIME, window_calls=150, window_ns=4 * 10**9)
        driver.poll(lambda: len(of(driver, key)) >= 4)
        parts = sum_of_splits([each.split for each in of(driver, key) if each.split is not None])
        assert parts is not None
        middle = parts.on_cpu.quantile(0.5) - of(driver, key)[-1].bias_ns
    return {"time on CPU / asked": (middle / 1e6, 0.95, 1.05)}


def lately(driver: Driver, *keys: str) -> list[float]:
    """Return the median duration of each function in three windows from now on, corrected, ns."""
    driver.observations.clear()
    driver.poll(lambda: min(len(of(driver, key)) for key in keys) >= 3)
    return [
        float(np.median([each.histogram.quantile(0.5) - each.bias_ns for each in of(driver, key)[-3:]])) for key in keys
    ]


def empty(observation: Observation) -> bool:
    """Tell whether the median is 0 within what the observation states."""
    return abs(observation.histogram.quantile(0.5) - observation.bias_ns) <= observation.uncertainty_ns


def wait(driver: Driver, number: int, key: str) -> list[Observation]:
    """Wait until there are so many observations of a function, and return them."""
    driver.poll(lambda: len(of(driver, key)) >= number)
    return of(driver, key)


def of(driver: Driver, key: str) -> list[Observation]:
    """Return the observations of a function."""
    return [each for each in driver.observations if each.function == key]


def stolen() -> tuple[int, int]:
    """Return the ticks that the hypervisor gave to others, and all ticks."""
    ticks = [int(each) for each in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return ticks[7], sum(ticks)


def built(folder: Path, name: str) -> Path:
    """Compile a program of the tests."""
    source = next((TESTS / "programs").glob(f"{name}.c*"))
    compiler = "g++" if source.suffix == ".cc" else "gcc"
    subprocess.run([compiler, "-O2", "-fno-omit-frame-pointer", "-o", folder / name, source, "-lm"], check=True)
    return folder / name


if __name__ == "__main__":
    raise SystemExit(main())
