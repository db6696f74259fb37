"""What does specmine cost real programs under load, and what do other tools cost them?

    .venv/bin/python -m bench.overhead.servers [PROGRAM...] [--budget 0.01] [--pairs 100] [--phase 2]
        [--load bounded] [--keep FILE] [--peers 6] [--only-kept] [--control]

Each program is mined as ``specmine mine`` does. After a while all probes are switched off and on in random order every
2 s (bench/lib/probe_toggle.py). The program's CPU seconds per unit of work are compared between both. Then bpftrace and
funclatency time the functions that specmine had timed, in turn. ``--keep`` adds the pairs to a file and reports all
that it holds of one program and budget: short runs add up to a long one. Needs root, gcc and the packages that
bench/lib/server_load.py names; ``--peers`` needs bpftrace and bpfcc-tools. ``--load bounded`` has those loads of
bench/faults/programs that ask for as much each second: there a second is the unit of work.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.faults.programs.bounded import BOUNDED
from bench.lib.cpu_speed import KINDS, Reference, referring
from bench.lib.driver import table
from bench.lib.losses import Loss, Pair, adjusted_loss_of, loss_of, reference_of
from bench.lib.peers import BY_FUNCTION, attached, bpftrace, funclatency_all, places_in, symbols
from bench.lib.probe_toggle import SETTLE_S, Meter, Mining, Phases, Toggled, family
from bench.lib.server_load import LAST_CPU, NAMES, Running, loaded
from specmine.daemon.config.settings import settings_of
from specmine.daemon.config.tree import Config
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.documents.specification import specification
from specmine.daemon.kernel_source import DEFAULT_CACHE
from specmine.daemon.loop import Step, run
from specmine.daemon.worker.process import ProcessWorker
from specmine.probes.process.selection import Selection
from specmine.probes.settings import SourceSettings
from specmine.probes.source import BpfSource

WARM_S = 15.0
"""Mined before the first pair: functions are found and the first are timed."""
LEARNT_S = 120.0
STABLE, EXPLAINED = 8, 2
BY_WAITING = "unexplained, but by waiting"
"""Call paths do not distinguish the classes, but what calls waited for does."""
STATES_STABLE = ("single", "explaining", "explained", "unexplained", BY_WAITING)
SLACK = 0.005
PEER_FUNCTIONS, PEER_S = 8, 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How a program is mined."""

    budget: float
    pairs: int
    """Of phases."""
    phase_s: float
    """With probes, and without."""
    seed: int
    load: str = "saturated"
    control: bool = False
    """Watch nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What one run on one program gave."""

    program: str
    budget: float
    pairs: tuple[Pair, ...]
    dropped: int
    seconds: float
    """With probes."""
    states: dict[str, int]
    """At the end."""
    spent_ratio: float
    timed: int
    functions: tuple[tuple[str, str], ...]
    """(name, module) of those timed most."""
    after: dict[str, int] = field(default_factory=dict)
    """States after LEARNT_S with probes."""


def main() -> int:
    """Measure; 0 if no bar is broken."""
    parser = argparse.ArgumentParser(description="What specmine costs real programs under load.")
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=f"of {', '.join(NAMES)}; all by default")
    parser.add_argument("--budget", type=float, default=0.01)
    parser.add_argument("--pairs", type=int, default=100)
    parser.add_argument("--phase", type=float, default=2.0, help="seconds with probes, seconds without")
    parser.add_argument("--load", choices=("bounded", "saturated"), default="saturated")
    parser.add_argument("--keep", type=Path, help="file of pairs to add to")
    parser.add_argument("--only-kept", action="store_true", help="measure nothing, report what the file holds")
    parser.add_argument("--peers", type=int, default=6, help="rounds of bpftrace and funclatency; 0: leave them out")
    parser.add_argument("--control", action="store_true", help="watch nothing: what the measuring itself makes of it")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    unknown = set(options.programs) - set(NAMES)
    if unknown:
        parser.error(f"there is no {', '.join(unknown)}")
    if os.geteuid() != 0:
        print("bench.overhead.servers: needs root", file=sys.stderr)
        return 4
    runs: list[Run] = []
    way = Way(
        budget=options.budget,
        pairs=options.pairs,
        phase_s=options.phase,
        seed=options.seed,
        load=options.load,
        control=options.control,
    )
    for name in options.programs or NAMES:
        if options.only_kept:
            break
        with (
            tempfile.TemporaryDirectory(prefix="specmine-bench-") as folder,
            under_load(name, options.load, Path(folder)) as running,
        ):
            one = mined(name, running, way)
            runs.append(one)
            print(f"{name}: {json.dumps(one.states)}, {len(one.pairs)} pairs, {one.dropped} dropped", file=sys.stderr)
            if options.keep:
                with options.keep.open("a") as file:
                    file.write(json.dumps(asdict(one)) + "\n")
            if options.peers:
                against_peers(running, one, options.peers)
    if options.keep:
        runs = [r for r in map(kept, options.keep.read_text().splitlines()) if r.program in (options.programs or NAMES)]
    return report(runs)


