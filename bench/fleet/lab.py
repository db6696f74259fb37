"""Does a planned benchmark on two hosts find 3 %, and call equal builds equivalent?

    .venv/bin/python -m bench.fleet.lab [--repetitions 20] [--worked 0] [--mined 0] [--simulated 300] [--seed 1]
        [--truth slower equal] [--lifetimes N]

Each repetition is the whole product: ``specmine bench plan`` with its pilot, two runners as processes of their own,
each with a folder and a host of a fleet, and the verdict of ``specmine bench status``. One host is 20 % slower. The
programs print durations that are *drawn*: runs differ by 0.5 %, calls by 5 %. *Worked*: they spend the time instead
and print what it took. *Mined*: two builds of a C++ server without an end, made by recipes, are mined for two seconds a
run, each host on a CPU of its own; that needs root. The first repetition has a pilot, the others take its counts.
``--lifetimes`` takes those of an earlier call. *Simulated*: pilot, plan and comparison are the product's, and runs are
drawn in one process. Needs PostgreSQL's binaries, gcc and g++.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from bench.lib.child_processes import started
from bench.lib.driver import TARGETS, table
from specmine.fleet.database.connecting import connected
from specmine.fleet.database.hosts import enroll
from specmine.fleet.database.schema import initialize
from specmine.fleet.lab.benchmark import Benchmark, benchmark_from
from specmine.fleet.lab.counts import Pilot, PilotRun, with_counts
from specmine.fleet.lab.ledger import DONE, Record, RunState
from specmine.fleet.lab.results import FunctionResult, encoded
from specmine.fleet.lab.run_order import runs_in_order
from specmine.fleet.lab.verdict import comparisons
from tests.support.postgres import running

CHANGE, SLOWER = 1.03, 1.2
HOSTS = ("lab-1", "lab-2")
MINED = ("--mine", "--run-seconds", "2", "--function", "Server::handle*", "--pilot", "4")
TRUTHS = {
    "slower": (CHANGE, "3 % slower", "worse", 19),
    "equal": (1.0, "equal", "equivalent", 18),
}
"""Factor of the new build, in words, the right verdict, and how often of 20 it is asked for."""
RUNS_DIFFER, CALLS_DIFFER = 0.005, 0.05


@dataclass(slots=True)
class Outcomes:
    """What came out of some repetitions."""

    verdicts: Counter[str] = field(default_factory=Counter)
    runs: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def row(self, name: str, truth: str, wanted: str) -> list[str]:
        """Return a row of the table."""
        number = sum(self.verdicts.values())
        others = ", ".join(
            f"{count} {verdict}" for verdict, count in sorted(self.verdicts.items()) if verdict != wanted
        )
        return [name, truth, f"{self.verdicts[wanted]} of {number} {wanted}", others or "none",
                f"{np.median(self.runs):.0f}", f"{np.median(self.seconds):.2g}"]  # fmt: skip


def main() -> int:
    """Run it; exit 1 if fewer than 19 of 20 changes are found, or fewer than 18 of 20 equal builds are equivalent."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--worked", type=int, default=0)
    parser.add_argument("--mined", type=int, default=0)
    parser.add_argument("--simulated", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--truth", choices=TRUTHS, nargs="+", default=list(TRUTHS), help="which new builds")
    parser.add_argument("--lifetimes", type=int, help="runs of a build that an earlier pilot asked for, where mined")
    given = parser.parse_args()
    rows, fine = [], True
    truths = [TRUTHS[each] for each in given.truth]
    with tempfile.TemporaryDirectory(prefix="specmine-bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        subprocess.run(["gcc", "-O1", "-o", folder / "drawn", TARGETS / "drawn.c", "-lm"], check=True)
        with running(folder / "server") as server:
            url = server.url(server.new_database())
            initialize(url)
            with connected(url, autocommit=True) as db:
                for host in HOSTS:
                    enroll(db, host, {"role": "lab"})
            for kind, number in (("drawn", given.repetitions), ("worked", given.worked), ("mined", given.mined)):
                for factor, truth, wanted, least in truths if number else ():
                    found = Outcomes()
                    for at in range(number):
                        counts = (found.runs[0] if found.runs else given.lifetimes) if kind == "mined" else None
                        planned = _planned(url, folder, f"{kind}-{wanted}-{at}", factor, kind, given.seed + at, counts)
                        _repetition(found, url, folder, f"{kind}-{wanted}-{at}", planned)
                    rows.append(found.row(f"two hosts, {kind}", truth, wanted))
                    fine &= found.verdicts[wanted] * 20 >= least * number
    rng = np.random.default_rng(given.seed)
    for factor, truth, wanted, least in truths if given.simulated else ():
        found = Outcomes()
        for _ in range(given.simulated):
            _simulated(found, rng, factor)
        rows.append(found.row("simulated", truth, wanted))
        fine &= found.verdicts[wanted] * 20 >= least * given.simulated
    table(["runs", "new build", "verdict", "others", "runs of a build", "seconds"], rows)
    return 0 if fine else 1


def _planned(
    url: str, folder: Path, name: str, factor: float, kind: str, seed: int, lifetimes: int | None
) -> dict[str, Any]:
    """Plan a benchmark, with a pilot unless its counts are known; return the plan."""
    builds: list[object] = []
    for label, each in (("base", 1.0), ("new", factor)):
        program = f"{folder}/drawn {each} {{calls}} {'work' if kind == 'worked' else 'drawn'}"
        recipe = f"g++ -O1 -DFACTOR={each} -o server {TARGETS / 'handled.cpp'}"
        builds += ["--build", f"{label}={recipe}"] if kind == "mined" else ["--command", f"{label}={program}"]
    options = [*MINED, "--run", "./server", *(["--lifetimes", lifetimes] if lifetimes else [])]
    text = _specmine([
        "plan", name, *builds, "--label", "role=lab", "--seed", seed, "--fleet", url, "--folder", folder / "pilot",
        "--lease", "10", "--format", "json", *(options if kind == "mined" else ()),
    ])  # fmt: skip
    planned: dict[str, Any] = json.loads(text)
    return planned


def _repetition(found: Outcomes, url: str, folder: Path, name: str, planned: dict[str, Any]) -> None:
    began, cpus = time.monotonic(), sorted(os.sched_getaffinity(0))
    runners = [
        started(["taskset", "--cpu-list", str(cpus[at % len(cpus)]),
                 *_command(["run", name, "--fleet", url, "--host", host, "--folder", folder / host])],
                env={**os.environ, "LAB_SLOWER": str(slower)}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for at, (host, slower) in enumerate(zip(HOSTS, (1.0, SLOWER), strict=True))
    ]  # fmt: skip
    for each in runners:
        each.wait()
    document = json.loads(_specmine(["status", name, "--fleet", url, "--format", "json"]))
    assert document["complete"] and document["runs"]["done"] == planned["runs"], document["failures"]
    assert [each["done"] for each in document["hosts"]] == [planned["runs"] // 2] * 2, document["hosts"]
    (function,) = document["comparisons"][0]["functions"]
    print(f"{name}: {function['verdict']}, {function['ratio']} {function['interval']},"
          f" {planned['plan']['lifetimes']} runs of a build", file=sys.stderr, flush=True)  # fmt: skip
    found.verdicts[function["verdict"]] += 1
    found.runs.append(planned["plan"]["lifetimes"])
    found.seconds.append(time.monotonic() - began)


def _command(arguments: Sequence[object]) -> list[str]:
    return [sys.executable, "-m", "specmine.cli", "bench", *map(str, arguments)]


def _specmine(arguments: Sequence[object]) -> str:
    done = subprocess.run(_command(arguments), capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1, 3):
        raise SystemExit(done.stderr)
    return done.stdout


def _simulated(found: Outcomes, rng: np.random.Generator, factor: float) -> None:
    began = time.monotonic()
    wanted = benchmark_from({"name": "s", "builds": {"base": "x {calls}", "new": "y {calls}"}})
    factors = {"base": 1.0, "new": factor}
    pilot = [
        PilotRun(build=label, making=0, seconds=0.003 + 0.02, found=[_drawn(rng, factors[label], wanted.pilot_calls)])
        for _ in range(wanted.pilot) for label in factors
    ]  # fmt: skip
    chosen, plan = with_counts(wanted, Pilot(runs=pilot), len(HOSTS))
    (document,) = comparisons(_record(chosen, plan, rng, factors))
    found.verdicts[document["functions"][0]["verdict"]] += 1
    found.runs.append(plan["lifetimes"])
    found.seconds.append(time.monotonic() - began)


def _record(chosen: Benchmark, plan: dict[str, object], rng: np.random.Generator, factors: dict[str, float]) -> Record:
    assert chosen.lifetimes is not None
    assert chosen.calls is not None
    runs = []
    for each in runs_in_order(list(factors), rebuilds=1, lifetimes=chosen.lifetimes, seed=int(rng.integers(1 << 30))):
        host = each.block % len(HOSTS)
        drawn = _drawn(rng, factors[each.build] * (1.0, SLOWER)[host], chosen.calls)
        runs.append(RunState(run=each, state=DONE, host=HOSTS[host], attempts=1, begun_utc_ns=each.number + 1,
                             ended_utc_ns=each.number + 2, result=encoded([drawn])))  # fmt: skip
    return Record(
        benchmark=replace(chosen, rebuilds=1),
        plan=plan,
        created_utc_ns=0,
        now_utc_ns=0,
        runs=runs,
        hosts=(),
        failures=(),
    )


def _drawn(rng: np.random.Generator, factor: float, calls: int) -> FunctionResult:
    durations = 20_000 * factor * np.exp(rng.normal(0, RUNS_DIFFER) + rng.normal(0, CALLS_DIFFER, calls))
    return FunctionResult(
        function="all", module="", warmup=0, rate=None, durations_ns=np.round(durations), cells=None
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
