"""How long does a program stand still while probes are attached and detached, and how soon can all of them be gone?

    .venv/bin/python -m bench.overhead.attach_pauses [--rounds 7]

A program calls a thousand functions in turn and reports the longest time between two calls. It does so without probes,
while 500 functions are linked at once, and while that link is closed. No ordinary process is scheduled before it. Then
100 links of ten functions each are closed at once: as at the end of the process that watches, and by killing the
process that holds the links. Needs root and gcc.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench.lib.driver import LIMIT_S, TARGETS, Driver, Spoken, built, driven, table
from bench.lib.peers import all_probed, none_probed, places_in, symbols
from specmine.model.observation import Kind
from specmine.probes.kernel.links import Links
from specmine.probes.timing.function.slot import NO_LIMIT

FUNCTIONS, AT_ONCE, LINKS = 1000, 500, 100
RUN_MS, REST_S = 300, 0.4
"""The kernel takes the CPU from a program that is first for 95 % of a second."""
GAP_BAR_MS, STOP_BAR_S = 1.0, 1.0


class Bench:
    """The program, and the links on it."""

    def __init__(self, target: Spoken, path: Path, driver: Driver) -> None:
        self.target, self.driver, self.path = target, driver, path
        found = symbols(path)
        self.offsets = [found[f"f{number:03d}"] for number in range(FUNCTIONS)]
        self.places = places_in(target.pid, path, self.offsets)
        for slot, _ in driver.source.parts.registry._free:
            slot.set_limit(NO_LIMIT)  # else the first hit would detach the link

    @property
    def links(self) -> Links:
        """The product's links."""
        return self.driver.source.parts.links

    def link(self, first: int, count: int, kind: Kind) -> int:
        """Link so many functions at once; return the number of the link once it is made."""
        with self.path.open("rb") as file:
            cookies = [number % 200 for number in range(count)]
            number = self.links.attach(file.fileno(), self.offsets[first : first + count], cookies, kind)
        self.hear(number, "made")
        return number

    def link_all(self, kind: Kind, made: list[int]) -> None:
        """Link the first ``AT_ONCE`` functions at once, and add the number of the link to a list."""
        made.append(self.link(0, AT_ONCE, kind))

    def unlink(self, number: int) -> None:
        """Close a link and wait until it is."""
        self.links.close(number)
        self.hear(number, "closed")

    def hear(self, number: int, what: str) -> None:
        """Wait for news of a link."""
        end = time.monotonic() + LIMIT_S
        while time.monotonic() < end:
            if any(news.id == number and news.what == what for news in self.links.news(0.5)):
                return
        raise SystemExit(f"link {number} was not {what}")

    def gap_ms(self, meanwhile: Callable[[], object] = lambda: None) -> float:
        """Return the longest time between two calls while something is done in the middle of a run."""
        time.sleep(REST_S)
        self.target.say(str(RUN_MS))
        time.sleep(RUN_MS / 3000)
        meanwhile()
        return int(self.target.hear()) / 1e6


def main() -> int:
    """Measure; 0 if the bars are kept."""
    parser = argparse.ArgumentParser(description="Standing still under probes that come and go.")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    if os.geteuid() != 0 or not shutil.which("gcc"):
        print("bench.overhead.attach_pauses: needs root and gcc", file=sys.stderr)
        return 4
    with tempfile.TemporaryDirectory(prefix="specmine-bench-") as folder:
        program = built(Path(folder), TARGETS / "thousand.c")
        broken = gaps(program, options.rounds)
        return max(broken, stops(program, Path(folder), options.rounds))


def gaps(program: Path, rounds: int) -> int:
    """Put a link of 500 functions on and off, in turn with doing nothing."""
    target = Spoken(program, first=True)
    found: dict[str, list[float]] = {}
    with driven(target.pid, ["no-such-function"], program.parent) as driver:
        bench = Bench(target, program, driver)
        bench.gap_ms()
        for _ in range(rounds):
            for kind in (Kind.COUNT, Kind.TIME):
                found.setdefault("nothing is done", []).append(bench.gap_ms())
                made: list[int] = []
                on = bench.gap_ms(partial(bench.link_all, kind, made))
                if not all_probed(target.pid, bench.places[:AT_ONCE]):
                    raise SystemExit("not all functions were probed")
                found.setdefault(f"{AT_ONCE} functions are linked, {kind}", []).append(on)
                found.setdefault(f"they stay linked, {kind}", []).append(bench.gap_ms())
                off = bench.gap_ms(partial(bench.unlink, made[0]))
                if not none_probed(target.pid, bench.places):
                    raise SystemExit("a probe stayed")
                found.setdefault(f"the link is closed, {kind}", []).append(off)
    target.end()
    print(f"\nThe longest time between two calls of the program, ms, in {rounds} runs of {RUN_MS} ms")
    table(
        ["while", "shortest", "median", "longest"],
        [(what, *(f"{f(ms):.3f}" for f in (min, statistics.median, max))) for what, ms in found.items()],
    )
    worst = max(statistics.median(ms) for what, ms in found.items() if what != "nothing is done")
    print(f"largest of the medians: {worst:.3f} ms; bar: {GAP_BAR_MS:g} ms")
    return int(worst > GAP_BAR_MS)


def stops(program: Path, folder: Path, rounds: int) -> int:
    """Close 100 links of ten functions at once, in two ways."""
    ways: dict[str, Callable[[Links], object]] = {
        "end": lambda links: links.shut(),
        "holder killed": lambda links: os.kill(links.pid, signal.SIGKILL),
    }
    found: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(max(1, rounds // 2)):
        for way, stop in ways.items():
            target = Spoken(program)
            with driven(target.pid, ["no-such-function"], folder) as driver:
                bench = Bench(target, program, driver)
                each = FUNCTIONS // LINKS
                for number in range(LINKS):
                    bench.link(number * each, each, Kind.TIME)
                if not all_probed(target.pid, bench.places):
                    raise SystemExit("not all functions were probed")
                target.say("1500")
                begun = time.monotonic()
                stop(bench.links)
                while not none_probed(target.pid, bench.places):
                    if time.monotonic() > begun + LIMIT_S:
                        raise SystemExit("a probe stayed")
                found[way].append(time.monotonic() - begun)
                target.hear()
            target.end()
    print(
        f"\nFrom the wish to the last of {FUNCTIONS} probes over {LINKS} links, s; the program calls them all the time"
    )
    table(
        ["way", "median", "longest"],
        [(way, f"{statistics.median(s):.3f}", f"{max(s):.3f}") for way, s in found.items()],
    )
    worst = max(found["end"])
    print(f"longest at an end: {worst:.3f} s; bar: {STOP_BAR_S:g} s")
    return int(worst > STOP_BAR_S)


if __name__ == "__main__":
    raise SystemExit(main())