@contextmanager
def under_load(name: str, load: str, folder: Path) -> Iterator[Running]:
    """Run a program under a load."""
    if load == "saturated":
        with loaded(name, folder) as running:
            yield running
    else:
        with BOUNDED[name](folder) as service:
            yield Running(pid=service.pid, work=time.monotonic, unit="s")


@contextmanager
def referred(load: str, folder: Path) -> Iterator[Reference | None]:
    """Run the reference work where a program has a CPU of its own."""
    if load == "saturated":
        with referring(LAST_CPU, folder) as reference:
            yield reference
    else:
        yield None


def kept(line: str) -> Run:
    """Return a run that was kept."""
    values: dict[str, Any] = json.loads(line)
    values["pairs"] = tuple(Pair(**each | {"reference": tuple(each["reference"])}) for each in values["pairs"])
    values["functions"] = tuple((name, module) for name, module in values["functions"])
    return Run(**values)


def mined(name: str, running: Running, way: Way) -> Run:
    """Mine a program with phases without probes."""
    settings = replace(settings_of(Config()), overhead=way.budget, agent=0.0).for_duration(int(LEARNT_S * 1e9))
    if way.control:
        settings = replace(settings, watch=("no-such-function",))
    Path(DEFAULT_CACHE).mkdir(parents=True, exist_ok=True)
    kernel = SourceSettings(cache=DEFAULT_CACHE, watch=settings.watch, sampling=not way.control)
    source = Toggled(BpfSource([Selection(pid=running.pid)], kernel), running.pid)
    with tempfile.TemporaryDirectory() as folder, referred(way.load, Path(folder)) as reference:
        phases = Phases(Meter(running.pid, running.work, reference), way.phase_s, way.seed)
        mining = Mining(source, phases, way.pairs, WARM_S)
        after: dict[str, int] = {}

        def see(step: Step) -> None:
            mining.see(step)
            if not after and step.state.now_ns - step.state.began_ns >= LEARNT_S * 1e9:
                after.update(states(step.state))

        state = run(source, settings, source, ProcessWorker(), listeners=[see], inbox=mining.inbox)
    return learnt(name, 0.0 if way.control else way.budget, state, after, phases)


def states(state: ControllerState) -> dict[str, int]:
    """Return how many functions are in which state."""
    return dict(Counter(map(_state, specification(state)["functions"])))


def learnt(name: str, budget: float, state: ControllerState, after: dict[str, int], phases: Phases) -> Run:
    """Put together what a run gave."""
    document = specification(state)
    most = sorted(document["functions"], key=lambda each: -each["timed"])
    return Run(
        program=name,
        budget=budget,
        pairs=tuple(phases.pairs),
        dropped=phases.dropped,
        seconds=(state.now_ns - state.began_ns) * 1e-9,
        states=states(state),
        after=after,
        spent_ratio=document["collection"]["overhead_ratio"],
        timed=sum(each["timed"] for each in document["functions"]),
        functions=tuple((each["function"], each["module"]) for each in most if each["timed"])[:40],
    )


def _state(function: dict[str, Any]) -> str:
    waits = function["state"] == "unexplained" and (function["reason"] or {}).get("code") == "waiting"
    return BY_WAITING if waits else str(function["state"])


