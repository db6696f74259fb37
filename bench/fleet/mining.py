"""What does mining from many hosts cost, and do two processes mine twice as much as one?

    .venv/bin/python -m bench.fleet.mining [--functions 60] [--hosts 10]

Each host sent 1,000 calls of each function. Two functions in five have two classes of durations that 60 call paths tell
apart, as rows with paths; the others have one class. First one process mines all, then two at the same time. What 2,000
functions take is scaled from that. Needs PostgreSQL's binaries, and two CPUs for the second figure.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from bench.lib.driver import table
from specmine.fleet.database.connecting import connected
from specmine.fleet.database.planning import Planner
from specmine.fleet.database.schema import MINE, initialize
from specmine.fleet.folding import FoldedRow
from specmine.fleet.push import Push
from specmine.model.batch import Lifetime
from specmine.model.call_path import CallPath, Frame
from specmine.model.function import Function
from specmine.model.histogram import Histogram
from specmine.model.observation import Kind, Observation, PathHistogram
from specmine.store import Host
from tests.support.fleets import imported, load_all
from tests.support.paths import ROOT
from tests.support.postgres import running

SECOND = 10**9
CALLS, PATHS = 1000, 60
_MINER = """
import resource, sys
from specmine.fleet.database.analysing import analyse
from specmine.fleet.database.connecting import connected
from specmine.fleet.database.schema import MINE
with connected(sys.argv[1], role=MINE, autocommit=True) as db:
    print("ready", flush=True)
    sys.stdin.readline()
    before = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    mined = 0
    while analyse(db):
        mined += 1
    print(mined, sum(resource.getrusage(resource.RUSAGE_SELF)[:2]) - before)
"""


def row(function: Function, lifetime: str, rng: np.random.Generator, *, paths: bool) -> FoldedRow:
    """Return five minutes of a function: of odd call paths four calls in ten take ten times as long."""
    chosen = rng.integers(0, PATHS, CALLS)
    slow = (chosen % 2 == 1) & (rng.random(CALLS) < 0.4) & paths
    durations = (np.where(slow, 200_000.0, 20_000.0) * np.exp(0.1 * rng.standard_normal(CALLS))).astype(np.int64)
    of_paths = tuple(
        PathHistogram(
            path=CallPath(tuple(Frame(each, "app") for each in ("main", f"p{one}", "ab"[one % 2], function.name))),
            histogram=Histogram.from_durations(durations[chosen == one]),
        )
        for one in np.unique(chosen).tolist() if paths
    )  # fmt: skip
    seen = Observation(
        function=function.key, lifetime=lifetime, kind=Kind.PATH if paths else Kind.TIME, start_ns=SECOND,
        end_ns=301 * SECOND, histogram=Histogram.from_durations(durations), calls=CALLS, watched_ns=SECOND,
        paths=of_paths,
    )  # fmt: skip
    return FoldedRow(observation=seen, windows=5)


def main() -> int:
    """Run it and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--functions", type=int, default=60)
    parser.add_argument("--hosts", type=int, default=10)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="specmine-bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        with running(folder / "server") as server:
            url = server.url(server.new_database())
            initialize(url)
            _fill(url, given)
            rows, rates = [], {}
            for processes in (1, 2):
                jobs = _waiting(url)
                took, cpu, mined = _mined(url, processes)
                rates[processes] = mined / took
                rows.append([f"{processes} process(es)", str(jobs), str(mined), f"{took:.1f}", f"{cpu / mined:.3f}",
                             f"{2000 * cpu / mined / 60:.1f}"])  # fmt: skip
            with connected(url, autocommit=True) as db:
                states = db.execute("SELECT found, count(*) AS n FROM specmine.model GROUP BY found").fetchall()
    table(["mined by", "waiting", "mined", "s", "CPU s a function", "CPU minutes of 2,000 functions"], rows)
    print(f"\ntwo processes mine {rates[2] / rates[1]:.2f} times as fast as one;"
          f" what it came to: {({each['found']: each['n'] for each in states})}")  # fmt: skip
    return 0


def _fill(url: str, given: argparse.Namespace) -> None:
    rng = np.random.default_rng(1)
    functions = [
        Function(build_id="ab", offset=64 * at, name=f"f{at}", module="app", in_program=True)
        for at in range(1, given.functions + 1)
    ]
    with connected(url, autocommit=True) as db:
        for number in range(given.hosts):
            boot = f"boot-{number}"
            life = Lifetime(id=f"{boot}:1:1", pid=1, executable="/bin/app", build_id="ab", start_ns=1, processes=1)
            host = Host(boot_id=boot, hostname=f"h{number}", utc_offset_ns=0)
            rows = tuple(row(each, life.id, rng, paths=at % 5 < 2) for at, each in enumerate(functions))
            imported(db, f"h{number}", Push(records=(host, life, *functions), rows=rows))
    load_all(url)
    with connected(url, autocommit=True) as db:
        db.execute("UPDATE specmine.host SET seen_at = now()")


def _waiting(url: str) -> int:
    """Let all functions be mined as if none had been; return how many wait."""
    with connected(url, autocommit=True) as db:
        db.execute("DELETE FROM specmine.model")
    with connected(url, role=MINE, autocommit=True) as db:
        Planner().plan(db)
    with connected(url, autocommit=True) as db:
        found = db.execute("SELECT count(*) AS n FROM specmine.job").fetchone()
    assert found is not None
    return int(found["n"])


def _mined(url: str, processes: int) -> tuple[float, float, int]:
    """Mine all with so many processes; return seconds, CPU seconds, functions."""
    started = [
        subprocess.Popen([sys.executable, "-c", _MINER, url], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         text=True)
        for _ in range(processes)
    ]  # fmt: skip
    for each in started:
        assert each.stdout is not None
        each.stdout.readline()
    began = time.perf_counter()
    for each in started:
        assert each.stdin is not None
        each.stdin.write("\n")
        each.stdin.flush()
    found = [each.communicate()[0].split() for each in started]
    took = time.perf_counter() - began
    return took, sum(float(cpu) for _, cpu in found), sum(int(number) for number, _ in found)


if __name__ == "__main__":
    sys.exit(main())
