"""Is a function that is 5 % slower in a new build reported as worse, and no other function?

    .venv/bin/python -m bench.regression.live [FACTOR REPETITIONS]

Two builds of a program run under probes. Each lifetime lasts five seconds and has an offset of its own, drawn at its
start from +-3 %. Needs root and gcc.
"""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

SPECMINE = str(Path(sys.executable).parent / "specmine")
LIFETIMES, SECONDS, TRIES = 5, 5, 20
SOURCE = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static volatile uint64_t sink;
static double offset;
static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}
static void work(double us)   /* by the clock: what is asked for is what it takes on a busy host too */
{
    uint64_t end = now() + (uint64_t)(us * 1000.0 * offset);
    while (now() < end) sink++;
}
__attribute__((noinline)) void changed(void) { work(100.0 * FACTOR); sink++; }
__attribute__((noinline)) void neighbour(void) { work(100.0); sink++; }
int main(void)
{
    FILE *random = fopen("/dev/urandom", "r");
    uint32_t seed = 0;
    if (!random || fread(&seed, sizeof seed, 1, random) != 1) return 1;
    offset = 0.97 + 0.06 * (seed / 4294967296.0);
    /* so many calls, not so long: a host that stands still for a while takes none of them away */
    for (int left = SECONDS * 430; left > 0; left--) { changed(); neighbour(); usleep(2000); }
    return 0;
}
"""


def built(folder: Path, name: str, factor: float) -> Path:
    """Compile a build of the program."""
    source, program = folder / f"{name}.c", folder / name
    source.write_text(SOURCE)
    subprocess.run(
        ["gcc", "-O2", "-fno-omit-frame-pointer", "-Wl,--build-id", f"-DFACTOR={factor}", f"-DSECONDS={SECONDS}",
         "-o", program, source], check=True,
    )  # fmt: skip
    return program


def lived(program: Path, store: Path) -> None:
    """Let one lifetime of a build pass under probes; again, if a busy host let it end before they were on."""
    command = [SPECMINE, "mine", "--duration", str(60 * SECONDS), "--budget", "5%", "--store", str(store),
               "--function", "changed", "--function", "neighbour", "--", str(program)]  # fmt: skip
    before = known(store)
    for _ in range(TRIES):
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        if known(store) > before:
            return
        time.sleep(3.0)  # another one may be mining here: there is one at a time


def known(store: Path) -> int:
    """Return how many lifetimes a store knows of the function of which it knows fewest."""
    if not store.exists():
        return 0
    with sqlite3.connect(store) as db:
        counts = [row[0] for row in db.execute("SELECT count(*) FROM summaries GROUP BY function")]
    return min(counts, default=0) if len(counts) >= 2 else 0


def compared(base: Path, new: Path) -> dict[str, dict[str, Any]]:
    """Return the verdict on each function."""
    done = subprocess.run(
        [SPECMINE, "compare", str(base), str(new), "--format", "json"], capture_output=True, check=False
    )
    return {each["function"]: each for each in json.loads(done.stdout)["functions"]} if done.stdout else {}


def repetition(folder: Path, factor: float) -> dict[str, dict[str, Any]]:
    """Return a comparison of five lifetimes of each build, run in turn."""
    programs = {"base": built(folder, "base", 1.0), "new": built(folder, "new", factor)}
    for _ in range(LIFETIMES):
        for name, program in programs.items():
            lived(program, folder / f"{name}.db")
    return compared(folder / "base.db", folder / "new.db")


def main() -> None:
    """Print each repetition and how many were right."""
    asked = [(float(sys.argv[1]), int(sys.argv[2]))] if len(sys.argv) > 2 else [(1.05, 10), (1.0, 20)]
    for factor, times in asked:
        right = dict.fromkeys(("changed is worse", "its interval covers the factor", "neighbour is neither"), 0)
        false = {"changed": 0, "neighbour": 0}
        for number in range(times):
            with tempfile.TemporaryDirectory() as folder:
                found = repetition(Path(folder), factor)
            if set(found) != set(false):
                print(f"  {number}: only {sorted(found)} were seen on both sides")
                continue
            for name, each in found.items():
                low, high = each["interval"] or (float("nan"),) * 2
                print(
                    f"  {number}: {name:10} {each['verdict']:10} {each['ratio']} {low}..{high} {each['lifetimes']}",
                    flush=True,
                )
                false[name] += each["verdict"] in ("worse", "better")
            low, high = found["changed"]["interval"] or (2.0, 0.0)
            right["changed is worse"] += found["changed"]["verdict"] == "worse"
            right["its interval covers the factor"] += low <= factor <= high
            right["neighbour is neither"] += found["neighbour"]["verdict"] not in ("worse", "better")
        if factor == 1.0:
            print(f"equal builds: false verdicts of {times}: {false}")
        else:
            print(f"{factor}: of {times}: {right}")


if __name__ == "__main__":
    main()
