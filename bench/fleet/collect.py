"""What does collecting cost: bytes of a row, pushes and rows a second, CPU time of the server, time to read?

    .venv/bin/python -m bench.fleet.collect [--hosts 100] [--functions 200] [--connections 60]

Hosts are simulated: each sends five minutes of its functions, 1,000 timed calls each, three in ten with 60 call paths.
Pushes go through the database's own function. *Connections* are new TLS connections with a client certificate, one push
each. *Hours* are what one function's durations over all hosts take to read and add up. The database writes to disk
before it answers. CPU time of the server is that of all its processes. Needs PostgreSQL's binaries.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
import time
import uuid
from dataclasses import replace
from pathlib import Path

import numpy as np

from bench.lib.driver import table
from specmine.fleet.codec import encode_histograms, encode_path_numbers, encode_paths
from specmine.fleet.database.connecting import connected
from specmine.fleet.database.hosts import enroll, hosts
from specmine.fleet.database.schema import initialize
from specmine.fleet.folding import FoldedRow
from specmine.fleet.push import Push, encode_push, pushes_of
from specmine.model.batch import Lifetime
from specmine.model.call_path import CallPath, Frame
from specmine.model.function import Function
from specmine.model.histogram import Histogram
from specmine.model.observation import Kind, Observation, PathHistogram
from specmine.store import Host
from tests.support.fleets import FOR_EVER, enrolled, load_all, place
from tests.support.postgres import Postgres, cpu_seconds, running

SECOND = 10**9
CALLS, PATHS, FRAMES = 1000, 60, 14


def observation(key: str, lifetime: str, rng: np.random.Generator, *, paths: bool) -> Observation:
    """Return five minutes of a function: one to three classes of durations, paths by Zipf's law."""
    number = int(rng.integers(1, 4))
    centres = rng.uniform(8, 14, number)
    chosen = rng.choice(PATHS, CALLS, p=1 / np.arange(1, PATHS + 1) / (1 / np.arange(1, PATHS + 1)).sum())
    durations = np.exp(centres[chosen % number] + rng.normal(0, 0.25, CALLS)).astype(np.int64)
    of_paths = []
    for one in np.unique(chosen) if paths else ():
        callers = (Frame(f"{key[-4:]}f{one % 7}_{depth}", "app") for depth in range(FRAMES - 1))
        path = CallPath((*callers, Frame(f"p{one}", "app")))
        of_paths.append(PathHistogram(path=path, histogram=Histogram.from_durations(durations[chosen == one])))
    return Observation(
        function=key, lifetime=lifetime, kind=Kind.PATH if paths else Kind.TIME, start_ns=SECOND, end_ns=301 * SECOND,
        histogram=Histogram.from_durations(durations), calls=CALLS, watched_ns=SECOND, paths=tuple(of_paths),
    )  # fmt: skip


