"""Are call paths of Debian's programs complete, and are they true?

    .venv/bin/python -m bench.truth.call_paths [PROGRAM ...] [--seconds 6] [--stacks 1000]

It makes tables of docs/measured/call-paths.md. Each program runs under load. First its hottest functions are timed
with call paths, as ``specmine mine`` does it. The share of timed calls whose path reaches the thread's start is
counted. Then stacks are dumped with their registers, at entries of those functions and at CPU samples, and unwound
again with elfutils' libdw: every return address must be the same. Needs root, the programs' packages
(bench/lib/debian_programs.py) and libdw-dev.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

from bench.lib.debian_programs import PROGRAMS, running
from specmine.model.batch import Batch, Sampling, Unwatch, Watch
from specmine.model.function import Function
from specmine.model.observation import Kind
from specmine.probes.elf.facts import Grade
from specmine.probes.process.selection import Selection
from specmine.probes.settings import SourceSettings
from specmine.probes.source import BpfSource
from tests.support.stackdump import Dumper, Tally

FUNCTIONS = 16
HERTZ = 199
MAX_PIDS = 8
POLL_S = 0.02


def main() -> int:
    """Measure all programs, or those named; 0 if every path is true and 99 % are complete."""
    parser = argparse.ArgumentParser(description="Complete and true call paths on Debian's programs.")
    parser.add_argument("programs", nargs="*", choices=[[], *PROGRAMS], metavar="PROGRAM")
    parser.add_argument("--seconds", type=float, default=6, help="length of each phase")
    parser.add_argument("--stacks", type=int, default=1000, help="stacks to compare, at least")
    parser.add_argument("--verbose", action="store_true", help="show incomplete paths and differences")
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("bench.truth.call_paths: needs root", file=sys.stderr)
        return 4
    print(
        "| program | functions | timed calls | reach the start | other walks | compared | equal | paths | frames "
        "| tables |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    good = True
    for name in options.programs or PROGRAMS:
        with tempfile.TemporaryDirectory(prefix="specmine-paths-") as folder, running(name, Path(folder)) as pid:
            good &= measured(name, pid, options.seconds, options.stacks, verbose=options.verbose)
    return 0 if good else 1


class Run:
    """A source over one program, polled."""

    def __init__(self, pid: int) -> None:
        """Start it."""
        self.source = BpfSource([Selection(pid=pid)], SourceSettings())
        self.source.start()
        self.functions: dict[str, Function] = {}
        self.samples: Counter[str] = Counter()
        self.inner: Counter[str] = Counter()
        self.timed: Counter[str] = Counter()
        self.whole: Counter[str] = Counter()
        self.broken: Counter[tuple[str, ...]] = Counter()
        self.refused: dict[str, str] = {}
        self.last: Batch

    def poll(self, seconds: float, also: Callable[[], bool] = lambda: False) -> None:
        """Poll for so long, or until ``also`` is true."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and not also():
            batch = self.last = self.source.poll(time.monotonic_ns())
            self.functions |= {f.key: f for f in batch.functions}
            for found in batch.hot_samples:
                self.samples[found.function] += found.samples
                self.inner[found.function] += round(found.on_cpu_ns + found.off_cpu_ns)
            self.refused |= {refusal.function: refusal.reason.text for refusal in batch.refusals}
            for seen in batch.observations:
                for each in seen.paths:
                    calls = each.histogram.total
                    self.timed[seen.function] += calls
                    if each.path.complete:
                        self.whole[seen.function] += calls
                    else:
                        self.broken[tuple(frame.name for frame in each.path.frames)] += calls
            time.sleep(POLL_S)

    def describe(self, tgid: int, address: int) -> str:
        """Return an address as module and offset."""
        member = self.source.parts.programs.members.get(tgid)
        place = self.source.parts.modules.find(member.layout, address) if member else None
        return f"{place[0].name}+0x{place[1]:x}" if place else hex(address)


