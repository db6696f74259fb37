"""Are preempted calls labelled as such, and is time on CPU independent of the neighbours' load?

    .venv/bin/python -m bench.truth.off_cpu [slice] [rivals] [load] [price] [--beside 1] [--seconds 40]

slice: `specmine experiment run timeslice` derives the host's timeslice, for all that follows.
rivals: a function that needs 1 ms of CPU is mined with 0, 1 and 2 tasks that always want its CPU.
load: it is mined once, while such tasks come; its assertions on durations and on time on CPU are compared with that.
price: what the split costs a timed call, by the kernel's own statistics of its programs, with and without it in turn;
and what it costs two unwatched programs that hand a byte to each other on one CPU.
Needs root, gcc and two CPUs.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bench.lib.child_processes import in_order, started
from bench.lib.driver import Driver
from specmine.daemon.foreground import MineOptions, mine
from specmine.model.observation import Kind
from specmine.probes.kernel.maps import bpf
from specmine.probes.process.selection import Selection
from specmine.probes.settings import SourceSettings
from specmine.probes.source import BpfSource

TARGETS = Path(__file__).resolve().parents[1] / "targets"
SPECMINE = Path(sys.executable).parent / "specmine"
SPIN = ("sh", "-c", "while :; do :; done")
DEMAND_S = 1e-3
WITHIN = 0.04
"""Of all calls, the share in the preempted class may differ by so much from time on CPU over slice."""
ROUNDS = 5
ENABLE_STATS = 32
"""Command of bpf(): run times of programs are counted while its descriptor is open."""


def main() -> int:
    """Measure; 0 if preempted calls are labelled so and time on CPU holds."""
    parser = argparse.ArgumentParser(description="Are preempted calls labelled as such?")
    parser.add_argument("parts", nargs="*", default=["slice", "rivals", "load", "price"])
    parser.add_argument(
        "--beside", action="append", type=int, choices=(0, 1, 2), help="only with so many competing tasks"
    )
    parser.add_argument("--seconds", type=float, default=40.0, help="length of each mining")
    parser.add_argument("--slice-tries", type=int, default=8, help="how often the slice is tried on a busy host")
    options = parser.parse_args()
    cpus = sorted(os.sched_getaffinity(0))
    if os.geteuid() != 0 or len(cpus) < 2:
        print("bench.truth.off_cpu: needs root and two CPUs", file=sys.stderr)
        return 4
    in_order()
    with tempfile.TemporaryDirectory(prefix="specmine-bench-") as folder:
        os.environ.setdefault("STATE_DIRECTORY", folder)  # where experiments are noted and mining looks for them
        program = built(Path(folder), "demand")
        good = True
        if "slice" in options.parts:
            good &= derived_slice(options.slice_tries)
        if "rivals" in options.parts:
            good &= all([beside(program, number, cpus[-1], options.seconds) for number in options.beside or (0, 1, 2)])
        if "load" in options.parts:
            good &= under_changing_load(program, cpus[-1], options.seconds)
        if "price" in options.parts:
            price_of_a_call(program, cpus[-1])
            price_of_others(built(Path(folder), "handover"), program, cpus)
    return 0 if good else 1


def built(folder: Path, name: str) -> Path:
    """Compile a target."""
    subprocess.run(["cc", "-O2", "-o", folder / name, TARGETS / f"{name}.c"], check=True)
    return folder / name


@contextmanager
def pinned(cpu: int, *command: object) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command on one CPU, in the bench's own session: all are equals of the scheduler."""
    child = started(("taskset", "-c", cpu, *command))
    try:
        yield child
    finally:
        child.kill()
        child.wait()


def derived_slice(tries: int) -> bool:
    """Derive the timeslice; False if the host was never quiet enough."""
    for _ in range(tries):
        done = subprocess.run(
            [SPECMINE, "experiment", "run", "timeslice", "--format", "json"],
            capture_output=True,
            text=True,
            check=False,
        )
        found = json.loads(done.stdout)
        found = found.get("results", [found])[0]
        if found["valid"]:
            low, high = found["interval"]
            print(f"timeslice {found['value'] * 1e3:.3f} ms [{low * 1e3:.3f}, {high * 1e3:.3f}]", flush=True)
            return True
        print(f"timeslice: {found['reason']['text']}", flush=True)
        time.sleep(2)
    return False


