"""The minute of each tool on a loaded server: specmine, bpftrace, funclatency and perf on the one that runs, and
uftrace on one that it starts.

The loss is CPU time per request with the tool over that without, in short phases that follow each other. Half of the
phases with a tool are compared with the phase before it came, half with that after it went, so that what the host does
meanwhile falls out.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.lib.debian_programs import Command
from bench.lib.losses import Pair
from bench.lib.peers import BY_FUNCTION, all_probed, bpftrace, funclatency_all, places_in, symbols
from bench.lib.probe_toggle import SETTLE_S, Meter, cpu_seconds, family
from bench.lib.server_load import PROGRAMS, Program, Running, serving
from bench.lib.tools.costs import memory_of
from bench.lib.tools.output import (
    bpftrace_calls,
    funclatency_calls,
    known,
    perf_samples,
    specmine_known,
    uftrace_calls,
)
from bench.lib.tools.run import Spent, ToolRun, tool_run

NAMED = 8
"""Functions that bpftrace and funclatency are told to time."""
LIMIT_S = 60.0
SHORT_S, UFTRACE_PHASES = 1.0, 4
"""The record that perf's first report is made of, and a phase of uftrace, which writes 100 MB a second."""
FIRST = "half of the calls"
"""What specmine says of the first function whose duration it knows."""
HERTZ = ("-F", "99", "-g")


@dataclass(slots=True, kw_only=True)
class Result:
    """What one tool gave on one program, and took."""

    program: str
    tool: str
    named: int = 0
    """Functions that a person had to name."""
    first_s: float | None = None
    durations: int = 0
    levels: int = 0
    """Functions whose p50 and p99 are stated."""
    pairs: list[Pair] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    """Requests a second with the tool over those without."""
    spent: list[Spent] = field(default_factory=list)
    seconds: float = 0.0
    """Length of one run."""
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Phase:
    """CPU seconds per request, and requests a second."""

    cost: float | None
    rate: float


@dataclass(slots=True)
class Subject:
    """A loaded server, and the functions of it that a person would name."""

    program: str
    running: Running
    folder: Path
    off_s: float
    on_s: float
    rounds: int
    names: list[str] = field(default_factory=list)
    unwatched: list[Phase] = field(default_factory=list)
    """All phases without any tool."""

    @property
    def path(self) -> Path:
        """The program's file."""
        return Path(os.readlink(f"/proc/{self.running.pid}/exe"))

    @property
    def only(self) -> int:
        """What bpftrace and funclatency are told: the process if it is one, else all that map the file."""
        return self.running.pid if len(family(self.running.pid)) == 1 else 0

    def phase(self, seconds: float, run: ToolRun | None = None) -> Phase:
        """Measure the program for a while, some time after a change."""
        wait: Callable[[float], object] = run.follow if run else time.sleep
        wait(SETTLE_S)
        meter, began, done = Meter(self.running.pid, self.running.work), time.monotonic(), self.running.work()
        meter.begin()
        wait(seconds)
        rate = (self.running.work() - done) / (time.monotonic() - began)
        found = Phase(meter.end(), rate)
        if run is None:
            self.unwatched.append(found)
        return found


def specmine_minute(subject: Subject, seconds: float) -> Result:
    """Let ``specmine mine`` have its minute; what it costs the program is measured elsewhere."""
    found = Result(program=subject.program, tool="specmine", seconds=seconds)
    before, spent, output = subject.phase(subject.off_s), Spent(), subject.folder / "specification.json"
    command = [Path(sys.executable).parent / "specmine", "mine", "--pid", subject.running.pid]
    command += ["--duration", f"{seconds:g}", "--format", "json", "--output", output]
    began, done = time.monotonic(), subject.running.work()
    with tool_run(command, subject.folder, spent) as run:
        if run.follow(LIMIT_S + seconds, until=lambda: FIRST in run.errors):
            found.first_s = run.seconds
        run.follow(LIMIT_S + seconds)
        rate = (subject.running.work() - done) / (time.monotonic() - began)
    after = subject.phase(subject.off_s)
    found.rates.append(2 * rate / (before.rate + after.rate))
    found.spent.append(spent)
    document = json.loads(output.read_text())
    found.durations, found.levels = specmine_known(document["functions"])
    found.notes.append(f"it reports a cost of {document['collection']['overhead_ratio']:.2%} for the program")
    return found


