"""What does a minute give and cost: specmine, bpftrace, funclatency, perf, uftrace?

    .venv/bin/python -m bench.overhead.peers [PROGRAM...] [--seconds 60] [--on 3] [--off 1.5] [--rounds 3] [--pairs 8]
        [--keep FILE]

Stock servers run under a load that fills one CPU (bench/lib/server_load.py). specmine is given one: ``specmine mine
--pid PID --duration 60``. bpftrace and funclatency time eight functions by name: the hottest that perf sees and the
program exports. perf samples with -F 99 -g. These three run ``--rounds`` times for ``--on`` seconds, with pauses of
``--off`` seconds between. uftrace is asked to attach, and then starts the program itself. A function has a duration
from 100 timed calls on. The first number of perf comes after a record of 1 s, that of uftrace after its whole record.
Memory is the most that all processes of a tool had, shared pages counted once.

The loss of the program is CPU time per request with the tool over that without, in phases that follow each other. For
specmine these are ``--pairs`` of a second run, whose probes go off and on as in bench/overhead/servers.py. The time
under uftrace is compared with phases shortly before. Needs root, gcc and the packages redis-server, nginx, postgresql,
bpftrace, bpfcc-tools, linux-perf and uftrace.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from bench.lib.bytecode import compiled
from bench.lib.child_processes import in_order
from bench.lib.driver import table
from bench.lib.losses import Loss, adjusted_loss_of, loss_of
from bench.lib.server_load import PROGRAMS, loaded
from bench.lib.tools.minutes import (
    Result,
    Subject,
    histograms,
    looked,
    perf_minute,
    specmine_minute,
    uftrace_attached,
    uftrace_minute,
)
from bench.overhead import servers

USUAL = ("redis-server", "nginx", "postgres")
LOOK_S, PHASE_S = 3.0, 1.25
BUDGET = 0.01
HEAD = (
    "first number, s",
    "functions with a duration",
    "with p50 and p99",
    "named by hand",
    "CPU a request",
    "95 %",
    "requests a second",
    "own CPU s",
    "in a run of s",
    "own MB",
)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What a minute of each tool gives and costs.")
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=f"of {', '.join(PROGRAMS)}")
    parser.add_argument("--seconds", type=float, default=60.0, help="length of specmine's run")
    parser.add_argument("--on", type=float, default=3.0, help="seconds of a run of the others")
    parser.add_argument("--off", type=float, default=1.5, help="seconds without a tool between runs")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each of the others")
    parser.add_argument("--pairs", type=int, default=8, help="pairs of phases for what specmine costs the program")
    parser.add_argument("--keep", type=Path, help="file to add the results to")
    options = parser.parse_args()
    unknown = set(options.programs) - set(PROGRAMS)
    if unknown:
        parser.error(f"there is no {', '.join(unknown)}")
    if os.geteuid() != 0:
        print("bench.overhead.peers: needs root", file=sys.stderr)
        return 4
    compiled()
    results: list[Result] = []
    for name in options.programs or USUAL:
        for each in measured(name, options):
            results.append(each)
            print(f"{each.program}, {each.tool}: {'; '.join(each.notes)}", file=sys.stderr, flush=True)
            if options.keep:
                with options.keep.open("a") as file:
                    file.write(json.dumps(asdict(each)) + "\n")
    report(results)
    return 0


def measured(name: str, options: argparse.Namespace) -> list[Result]:
    """Let each tool have its time with a program."""
    way = servers.Way(budget=BUDGET, pairs=options.pairs, phase_s=PHASE_S, seed=int(time.time()))
    with tempfile.TemporaryDirectory(prefix="specmine-bench-") as text, loaded(name, Path(text)) as running:
        own = Path(text) / "tools"
        own.mkdir()
        subject = Subject(name, running, own, options.off, options.on, options.rounds)
        specmine = specmine_minute(subject, options.seconds)
        specmine.pairs += servers.mined(name, running, way).pairs
        perf = looked(subject, LOOK_S)
        found = [specmine, histograms(subject, "bpftrace"), histograms(subject, "funclatency")]
        found += [perf_minute(subject, perf), uftrace_attached(subject)]
    with tempfile.TemporaryDirectory(prefix="specmine-bench-") as text:
        Path(text).chmod(0o755)
        uftrace_minute(subject, found[-1], Path(text))
    return found


def report(results: Sequence[Result]) -> None:
    """Print what each tool gave over all programs, and on each."""
    programs = list(dict.fromkeys(each.program for each in results))
    tools = list(dict.fromkeys(each.tool for each in results))
    by_tool = [(tool, [each for each in results if each.tool == tool]) for tool in tools]
    table(("tool", *HEAD), [(tool, *cells(group)) for tool, group in by_tool])
    print(f"The least and the most of {', '.join(programs)}; of the intervals the ends that lie farthest out.")
    table(("program", "tool", *HEAD), [(each.program, each.tool, *cells([each])) for each in results])
    for each in results:
        print(f"{each.program}, {each.tool}: {'; '.join(each.notes)}")
    for tool, group in by_tool:
        pairs = [pair for each in group for pair in each.pairs]
        if adjusted := adjusted_loss_of(pairs):
            for what, loss in (("", loss_of(pairs)), (", less the host's part", adjusted)):
                print(f"{tool}, CPU a request over all{what}: {share(loss.value)} ({ends([loss])}), {loss.pairs} pairs")


def cells(group: Sequence[Result]) -> tuple[str, ...]:
    """Return what a tool gave and took on some programs, as cells of a table."""
    losses = [loss_of(each.pairs) for each in group if each.pairs]
    spent = [one for each in group for one in each.spent]
    return (
        between([each.first_s for each in group if each.first_s is not None], ".1f"),
        between([each.durations for each in group], "d"),
        between([each.levels for each in group], "d"),
        between([each.named for each in group], "d"),
        span(share(of(loss.value for loss in losses)) for of in (min, max)) if losses else "-",
        ends(losses) if losses else "-",
        between([statistics.mean(each.rates) - 1 for each in group if each.rates], "+.0%"),
        between([one.cpu_s for one in spent], ".1f"),
        between([each.seconds for each in group if each.spent], ".0f"),
        between([one.memory_mb for one in spent], ".0f"),
    )


def share(value: float) -> str:
    """Return a loss as text; of one that is the program's own CPU time or more no tenths are known."""
    return f"{value:+.1%}" if value < 1 else f"{value:+,.0%}"


def ends(losses: Sequence[Loss]) -> str:
    """Return the ends of an interval that holds those of all losses."""
    return f"{share(min(loss.low for loss in losses))} .. {share(max(loss.high for loss in losses))}"


def between(values: Sequence[float], form: str) -> str:
    """Return the least and the most of some values; a dash if there is none."""
    return span(format(of(values), form) for of in (min, max)) if values else "-"


def span(texts: Iterable[str]) -> str:
    """Return two texts as a span, one if they are the same."""
    low, high = texts
    return low if low == high else f"{low} to {high}"


if __name__ == "__main__":
    in_order()
    raise SystemExit(main())