def mined(pid: int, seconds: float, watch: Callable[[dict[str, Any]], None] | None = None) -> dict[str, Any]:
    """Mine the one function of a process; return its entry."""

    def progress(document: Callable[[], dict[str, Any]]) -> bool:
        if watch is not None:
            watch(document())
        return True

    options = MineOptions(pid=pid, duration_s=seconds, functions=("demand",))
    functions = mine(options, progress).document["functions"]
    if not functions:
        raise SystemExit("bench.truth.off_cpu: the function was not found")
    found: dict[str, Any] = functions[0]
    return found


def beside(program: Path, competitors: int, cpu: int, seconds: float) -> bool:
    """Mine next to so many competing tasks and print the statement; True if it agrees with theory."""
    with ExitStack() as stack:
        child = stack.enter_context(pinned(cpu, program, round(DEMAND_S * 1e6)))
        for _ in range(competitors):
            stack.enter_context(pinned(cpu, *SPIN))
        time.sleep(0.5)
        entry = mined(child.pid, seconds)
    split, on_cpu = entry.get("time") or {}, entry.get("on_cpu")
    print(
        f"{competitors} competing tasks: {entry['state']}, {entry['timed']} calls timed, of their time {shares(split)}"
    )
    for each in entry["classes"]:
        excess = f"+{each['excess_seconds'] * 1e3:.2f} ms, " if each.get("excess_seconds") else ""
        waited = each.get("waited_interval_seconds")
        waits = f", waited {waited[0] * 1e3:.2f} to {waited[1] * 1e3:.2f} ms" if waited else ""
        print(f"    {each['share']:.1%} {excess}{shares(each)}: {each.get('label') or '-'}{waits}")
    print(f"    reason: {(entry['reason'] or {}).get('code')}; {explanation(split)}")
    print(f"    time on CPU: {stated(on_cpu)}", flush=True)
    slice_s = split.get("slice_seconds")
    causes = {"slices"} if slice_s else {"preempted"}
    preempted = [each for each in entry["classes"] if each.get("cause") in causes]
    named = all(each.get("slices") == competitors for each in preempted) if slice_s else False
    share = sum(each["share"] for each in preempted)
    # the host's CPU has more than one speed: what calls needed is what counts
    needed_s = on_cpu["mean_seconds"] if on_cpu else DEMAND_S
    expected = needed_s / (slice_s or 0.004) if competitors else 0.0
    print(f"    preempted {share:.1%}, expected {expected:.1%} of calls of {needed_s * 1e3:.3f} ms", flush=True)
    # what was waited must not be left in time on CPU, whatever speeds the host gives it
    clean = on_cpu is None or on_cpu["p99_seconds"] < DEMAND_S + 0.5 * (slice_s or 0.004)
    holds = on_cpu is None or on_cpu["verdict"] != "violated"
    return abs(share - expected) <= WITHIN and clean and holds and (named or not competitors)


def shares(entry: dict[str, Any]) -> str:
    """Return running, waiting and blocked."""
    if not isinstance(entry.get("running"), float):
        return "not split"
    return f"{entry['running']:.1%} running, {entry['waiting']:.1%} waiting, {entry['blocked']:.1%} blocked"


def explanation(split: dict[str, Any]) -> str:
    """Return what explains the classes."""
    if not isinstance(split.get("explains"), float):
        return "one class"
    return (
        f"waiting and blocking explain {split['explains']:.1%} of the classes, call paths {split['paths_explain']:.1%}"
    )


def stated(on_cpu: dict[str, Any] | None) -> str:
    """Return what is asserted of time on CPU."""
    if on_cpu is None:
        return "is duration"
    return (
        f"{len(on_cpu['classes'])} class, median {on_cpu['median_seconds'] * 1e3:.3f} ms, "
        f"p99 {on_cpu['p99_seconds'] * 1e3:.3f} ms, {on_cpu['verdict']}"
    )


