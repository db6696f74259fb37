"""What does a call path cost, and what do other ways to take a user's stack cost?

    .venv/bin/python -m bench.overhead.unwinding [--rounds 3]

It makes the second table of docs/measured/call-paths.md. A program calls one function under 10, 30 and 60 frames of
about 100 bytes each, and reports what a call takes. The price of a path is what a call takes with the path, less what
it takes with the same probe and no path. specmine walks the program as distributions build it. bpf_get_stackid,
bpftrace's ustack and perf's frame pointers need it built with frame pointers. perf's --call-graph dwarf copies 8 kB of
stack to be unwound later. Where a tool is missing its column is empty. Needs root and gcc.
"""

from __future__ import annotations

import argparse
import os
import select
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from specmine.model.batch import Unwatch, Watch
from specmine.model.observation import Kind
from specmine.probes.process.selection import Selection
from specmine.probes.settings import SourceSettings
from specmine.probes.source import BpfSource
from tests.support.stackdump import BPF, attached, compiled_programs, kernel

HERE = Path(__file__).resolve().parent
FRAMES = (10, 30, 60)
BUILDS = {"stock": ["-fomit-frame-pointer"], "frames": ["-fno-omit-frame-pointer"]}
LINES = 6
"""Tenths of a second in which one price is measured."""


class Target:
    """The program, running."""

    def __init__(self, path: Path, frames: int) -> None:
        """Start it."""
        self.path = path
        self.process = subprocess.Popen([path, str(frames)], stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        os.set_blocking(self.process.stdout.fileno(), False)

    def call_ns(self, meanwhile: Callable[[], object] = lambda: None) -> float:
        """Return what a call takes now: the median of the next lines, the first left out."""
        assert self.process.stdout is not None
        self.process.stdout.read()
        text = b""
        while text.count(b"\n") < LINES + 1:
            select.select([self.process.stdout], [], [], 0.02)
            text += self.process.stdout.read() or b""
            meanwhile()
        return statistics.median(float(word) for word in text.split(b"\n")[1:LINES])

    def close(self) -> None:
        """End it."""
        self.process.kill()
        self.process.communicate()


def main() -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description="Prices of call paths.")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("bench.overhead.unwinding: needs root", file=sys.stderr)
        return 4
    with tempfile.TemporaryDirectory(prefix="specmine-prices-") as name, ExitStack() as stack:
        folder = Path(name)
        for build, flags in BUILDS.items():
            source = HERE.parent / "targets" / "deep.c"
            subprocess.run(
                ["gcc", "-O2", "-fno-optimize-sibling-calls", *flags, "-o", folder / build, source], check=True
            )
        print("| frames | " + " | ".join(WAYS) + " |\n| --- |" + " --- |" * len(WAYS))
        for frames in FRAMES:
            targets = {}
            for build in BUILDS:
                targets[build] = Target(folder / build, frames)
                stack.callback(targets[build].close)
            prices: dict[str, list[float]] = {way: [] for way in WAYS}
            for _ in range(options.rounds):
                for way, (build, measure) in WAYS.items():
                    price = measure(targets[build], folder)
                    if price is not None:
                        prices[way].append(price)
            cells = [f"{statistics.median(each):,.0f}" if each else "-" for each in prices.values()]
            print(f"| {frames} | " + " | ".join(cells) + " |", flush=True)
            for target in targets.values():
                target.process.kill()
    return 0


def specmine(target: Target, folder: Path) -> float | None:
    """Timed calls with and without their path."""
    settings = SourceSettings(watch=("leaf",), cache=str(folder / "cache"))
    source = BpfSource([Selection(pid=target.process.pid)], settings)
    try:
        source.start()

        def poll() -> list[str]:
            return [f.key for f in source.poll(time.monotonic_ns()).functions]

        found: list[str] = []
        while not found:
            found = poll()
            time.sleep(0.02)
        taken = {}
        for kind in (Kind.TIME, Kind.PATH):
            source.apply(Watch(function=found[0], kind=kind, window_calls=10**9))
            for _ in range(20):
                poll()
                time.sleep(0.02)
            taken[kind] = target.call_ns(poll)
            source.apply(Unwatch(function=found[0]))
        walks = source.poll(time.monotonic_ns()).unwinding
        if walks["complete"] < 0.99 * sum(walks.values()):
            raise SystemExit(f"paths are not complete: {walks}")
        return taken[Kind.PATH] - taken[Kind.TIME]
    finally:
        source.close()


