"""What does one call cost under specmine's probes, and under bpftrace's and funclatency's?

    .venv/bin/python -m bench.overhead.calls [--rounds 15] [--calls 20000]

One program holds the same empty function once for each tool. Each tool is attached to its own copy and stays on. Loops
over the copies take turns in random order. The price is the least CPU time of a call over all rounds, less that of the
copy without a probe. Two copies of the program's file run. In one specmine replaces return addresses (sessions); the
other maps libgcc_s, so it uses return sites. Needs root, gcc, bpftrace and bpfcc-tools.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from bench.lib.driver import TARGETS, Driver, Spoken, built, driven, table
from bench.lib.peers import BY_STACK, COUNT, HISTOGRAM, attached, bpftrace, funclatency, places_in, symbols
from specmine.model.observation import Kind

FRAMES = 20
SAMPLED = 1 / 64
OURS = {
    "counted": Kind.COUNT,
    "timed": Kind.TIME,
    "badly_begun": Kind.TIME,
    "paths": Kind.PATH,
    "sampled": Kind.TIME,
}
THEIRS = {
    "bpftrace_count": COUNT,
    "bpftrace_hist": HISTOGRAM,
    "bpftrace_ustack": BY_STACK,
}
BARS = (
    ("timed, sessions", "bpftrace_hist", 0.72),
    ("timed, sites", "bpftrace_hist", 0.72),
    ("timed, sessions", "funclatency", 0.80),
    ("timed, sites", "funclatency", 0.80),
    ("paths, sessions", "bpftrace_ustack", 0.66),
    ("paths, sites", "bpftrace_ustack", 0.62),
    ("badly_begun, sessions", "timed, sessions", 1.10),
    ("badly_begun, sites", "timed, sites", 1.10),
)
SAMPLED_BAR_NS = 750.0


def main() -> int:
    """Measure; 0 if every bar is kept."""
    parser = argparse.ArgumentParser(description="What one call costs under probes.")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", type=int, default=20_000, help="in each loop")
    options = parser.parse_args()
    missing = [tool for tool in ("gcc", "bpftrace", "unshare") if not shutil.which(tool)]
    if os.geteuid() != 0 or missing:
        print(f"bench.overhead.calls: needs root{''.join(f' and {tool}' for tool in missing)}", file=sys.stderr)
        return 4
    with tempfile.TemporaryDirectory(prefix="specmine-bench-") as folder, ExitStack() as stack:
        return measure(Path(folder), stack, options.rounds, options.calls)


def measure(folder: Path, stack: ExitStack, rounds: int, calls: int) -> int:
    """Put everything on, run the rounds, print."""
    program = built(folder, TARGETS / "prices.c")
    targets: dict[str, Spoken] = {}
    drivers: dict[str, Driver] = {}
    for way, preload in (("sessions", ""), ("sites", "libgcc_s.so.1")):
        copy = folder / f"prices-{way}"
        shutil.copy(program, copy)
        targets[way] = Spoken(copy, str(FRAMES), preload=preload)
        stack.callback(targets[way].end)
        drivers[way] = stack.enter_context(driven(targets[way].pid, OURS, folder))
    loops = [(f"alone, {way}", way, "alone") for way in targets]
    for way, driver in drivers.items():
        loops += [(f"{name}, {way}", way, name) for name in put_on(driver, targets[way], way)]
    plain, path = targets["sessions"], folder / "prices-sessions"
    offsets = symbols(path)
    for name, text in THEIRS.items():
        place = places_in(plain.pid, path, [offsets[name]])
        stack.enter_context(attached(bpftrace(plain.pid, text.format(at=f"{path}:{name}")), plain.pid, place))
        loops.append((name, "sessions", name))
    place = places_in(plain.pid, path, [offsets["funclatency"]])
    stack.enter_context(attached(funclatency(plain.pid, f"{path}:funclatency"), plain.pid, place))
    loops.append(("funclatency", "sessions", "funclatency"))

    least: dict[str, float] = {}
    chance = random.Random(1)
    for _ in range(rounds):
        for name, way, loop in chance.sample(loops, len(loops)):
            took = run(targets[way], loop, calls)
            least[name] = min(took, least.get(name, took))
        for driver in drivers.values():
            driver.poll()
    for way, driver in drivers.items():
        check_yield(driver, [name for _, of, name in loops if of == way and name in OURS], rounds * calls)
    price = {name: took - least[f"alone, {way}"] for name, way, _ in loops for took in (least[name],)}
    return report(price, rounds)


def put_on(driver: Driver, target: Spoken, way: str) -> list[str]:
    """Watch each function in its way until its calls are taken in full; return which could be."""
    names = []
    for name, kind in OURS.items():
        if name == "sampled" and way != "sessions":
            continue  # a return site traps for every call
        driver.watch(name, kind)
        if kind is not Kind.COUNT and driver.way(name) != {"sessions": "session"}.get(way, way):
            raise SystemExit(f"{name} is timed by {driver.way(name)}, not by {way}")
        if name == "sampled" and not driver.time_some(name, SAMPLED):
            continue

        def whole(name: str = name, kind: Kind = kind) -> bool:
            before = driver.counted(name, "calls"), driver.counted(name, "timed")
            run(target, name, 2000)
            calls, timed = driver.counted(name, "calls") - before[0], driver.counted(name, "timed") - before[1]
            return calls == 2000 and (
                kind is Kind.COUNT or 0 < timed < 2000 if name == "sampled" else timed in (calls, 0)
            )

        driver.poll(whole)
        if kind is not Kind.COUNT and name != "sampled":
            driver.poll(partial(timed_now, driver, target, name))
        names.append(name)
    return names


def timed_now(driver: Driver, target: Spoken, name: str) -> bool:
    """Tell whether all calls of a function are timed by now: its return site has been learnt."""
    before = driver.counted(name, "timed")
    run(target, name, 100)
    return driver.counted(name, "timed") - before == 100


def run(target: Spoken, loop: str, calls: int) -> float:
    """Run one loop and return the CPU time of a call, ns."""
    target.say(f"{loop} {calls}")
    return int(target.hear()) / calls


def check_yield(driver: Driver, names: list[str], calls: int) -> None:
    """End the bench if calls were not counted or not timed, or paths not complete and as deep as planned."""
    driver.poll(lambda: any(o.kind is Kind.PATH and o.paths for o in driver.observations))
    paths = [p for o in driver.observations if o.kind is Kind.PATH for p in o.paths]
    if any(not p.path.complete or len(p.path.frames) != FRAMES for p in paths):
        raise SystemExit(f"a path is not whole: {[(len(p.path.frames), p.path.complete) for p in paths]}")
    for name in names:
        timed = 0 if OURS[name] is Kind.COUNT else calls * SAMPLED / 2 if name == "sampled" else calls
        if driver.counted(name, "calls") < calls or driver.counted(name, "timed") < timed:
            raise SystemExit(f"not all calls of {name} were taken: its probes were off for a while")


def report(price: dict[str, float], rounds: int) -> int:
    """Print prices and ratios; return how many bars are broken."""
    print(f"\nPrice of a call, ns: least of {rounds} interleaved rounds; call paths have {FRAMES} frames")
    ours = [
        (
            name,
            f"{price[f'{name}, sessions']:.0f}" if f"{name}, sessions" in price else "",
            f"{price[f'{name}, sites']:.0f}" if f"{name}, sites" in price else "",
        )
        for name in OURS
    ]
    table(["specmine", "sessions", "return sites"], ours)
    table(["peer", "ns"], [(name, f"{price[name]:.0f}") for name in (*THEIRS, "funclatency")])
    broken, rows = 0, []
    for ours_, theirs, bar in BARS:
        ratio = price[ours_] / price[theirs]
        broken += ratio > bar
        rows.append((ours_, theirs, f"{ratio:.3f}", f"{bar:.2f}", "kept" if ratio <= bar else "**over**"))
    if "sampled, sessions" in price:
        kept = price["sampled, sessions"] <= SAMPLED_BAR_NS
        broken += not kept
        rows.append(
            (
                f"sampled {SAMPLED:.3g}, sessions",
                "ns",
                f"{price['sampled, sessions']:.0f}",
                f"{SAMPLED_BAR_NS:.0f}",
                "kept" if kept else "**over**",
            )
        )
    table(["specmine", "other", "ratio", "bar", ""], rows)
    return min(broken, 1)


if __name__ == "__main__":
    raise SystemExit(main())