def main() -> int:
    """Run it and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=100)
    parser.add_argument("--functions", type=int, default=200)
    parser.add_argument("--connections", type=int, default=60)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="specmine-bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        with running(folder / "server", fsync=True) as server:
            rows = _measured(server, folder, given)
    table(["what", "measured"], rows)
    return 0


def _measured(server: Postgres, folder: Path, given: argparse.Namespace) -> list[list[str]]:
    url = server.url(server.new_database())
    initialize(url)
    rng = np.random.default_rng(1)
    functions = [
        Function(build_id="ab", offset=number, name=f"f{number}", module="app", in_program=True)
        for number in range(given.functions)
    ]
    windows = [observation(each.key, "boot-0:1:1", rng, paths=number % 10 < 3) for number, each in enumerate(functions)]
    rows = _sizes(windows)
    lifetime = Lifetime(id="boot-0:1:1", pid=1, executable="/bin/app", build_id="ab", start_ns=1, processes=1)
    first = Push(records=(Host(boot_id="boot-0", hostname="h0", utc_offset_ns=0), lifetime, *functions),
                 rows=tuple(FoldedRow(observation=each, windows=30) for each in windows))  # fmt: skip
    rows.append(["bytes of a host's push", f"{len(encode_push(replace(first, records=()))):,}"])
    rows += _connections(server, url, folder, encode_push(replace(first, records=())), given.connections)
    rows += _load(server, url, first, given)
    return rows


def _sizes(windows: list[Observation]) -> list[list[str]]:
    number = {one: at for at, one in enumerate(dict.fromkeys(one.path for each in windows for one in each.paths))}
    plain = [len(encode_histograms((each.histogram,))) for each in windows]
    paths = [
        size + len(encode_paths(each.paths)) + len(encode_path_numbers([number[one.path] for one in each.paths]))
        for size, each in zip(plain, windows, strict=True)
        if each.paths
    ]
    return [
        ["bytes of a row of 1,000 calls", f"{np.mean(plain):.0f}"],
        ["the same with 60 call paths", f"{np.mean(paths):.0f}"],
    ]


def _connections(server: Postgres, url: str, folder: Path, payload: bytes, number: int) -> list[list[str]]:
    host = enrolled(server, url, folder, "tls")
    with connected(url, autocommit=True) as db:
        db.execute("UPDATE specmine.host SET quota_bytes = 1e12")
    cpu, began, stream = cpu_seconds(server), time.perf_counter(), str(uuid.uuid4())
    for each in range(1, number + 1):
        with host.connection() as connection:
            connection.push(stream, each, payload, "other", 1)
    took, cpu = time.perf_counter() - began, cpu_seconds(server) - cpu
    with connected(url, autocommit=True) as db:
        db.execute("DELETE FROM specmine.inbox")
    return [
        ["pushes a second, each over a new TLS connection", f"{number / took:.0f}"],
        ["server CPU time of one, ms", f"{cpu / number * 1e3:.1f}"],
    ]


def _load(server: Postgres, url: str, first: Push, given: argparse.Namespace) -> list[list[str]]:
    with connected(url, autocommit=True) as db:
        for number in range(given.hosts):
            enroll(db, f"h{number}", {})
        ids = {each.name: each.host_id for each in hosts(db)}
        began, cpu = time.perf_counter(), cpu_seconds(server)
        sent = 0
        for number in range(given.hosts):
            lifetime = f"boot-{number}:1:1"
            itself = Host(boot_id=f"boot-{number}", hostname=f"h{number}", utc_offset_ns=time.time_ns() - 7200 * SECOND)
            seen = (replace(each.observation, lifetime=lifetime) for each in first.rows)
            push = Push(
                records=(itself, replace(first.records[1], id=lifetime), *first.records[2:]),
                rows=tuple(FoldedRow(observation=each, windows=30) for each in seen),
            )
            for at, payload in enumerate(pushes_of(push), start=1):
                db.execute(
                    "SELECT * FROM specmine.import_push(%s, %s, %s, %s, %s)",
                    (ids[f"h{number}"], uuid.UUID(int=number + 1), at, payload, hashlib.sha256(payload).digest()),
                )
                sent += 1
        pushed, cpu = time.perf_counter() - began, cpu_seconds(server) - cpu
    began, own = time.perf_counter(), time.process_time()
    served = load_all(url, FOR_EVER)
    took, own = time.perf_counter() - began, time.process_time() - own
    began = time.perf_counter()
    with place(url, host="h0").opened() as store:
        number = len(store.read(Observation))
    read = time.perf_counter() - began
    return [
        [
            f"pushes of {given.hosts} hosts, server CPU time of one, ms",
            f"{cpu / sent * 1e3:.1f} ({sent / pushed:.0f} a second)",
        ],
        ["rows loaded a second, the hour folded too", f"{served.rows / took:,.0f} ({served.rows:,} rows)"],
        ["loader's CPU time a row, us", f"{own / max(1, served.rows) * 1e6:.0f}"],
        [f"{number} rows of one host read, ms", f"{read * 1e3:.0f}"],
    ]


if __name__ == "__main__":
    sys.exit(main())