def looked(subject: Subject, seconds: float) -> Result:
    """Look with perf which functions are hot, name those that are exported, and time perf's first report."""
    recorded(subject, Spent(), ["-F", "997"], seconds)
    has_name = symbols(subject.path)
    subject.names = [name for name in reported(subject, Spent()) if name in has_name][:NAMED]
    began, found = time.monotonic(), Result(program=subject.program, tool="perf")
    recorded(subject, Spent(), HERTZ, SHORT_S)
    if reported(subject, Spent()):
        found.first_s = time.monotonic() - began
    return found


def recorded(subject: Subject, spent: Spent, how: Sequence[str], seconds: float) -> None:
    """Let perf record the program and all its children."""
    with tool_run(_perf(subject, how, seconds), subject.folder, spent) as run:
        run.follow(LIMIT_S + seconds)


def _perf(subject: Subject, how: Sequence[str], seconds: float) -> list[object]:
    pids = ",".join(map(str, family(subject.running.pid)))
    return ["perf", "record", *how, "-o", subject.folder / "perf.data", "-p", pids, "--", "sleep", f"{seconds:g}"]


def reported(subject: Subject, spent: Spent) -> dict[str, int]:
    """Return the samples of each function that perf reports."""
    command = ["perf", "report", "-i", subject.folder / "perf.data", "--stdio", "--no-children", "-g", "none"]
    with tool_run([*command, "-F", "sample,sym", "-t", "|"], subject.folder, spent) as run:
        run.follow(LIMIT_S)
        return perf_samples(run.output)


def perf_minute(subject: Subject, found: Result) -> Result:
    """Let perf sample the program in several runs."""
    shares: Counter[str] = Counter()

    def command() -> list[object]:
        return _perf(subject, HERTZ, 2 * SETTLE_S + subject.on_s)

    def at_work(run: ToolRun) -> bool:
        return len(family(run.process.pid)) > 1  # it has started what it waits for

    def ended(run: ToolRun, spent: Spent) -> None:
        run.follow(LIMIT_S)
        if error := next((line for line in run.errors.splitlines() if "rror" in line), ""):
            found.notes.append(f"perf says: {error}")
        shares.update(reported(subject, spent))

    in_rounds(subject, found, command, at_work, ended)
    found.notes.append(f"it gives shares of the time for {len(shares)} functions, and no duration")
    return found


def histograms(subject: Subject, tool: str) -> Result:
    """Let bpftrace or funclatency time the functions that were named, in several runs."""
    found = Result(program=subject.program, tool=tool, named=len(subject.names))
    if not subject.names:
        found.notes.append("none of the hot functions has a name that it can be told")
        return found
    calls: Counter[str] = Counter()
    busiest = max(cpu_seconds(family(subject.running.pid)).items(), key=lambda each: each[1])[0]
    offsets = symbols(subject.path)
    places = places_in(busiest, subject.path, [offsets[name] for name in subject.names])
    probes = " ".join(
        BY_FUNCTION.format(at=f"{subject.path}:{name}", number=number) for number, name in enumerate(subject.names)
    )

    def command() -> list[str]:
        if tool == "bpftrace":
            return bpftrace(subject.only, probes)
        return funclatency_all(subject.only, str(subject.path), subject.names)

    def at_work(run: ToolRun) -> bool:
        if not all_probed(busiest, places):
            return False
        found.first_s = min(found.first_s or run.seconds, run.seconds)
        return True

    def ended(run: ToolRun, spent: Spent) -> None:
        calls.update(bpftrace_calls(run.output) if tool == "bpftrace" else funclatency_calls(run.output))

    in_rounds(subject, found, command, at_work, ended)
    found.durations = known(calls)
    found.notes.append(f"it was told to time {', '.join(subject.names)}")
    return found


