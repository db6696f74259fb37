"""Is what specmine says of the inside of slow calls true?

    .venv/bin/python -m bench.truth.inside [--rounds 1] [--seconds 6]

Five programs whose slow calls have a known cause: a callee, a callee three levels down, two callees at once, own code,
a lock that another thread holds. Each measures the parts of its slow calls by its own clock. That is compared with the
shares of the slow class. Needs root and gcc.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from bench.lib.driver import TARGETS, Driver, table
from specmine.mining.inside.composition import ClassInside, best_known, composition
from specmine.model.buckets import bucket_of
from specmine.model.observation import Kind
from specmine.probes.process.selection import Selection
from specmine.probes.source import BpfSource, SourceSettings

SLOW_NS = 400_000
NAMES = ("top", "parse", "slow", "other", "one", "two", "take_lock")
CAUSES = {
    "callee": {"slow": "slow"},
    "nested": {"one": "slow"},
    "two": {"slow": "slow", "other": "other"},
    "own": {},
    "lock": {"take_lock": "take_lock"},
}
"""Program -> callees that are the cause, with the field of the truth that they are measured in."""
WITHIN = 0.10
DOWN = (("one", "two"), ("two", "slow"))
"""What the nested cause must be below its first level."""


def main() -> int:
    """Measure; 0 if each cause is named first and its share is within ten points of the truth."""
    parser = argparse.ArgumentParser(description="Is what is said of the inside of slow calls true?")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=6.0, help="how long each program is watched")
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("bench.truth.inside: needs root", file=sys.stderr)
        return 4
    rows, wrong = [], 0
    with tempfile.TemporaryDirectory(prefix="specmine-bench-") as folder:
        program = Path(folder) / "slow_calls"
        subprocess.run(["cc", "-O2", "-pthread", "-o", program, TARGETS / "slow_calls.c"], check=True)
        for _ in range(options.rounds):
            for mode in CAUSES:
                row, right = judged(mode, *watched(program, mode, options.seconds, Path(folder)))
                rows.append(row)
                wrong += not right
    table(["slow by", "slow calls", "named first", "share, specmine", "share, program", ""], rows)
    return min(wrong, 1)


def watched(program: Path, mode: str, seconds: float, cache: Path) -> tuple[dict[str, ClassInside], dict[str, Any]]:
    """Watch one program; return the slow class of each function, and what the program knows."""
    child = subprocess.Popen([program, mode], stdout=subprocess.PIPE, text=True)
    settings = SourceSettings(watch=NAMES, sampling=False, isolate=False, cache=str(cache))
    source = BpfSource([Selection(pid=child.pid)], settings)
    edge = int(bucket_of(np.array([SLOW_NS]))[0])
    try:
        source.start()
        driver = Driver(source)
        keys = {name: driver.watch(name, Kind.TIME, window_calls=400, window_ns=10**9) for name in NAMES}
        begin = driver.last.now_ns
        driver.poll(lambda: driver.last.now_ns - begin > seconds * 1e9, 60 + seconds)
    finally:
        source.close()
        child.send_signal(signal.SIGTERM)
        out, _ = child.communicate(timeout=10)
    found = {}
    for name, key in keys.items():
        known = best_known(part for each in driver.observations if each.function == key for part in each.inside)
        if known is not None:
            found[name] = composition(known, (edge,)).classes[1]
    return found, json.loads(out)


def judged(mode: str, found: dict[str, ClassInside], truth: dict[str, Any]) -> tuple[tuple[str, ...], bool]:
    """Return a row of the table, and whether it is right."""
    slow = found.get("top", ClassInside())
    shares = {part.callee.name: part.share for part in slow.callees} | {"own code": slow.own}
    named = max(shares, key=lambda name: shares[name])
    known = {name: truth[field] / max(1, truth["whole"]) for name, field in CAUSES[mode].items()}
    causes = known or {"own code": 1.0 - 20_000 / (truth["whole"] / max(1, truth["calls"]))}
    right = named == max(causes, key=lambda name: causes[name])
    right &= all(abs(shares.get(name, 0.0) - share) <= WITHIN for name, share in causes.items())
    if mode == "nested":
        for caller, callee in DOWN:
            parts = found.get(caller, ClassInside()).callees
            right &= bool(parts) and parts[0].callee.name == callee and parts[0].share > 1 - WITHIN
    told = (
        mode,
        f"{slow.calls} of {truth['calls']}",
        named,
        ", ".join(f"{name} {shares.get(name, 0.0):.1%}" for name in causes),
        ", ".join(f"{name} {share:.1%}" for name, share in causes.items()),
        "right" if right else "**wrong**",
    )
    return told, right


if __name__ == "__main__":
    sys.exit(main())
