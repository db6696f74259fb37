"""What memory and CPU time does `analyze` take for many call paths, and does it find what was planted?

    .venv/bin/python -m bench.importers.many_paths [--largest]

Each recording has one function. A call over main->a3 takes six times as long, one call in seven. The rest of a path is
of one of two kinds: a caller of its own, which no other path has, or a walk over thirty functions, whose edges all
paths share. Seeded. Needs no root.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from bench.lib.tools.child_usage import child_usage

CASES = (
    (100_000, 100, "own caller", False),
    (100_000, 10_000, "own caller", False),
    (100_000, 10_000, "own caller", True),
    (100_000, 10_000, "walk", False),
    (1_000_000, 10_000, "own caller", True),
)
LARGEST = ((1_000_000, 100_000, "own caller", False), (1_000_000, 100_000, "walk", False))
_WINDOW_NS = 10_000_000_000
_WINDOWS = 500


def recording(file: Path, calls: int, paths: int, kind: str, timed: bool) -> None:
    """Write a recording of so many calls over so many paths; with times it has 500 windows of ten seconds."""
    rng = np.random.default_rng(1)
    if kind == "walk":
        rests = [";".join(f"f{n}" for n in rng.permutation(30)[:6]) for _ in range(paths)]
    else:
        rests = [f"b{n % 50};c{n}" for n in range(paths)]
    names = [f"main;a{n % 7};{rest};z" for n, rest in enumerate(rests)]
    which = np.concatenate((np.arange(paths), rng.integers(0, paths, calls - paths)))
    rng.shuffle(which)
    durations = rng.lognormal(np.log(2e4), 0.2, calls) * np.where(which % 7 == 3, 6, 1)
    times = np.arange(calls) * (_WINDOWS * _WINDOW_NS // calls)
    with file.open("w") as out:
        out.write("function,path,duration_ns" + (",time_ns\n" if timed else "\n"))
        for path, duration, time_ns in zip(which.tolist(), durations.tolist(), times.tolist(), strict=True):
            out.write(f"z,{names[path]},{duration:.0f}" + (f",{time_ns}\n" if timed else "\n"))


def measured(file: Path) -> tuple[float, float, str]:
    """Return peak memory in MB and CPU time in s of `analyze`, and what it states."""
    used = child_usage(
        [sys.executable, "-m", "specmine.cli", "analyze", file, "--format", "json"], stderr=subprocess.DEVNULL
    )
    (function,) = json.loads(used.out)["functions"]
    said = " / ".join(sorted(each["expression"] for each in function["behaviours"]))
    return used.peak_mb, used.cpu_s, f"{function['state']}: {said}"


def main(arguments: list[str]) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", action="store_true", help="also a million calls over 100,000 paths")
    chosen = parser.parse_args(arguments)
    print("| calls | paths | kind | windows | peak memory, MB | CPU time, s | stated |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for calls, paths, kind, timed in (*CASES, *(LARGEST if chosen.largest else ())):
        with tempfile.NamedTemporaryFile(suffix=".csv") as file:
            recording(Path(file.name), calls, paths, kind, timed)
            memory, seconds, stated = measured(Path(file.name))
        windows = _WINDOWS if timed else 10
        print(f"| {calls:,} | {paths:,} | {kind} | {windows} | {memory:.0f} | {seconds:.1f} | {stated} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