def in_rounds(
    subject: Subject,
    found: Result,
    command: Callable[[], Sequence[object]],
    at_work: Callable[[ToolRun], bool],
    ended: Callable[[ToolRun, Spent], None],
) -> None:
    """Run a tool several times, and measure the program before, meanwhile and afterwards."""
    off = subject.phase(subject.off_s)
    for _ in range(subject.rounds):
        spent = Spent()
        with tool_run(command(), subject.folder, spent) as run:
            if not run.follow(LIMIT_S, until=lambda run=run: at_work(run)):  # type: ignore[misc]
                found.notes.append(f"does not attach: {run.failure()}")
                return
            phases = [subject.phase(subject.on_s / 2, run) for _ in range(2)]
            found.seconds = max(found.seconds, run.seconds)
        ended(run, spent)
        found.spent.append(spent)
        after = subject.phase(subject.off_s)
        for on, without in zip(phases, (off, after), strict=True):
            if on.cost and without.cost:
                found.pairs.append(Pair(on=on.cost, off=without.cost))
            found.rates.append(on.rate / without.rate)
        off = after


def uftrace_attached(subject: Subject) -> Result:
    """Ask uftrace to attach to the program that runs, and note what it says."""
    found = Result(program=subject.program, tool="uftrace")
    with tool_run(["uftrace", "record", "-p", subject.running.pid], subject.folder, Spent()) as run:
        if not run.follow(5 * SHORT_S):
            found.notes.append(f"does not attach to a running program; it says: {run.failure()}")
    return found


def uftrace_minute(subject: Subject, found: Result, folder: Path) -> Result:
    """Let uftrace start the program itself, under the same load, after the other has ended."""
    data, begun, spent = folder / "uftrace.data", [0.0], Spent()
    unwatched = subject.unwatched[-UFTRACE_PHASES:]
    try:
        with serving(_under_uftrace(PROGRAMS[subject.program], data, begun), folder) as recorder:
            server = next(pid for pid in family(recorder.pid) if pid != recorder.pid)
            under = replace(subject, running=replace(recorder, pid=server), unwatched=[])
            recording = time.monotonic()
            for off in unwatched:
                on = under.phase(SHORT_S)
                if on.cost and off.cost:
                    found.pairs.append(Pair(on=on.cost, off=off.cost))
                found.rates.append(on.rate / off.rate)
            found.seconds = time.monotonic() - recording
            spent.add(sum(cpu_seconds([recorder.pid]).values()), memory_of(recorder.pid)[0])
    except SystemExit as error:
        found.notes.append(f"started by it, the program does not serve: {error}")
        return found
    written = sum(each.stat().st_size for each in data.glob("*")) / 1e6
    with tool_run(["uftrace", "report", "-d", data], folder, spent) as run:
        run.follow(LIMIT_S)
        found.durations = known(uftrace_calls(run.output))
        if not found.durations:
            found.notes.append(f"it reports nothing: {run.failure()}")
            return found
    found.first_s = time.monotonic() - begun[0]
    found.spent.append(spent)
    found.notes.append(f"it started the program with -P . and wrote {written:.0f} MB in {found.seconds:.0f} s")
    return found


def _under_uftrace(program: Program, data: Path, begun: list[float]) -> Program:
    """Return a program that uftrace starts, with all its functions patched; ``begun``: when it did."""

    def command(folder: Path) -> Command:
        words = list(program.command(folder))
        at = next(number for number, word in enumerate(words) if Path(word).name == program.binary)
        begun[0] = time.monotonic()
        return [*words[:at], "uftrace", "record", "--force", "-P", ".", "-d", data, *words[at:]]

    return replace(program, command=command)