def measured(name: str, pid: int, seconds: float, stacks: int, *, verbose: bool) -> bool:
    """Measure one program and print its row."""
    run = Run(pid)
    try:
        run.source.apply(Sampling(hertz=HERTZ))
        run.poll(max(4.0, seconds / 2))
        # functions that others call, then those that call; main and the like never return
        ranked = [*run.inner.most_common(2 * FUNCTIONS), *run.samples.most_common(4 * FUNCTIONS)]
        chosen = [key for key, _ in dict(ranked).items() if key in run.functions]
        walks = Counter(run.last.unwinding)
        timed_by_path(run, chosen, seconds)
        walks = Counter(run.last.unwinding) - walks
        run.source.apply(Sampling(hertz=0))
        tally = compared(run, [key for key in chosen if run.timed[key]], seconds, stacks)
        rows = run.source.parts.modules.row_bytes
    finally:
        run.source.close()
    timed, whole = sum(run.timed.values()), sum(run.whole.values())
    why = ", ".join(f"{count} {what}" for what, count in walks.items() if what not in ("complete", "joined"))
    share = whole / timed if timed else 0.0
    print(
        f"| {name} | {len(run.timed)} | {timed:,} | {share:.3%} | {why or '-'} | {tally.compared:,} | {tally.equal:,} "
        f"| {len(tally.paths):,} | {tally.frames / max(1, tally.compared):.1f} | {rows / 2**20:.1f} MB |",
        flush=True,
    )
    if verbose:
        print("walks:", dict(walks), "dumps:", dict(tally.outcomes), "libdw:", dict(tally.oracle), tally.unusable)
        for key, text in run.refused.items():
            print("refused:", run.functions[key].name if key in run.functions else key, text)
        for path, count in run.broken.most_common(10):
            print("incomplete:", count, " <- ".join(reversed(path)))
        for each in (*tally.incomplete, *tally.different):
            print("dump:", each)
    return share >= 0.99 and tally.equal == tally.compared >= stacks


def timed_by_path(run: Run, chosen: list[str], seconds: float) -> None:
    """Time functions with call paths: the hottest first, those that are never called make room."""
    waiting, begun = list(chosen), dict[str, float]()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        while len(begun) < FUNCTIONS and waiting:
            key = waiting.pop(0)
            begun[key] = time.monotonic()
            run.source.apply(
                Watch(function=key, kind=Kind.PATH, window_ns=500_000_000, minimum_calls=1, limit_ns=500_000_000)
            )
        run.poll(0.5)
        for key, when in list(begun.items()):
            idle = not run.timed[key] and time.monotonic() - when > 1.5
            if waiting and (idle or key in run.refused):
                run.source.apply(Unwatch(function=key))
                del begun[key]
    for key in begun:
        run.source.apply(Unwatch(function=key))
    run.poll(0.5)


def compared(run: Run, chosen: list[str], seconds: float, stacks: int) -> Tally:
    """Dump stacks and unwind them again."""
    loaded, tally = run.source.parts.loaded, Tally()
    sites = defaultdict(list)
    for key in chosen:
        module = run.source.parts.symbolizer.module_of[key]
        (site,) = run.source.parts.reader.sites(module.fd, [run.functions[key].offset], kernel_emulates_nops=False)
        if site.grade is not Grade.REFUSED:
            sites[module].append(site.offset)
    dumper = Dumper(loaded)
    try:
        for pid in sorted(run.source.parts.programs.members)[-MAX_PIDS:]:
            for module, offsets in sites.items():
                dumper.probe(module.fd, sorted(set(offsets)), pid)
        dumper.sample(997)

        def enough() -> bool:
            dumper.compare(tally, run.describe)
            return False

        run.poll(seconds, enough)
        if tally.compared < stacks:
            run.poll(4 * seconds, lambda: enough() or tally.compared >= stacks)
        dumper.detach()
    finally:
        dumper.close()
    return tally


if __name__ == "__main__":
    raise SystemExit(main())