def report(runs: list[Run]) -> int:
    """Print losses and yields; return 1 if a bar is broken."""
    together: dict[tuple[str, float], list[Run]] = {}
    for one in runs:
        together.setdefault((one.program, one.budget), []).append(one)
    rows, checks, broken = [], [], False
    for (name, budget), all_runs in together.items():
        pairs = [pair for one in all_runs for pair in one.pairs]
        measured, bound = loss_of(pairs), budget + SLACK
        adjusted = adjusted_loss_of(pairs)
        best = adjusted or measured
        broken = broken or best.low > bound
        stable, explained, waiting = (
            [f"{sum(one.after.get(s, 0) for s in of)} / {sum(one.states.get(s, 0) for s in of)}" for one in all_runs]
            for of in (STATES_STABLE, ("explained",), (BY_WAITING,))
        )
        cells = {
            "program": name,
            "budget": f"{budget:.1%}",
            "pairs": measured.pairs,
            "CPU a unit of work": f"{measured.value:+.1%}",
            "95 %": _interval(measured),
            "less the host's part": f"{adjusted.value:+.2%}" if adjusted else "",
            "its 95 %": _interval(adjusted) if adjusted else "",
            "bar": f"{bound:.1%}",
            "": verdict_on(best, bound),
            "reported as spent": f"{statistics.mean(one.spent_ratio for one in all_runs):.2%}",
            "s on": f"{statistics.mean(one.seconds for one in all_runs):.0f}",
            f"stable after {LEARNT_S:.0f} s / at the end": ", ".join(stable),
            "explained by paths": ", ".join(explained),
            "by waiting": ", ".join(waiting),
        }
        rows.append(tuple(cells.values()))
        if adjusted:
            checks.append((name, f"{budget:.1%}", *(f"{x.value:+.1%} ({_interval(x)})" for x in reference_of(pairs))))
    if rows:
        table(list(cells), rows)
    if checks:
        table(["reference work with probes", "budget", *KINDS], checks)
    return int(broken)


def verdict_on(loss: Loss, bound: float) -> str:
    """Return whether a loss lies within a bound, as far as its interval shows it."""
    verdict = "kept" if loss.high <= bound else "**over**" if loss.low > bound else "undecided"
    return verdict if loss.half_width <= SLACK else f"{verdict}, not measurable here"


def _interval(loss: Loss) -> str:
    return f"{loss.low:+.1%} .. {loss.high:+.1%}"


def against_peers(running: Running, one: Run, rounds: int) -> None:
    """Let the peers time the functions that specmine timed most, as far as they have names."""
    path, names = nameable(running.pid, one)
    if not names:
        print(f"{one.program}: the peers can name none of the functions", file=sys.stderr)
        return
    pids = family(running.pid)
    pid = running.pid if len(pids) == 1 else 0  # neither follows forks
    tools = {
        "bpftrace": bpftrace(
            pid, " ".join(BY_FUNCTION.format(at=f"{path}:{name}", number=n) for n, name in enumerate(names))
        ),
        "funclatency": funclatency_all(pid, str(path), names),
    }
    busiest = max(pids, key=lambda pid: time.clock_gettime_ns(~pid << 3 | 2))
    places = places_in(busiest, path, [symbols(path)[name] for name in names])
    rows = []
    for tool, command in tools.items():
        found = []
        meter = Meter(running.pid, running.work)

        def phase(meter: Meter = meter) -> float | None:
            time.sleep(SETTLE_S)
            meter.begin()
            time.sleep(PEER_S)
            return meter.end()

        for _ in range(rounds):
            off = phase()
            with attached(command, busiest, places):
                on = phase()
            if on and off:
                found.append(Pair(on=on, off=off))
        if found:
            loss = loss_of(found)
            rows.append(
                (
                    one.program,
                    tool,
                    len(names),
                    loss.pairs,
                    f"{loss.value:+.0%}",
                    f"{loss.low:+.0%} .. {loss.high:+.0%}",
                )
            )
    table(["program", "peer", "functions", "pairs", "CPU a unit of work", "all pairs"], rows)


def nameable(pid: int, one: Run) -> tuple[Path, list[str]]:
    """Return the file that holds most of the functions timed, and its functions that peers find by name."""
    files = {}
    for each in family(pid):
        for line in Path(f"/proc/{each}/maps").read_text().splitlines():
            words = line.split(maxsplit=5)
            if len(words) == 6 and "x" in words[1] and words[5].startswith("/"):
                files[Path(words[5]).name] = Path(words[5])
    best: tuple[Path, list[str]] = (Path(), [])
    for module in {module for _, module in one.functions} & set(files):
        known = symbols(files[module])
        names = [name for name, where in one.functions if where == module and name in known][:PEER_FUNCTIONS]
        if len(names) > len(best[1]):
            best = (files[module], names)
    return best


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    raise SystemExit(main())