def stack_id(target: Target, folder: Path) -> float | None:
    """Count hits by bpf_get_stackid, less a program that only counts."""
    compiled = compiled_programs(
        [str(BPF / "prelude.h"), str(HERE.parent / "targets" / "stack_id.bpf.c")], ["-Wno-everything"]
    )
    maps = [kernel.make_map(spec, {})[0] for spec in compiled["maps"]]
    symbols = subprocess.run(["nm", target.path], check=True, capture_output=True, text=True).stdout
    offset = next(int(line.split()[0], 16) for line in symbols.splitlines() if line.endswith(" T leaf"))
    taken = []
    with target.path.open("rb") as file:
        for name in ("with_stack", "without_stack"):
            program = kernel.load_program(name, compiled["programs"][name], maps, kernel.KPROBE, kernel.UPROBE_MULTI)
            link = attached(program, file.fileno(), [offset], target.process.pid)
            taken.append(target.call_ns())
            os.close(link)
            os.close(program)
    for each in maps:
        os.close(each)
    return taken[0] - taken[1]


def bpftrace(target: Target, folder: Path) -> float | None:
    """Count hits by ustack, less counting alone."""
    if shutil.which("bpftrace") is None:
        return None
    taken = []
    for key in ("ustack", "1"):
        text = f"uprobe:{target.path}:leaf {{ @[{key}] = count(); }}"
        with running(["bpftrace", "-p", str(target.process.pid), "-e", text]) as ready:
            if not ready(target):
                return None
            taken.append(target.call_ns())
    return taken[0] - taken[1]


def perf(*graph: str) -> Callable[[Target, Path], float | None]:
    """Return a way that records each hit with perf, less recording without a stack."""

    def measure(target: Target, folder: Path) -> float | None:
        if shutil.which("perf") is None:
            return None
        name = f"specmine_{target.path.name}"
        group = ["perf", "probe", "-q"]
        subprocess.run([*group, "-d", f"{name}:*"], check=False, capture_output=True)
        made = subprocess.run(
            [*group, "-x", target.path, "--add", f"{name}:leaf=leaf"], check=False, capture_output=True
        )
        if made.returncode:
            return None
        taken = []
        try:
            for more in (graph, ()):
                record = ["perf", "record", "-q", "-e", f"{name}:leaf", *more, "-p", str(target.process.pid)]
                with running([*record, "-m", "1024", "-o", str(folder / "perf.data")]) as ready:
                    if not ready(target):
                        return None
                    taken.append(target.call_ns())
        finally:
            subprocess.run([*group, "-d", f"{name}:*"], check=False, capture_output=True)
            (folder / "perf.data").unlink(missing_ok=True)
        return taken[0] - taken[1]

    return measure


@contextmanager
def running(command: list[str]) -> Iterator[Callable[[Target], bool]]:
    """Run another tool; yield a function that waits until its probe is on."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def ready(target: Target) -> bool:
        end = time.monotonic() + 20
        while target.call_ns() < 200:
            if process.poll() is not None or time.monotonic() > end:
                return False
        return True

    try:
        yield ready
    finally:
        process.send_signal(2)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


WAYS: dict[str, tuple[str, Callable[[Target, Path], float | None]]] = {
    "specmine, stock build": ("stock", specmine),
    "specmine, with frame pointers": ("frames", specmine),
    "bpf_get_stackid": ("frames", stack_id),
    "bpftrace ustack": ("frames", bpftrace),
    "perf, frame pointers": ("frames", perf("--call-graph", "fp")),
    "perf, dwarf": ("stock", perf("--call-graph", "dwarf,8192")),
}


if __name__ == "__main__":
    raise SystemExit(main())
