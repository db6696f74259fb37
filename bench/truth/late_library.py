"""How long after a library that throws was loaded may an exception end a program under probes?

    .venv/bin/python -m bench.truth.late_library [RUNS]

A C program whose calls are timed all the time loads a C++ library. After a delay each call is left by an exception. A
return address that is replaced then would end the program. One program names ``dlopen``, one asks ``dlsym`` for it,
one finds it by itself. The kernel side is polled as seldom as the daemon polls it. Needs root and g++.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.lib.driver import ROOT, Driver, table
from specmine.model.batch import Watch
from specmine.model.observation import Kind
from specmine.probes.process.selection import Selection
from specmine.probes.settings import SourceSettings
from specmine.probes.source import BpfSource

DELAYS_MS = (0, 50, 100, 250, 500)
BEFORE_MS, AFTER_S = 1500, 0.7
POLL_S = 0.25
"""The longest pause between two polls of a daemon that has enough CPU time."""
PROGRAMS = {
    "names dlopen": (),
    "asks dlsym for it": ("-DBY_NAME",),
    "finds it in the list of what is loaded": ("-DHIDDEN",),
}


def built(folder: Path, flags: tuple[str, ...]) -> Path:
    """Compile the program, and the library beside it."""
    sources, program = ROOT / "tests" / "programs", folder / "late"
    command = ["gcc", "-std=gnu11", "-O2", "-fno-omit-frame-pointer", *flags, "-o"]
    subprocess.run([*command, program, sources / "late.c"], check=True)
    library = ["g++", "-O2", "-shared", "-fPIC", "-o"]
    subprocess.run([*library, folder / "thrower.so", sources / "thrower.cc"], check=True)
    return program


def ended(driver: Driver, program: Path, delay_ms: int) -> tuple[str, bool]:
    """Run the program once; return how returns were timed before the load, and whether it was ended by a signal."""
    child = subprocess.Popen(
        [program, "60", str(BEFORE_MS), str(delay_ms)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    began = time.monotonic()
    way = "not timed"
    time.sleep(random.uniform(0, POLL_S))  # polls come at no certain time after the load
    while child.poll() is None and time.monotonic() - began < (BEFORE_MS + delay_ms) / 1e3 + AFTER_S:
        driver.step()
        timed = list(driver.source.parts.registry.by_function.values())
        if time.monotonic() - began < BEFORE_MS / 1e3 and timed and timed[0].attachment.on_ns:
            way = "sites" if timed[0].by_site else "session"
        time.sleep(POLL_S)
    child.terminate()
    return way, child.wait() != 0


def watched(program: Path, runs: int) -> list[list[object]]:
    """Return a row for each delay."""
    settings = SourceSettings(watch=("relay",), sampling=False, cache="/var/cache/specmine")
    source = BpfSource([Selection(exe=str(program))], settings)
    rows: list[list[object]] = []
    try:
        source.start()
        driver = Driver(source)
        with subprocess.Popen([program, "60", "60000"], stdout=subprocess.DEVNULL) as first:
            key = driver.key("relay")
            first.terminate()
        source.apply(Watch(function=key, kind=Kind.TIME, window_calls=10**6, window_ns=10**12))
        for delay_ms in DELAYS_MS:
            outcomes = [ended(driver, program, delay_ms) for _ in range(runs)]
            ways = ", ".join(sorted({way for way, _ in outcomes}))
            rows.append([delay_ms, ways, sum(bad for _, bad in outcomes), runs])
    finally:
        source.close()
    return rows


def main() -> None:
    """Run both programs and print a table."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    rows: list[list[object]] = []
    for name, flags in PROGRAMS.items():
        with tempfile.TemporaryDirectory(prefix="specmine-bench-") as folder:
            rows += [[name, *row] for row in watched(built(Path(folder), flags), runs)]
    table(("program", "exception after, ms", "timed by", "ended by it", "runs"), rows)


if __name__ == "__main__":
    main()