def under_changing_load(program: Path, cpu: int, seconds: float) -> bool:
    """Mine once: first alone, then next to one and two competing tasks; True if time on CPU holds throughout."""
    began, phases = time.monotonic(), (0.0, seconds, 1.5 * seconds)
    verdicts_of: list[dict[str, set[str]]] = [{"durations": set(), "time on CPU": set()} for _ in phases]
    running: list[int] = []
    with ExitStack() as stack:
        child = stack.enter_context(pinned(cpu, program, round(DEMAND_S * 1e6)))

        def watch(document: dict[str, Any]) -> None:
            passed = time.monotonic() - began
            if passed >= phases[min(len(running) + 1, 2)] and len(running) < 2:
                stack.enter_context(pinned(cpu, *SPIN))
                running.append(1)
            for entry in document["functions"]:
                verdicts_of[len(running)]["durations"].add(entry["verdict"])
                verdicts_of[len(running)]["time on CPU"].add((entry.get("on_cpu") or {}).get("verdict", "unknown"))

        mined(child.pid, 2 * seconds, watch)
    for number, each in enumerate(verdicts_of):
        for what, verdicts in each.items():
            listed = ", ".join(sorted(verdicts)) or "none"
            print(f"{number} competing tasks, verdicts on {what} while they were there: {listed}")
    return (
        not any("violated" in each["time on CPU"] for each in verdicts_of) and "holds" in verdicts_of[2]["time on CPU"]
    )


def price_of_a_call(program: Path, cpu: int) -> None:
    """Time the kernel's programs at the calls of a function, with and without noting what calls wait for, in turn."""
    found: dict[bool, list[float]] = {True: [], False: []}
    statistics_on = bpf(ENABLE_STATS, struct.pack("<I", 0))
    try:
        for number in range(ROUNDS):
            for waiting in (True, False) if number % 2 else (False, True):
                found[waiting].append(kernel_time_ns(program, cpu, waiting))
    finally:
        os.close(statistics_on)
    for name, of in (("least", min), ("median", statistics.median)):
        off, on = of(found[False]), of(found[True])
        print(f"kernel time of a timed call, {name} of {ROUNDS}: {off:.0f} ns without, {on:.0f} ns with", flush=True)


def kernel_time_ns(program: Path, cpu: int, waiting: bool) -> float:
    """Return what the programs at entry and return take together, ns a call."""
    cache = os.environ["STATE_DIRECTORY"]
    settings = SourceSettings(waiting=waiting, sampling=False, watch=("demand",), links=("session",), cache=cache)
    with pinned(cpu, program, 20) as child, opened(BpfSource([Selection(pid=child.pid)], settings)) as driver:
        driver.watch("demand", Kind.TIME, window_calls=10_000)
        loaded = driver.source.parts.loaded
        before = run_times(loaded.programs["call_time_session"])
        driver.poll(lambda: len(driver.observations) >= 3)
        after = run_times(loaded.programs["call_time_session"])
    return 2 * (after[0] - before[0]) / (after[1] - before[1])


@contextmanager
def opened(source: BpfSource) -> Iterator[Driver]:
    """Start a source, and take all off at the end."""
    try:
        source.start()
        yield Driver(source)
    finally:
        source.close()


def run_times(program: int) -> tuple[int, int]:
    """Return how long a loaded program ran in all, ns, and how often."""
    words = Path(f"/proc/self/fdinfo/{program}").read_text().split()
    split = dict(zip(words[::2], words[1::2], strict=False))
    return int(split["run_time_ns:"]), int(split["run_cnt:"])


def price_of_others(handover: Path, program: Path, cpus: Sequence[int]) -> None:
    """Let two programs that nobody chose switch on one CPU, while another is mined and while none is, in turn."""
    ratios = []
    for number in range(ROUNDS):
        times = {}
        for watched in (True, False) if number % 2 else (False, True):
            with pinned(cpus[-1], program, 1000) as child, ExitStack() as stack:
                if watched:
                    settings = SourceSettings(watch=("demand",), sampling=False, cache=os.environ["STATE_DIRECTORY"])
                    driver = stack.enter_context(opened(BpfSource([Selection(pid=child.pid)], settings)))
                    driver.watch("demand", Kind.TIME)
                done = subprocess.run(
                    ["taskset", "-c", str(cpus[0]), handover, "100000"], capture_output=True, text=True, check=True
                )
                times[watched] = float(done.stdout)
        ratios.append(times[True] / times[False])
    print(
        f"CPU time of a switch of others, while a program is mined over while none is: {statistics.median(ratios):.3f} "
        f"({min(ratios):.3f} to {max(ratios):.3f})",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
