"""What does collecting cost: bytes of a row, pushes and rows a second, CPU time of the server, time to read?

    .venv/bin/python -m bench.fleet.collect [--hosts 100] [--functions 200] [--rounds 2] [--connections 60]

Hosts are simulated: each sends five minutes of its functions, 1,000 timed calls each, three in ten with 60 call paths.
Pushes go through the database's own function: first each host's records, then rows, as many rounds as asked.
*Connections* are new TLS connections with a client certificate, one push each, of four hosts at a time. The database
writes to disk before it answers. CPU time of the server is that of all its processes. Needs PostgreSQL's binaries.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import resource
import sys
import tempfile
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.lib.child_processes import running as while_running
from bench.lib.driver import table
from specmine.fleet.codec import deflated, encode_histograms, encode_path_numbers, encode_paths, inflated
from specmine.fleet.database.connecting import Connection, connected
from specmine.fleet.database.hosts import enroll, hosts
from specmine.fleet.database.hours import fold_hours
from specmine.fleet.database.loading import load
from specmine.fleet.database.numbering import Known
from specmine.fleet.database.schema import LOAD, initialize
from specmine.fleet.folding import FoldedRow
from specmine.fleet.memory import keep_freed_memory
from specmine.fleet.push import HEAD, Push, encode_push, pushes_of
from specmine.fleet.sums import histogram_sum
from specmine.model.batch import Lifetime
from specmine.model.call_path import CallPath, Frame
from specmine.model.function import Function
from specmine.model.histogram import Histogram
from specmine.model.observation import Kind, Observation, PathHistogram
from specmine.store import Host
from tests.support.fleets import EnrolledHost, enrolled
from tests.support.paths import ROOT
from tests.support.postgres import Postgres, cpu_seconds, running

SECOND = 10**9
CALLS, PATHS, FRAMES = 1000, 60, 14
INBOX_S = 20.0
_LOADER = (
    "import sys; from specmine.fleet.database.levels import FleetRetention;"
    " from specmine.fleet.database.centre.serving import serve;"
    " serve(sys.argv[1], FleetRetention(), once=False, tell=lambda _: None)"
)
AT_ONCE = 4
"""Hosts that connect at the same time."""


def centres_of(rng: np.random.Generator) -> NDArray[np.float64]:
    """Return where the one to three classes of a function's durations lie."""
    return rng.uniform(8, 14, int(rng.integers(1, 4)))


def observation(
    key: str, lifetime: str, rng: np.random.Generator, *, paths: bool, centres: NDArray[np.float64] | None = None
) -> Observation:
    """Return five minutes of a function: paths by Zipf's law, each of a class of durations."""
    centres = centres_of(rng) if centres is None else centres
    number = len(centres)
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
    parser.add_argument("--rounds", type=int, default=2, help="five minutes each")
    parser.add_argument("--connections", type=int, default=60)
    given = parser.parse_args()
    keep_freed_memory()
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
    windows = [
        observation(each.key, "boot-00000:1:1", rng, paths=number % 10 < 3) for number, each in enumerate(functions)
    ]
    rows = _sizes(windows)
    lifetime = Lifetime(id="boot-00000:1:1", pid=1, executable="/bin/app", build_id="ab", start_ns=1, processes=1)
    host = Host(boot_id="boot-00000", hostname="h0", utc_offset_ns=time.time_ns() - 7500 * SECOND)
    rows_of = tuple(FoldedRow(observation=each, windows=30) for each in windows)
    first = Push(records=(host, lifetime, *functions), rows=rows_of)
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
    clients = [enrolled(server, url, folder, f"tls{each}") for each in range(AT_ONCE)]
    with connected(url, autocommit=True) as db:
        db.execute("UPDATE specmine.host SET quota_bytes = 1e12")

    def push_all(host: EnrolledHost) -> None:
        stream = str(uuid.uuid4())
        for each in range(1, number // AT_ONCE + 1):
            with host.connection() as connection:
                connection.push(stream, each, payload, "other", 1)

    number -= number % AT_ONCE
    cpu, began = cpu_seconds(server), time.perf_counter()
    with ThreadPoolExecutor(AT_ONCE) as threads:
        list(threads.map(push_all, clients))
    took, cpu = time.perf_counter() - began, cpu_seconds(server) - cpu
    with connected(url, autocommit=True) as db:
        db.execute("DELETE FROM specmine.inbox")
    return [
        ["pushes a second, each over a new TLS connection", f"{number / took:.0f}"],
        ["server CPU time of one, ms", f"{cpu / number * 1e3:.1f}"],
    ]


def _load(server: Postgres, url: str, first: Push, given: argparse.Namespace) -> list[list[str]]:
    names = [f"h{number}" for number in range(given.hosts)]
    with connected(url, autocommit=True) as db:
        for name in names:
            enroll(db, name, {})
        ids = {each.name: each.host_id for each in hosts(db)}
    told = replace(first, rows=())
    windows = [replace(first, records=(), rows=_at(first.rows, at * 300 * SECOND)) for at in range(given.rounds)]
    rows, loads, known = [], [], Known()
    with connected(url, autocommit=True) as db:
        for what, push in [("records", told), *(("rows", each) for each in windows)]:
            raw = [inflated(each) for each in pushes_of(push)]
            began, cpu = time.perf_counter(), cpu_seconds(server)
            for number, name in enumerate(names):
                _send(db, ids[name], number, raw)
            pushed, cpu = time.perf_counter() - began, cpu_seconds(server) - cpu
            loads.append((what, len(raw) * len(names), pushed, cpu, *_loaded(server, url, known)))
    for what in ("records", "rows"):
        chosen = [each[1:] for each in loads if each[0] == what]
        pushes, pushed, cpu, number, wall, own, serving = (sum(values) for values in zip(*chosen, strict=True))
        rows.append([f"pushes with {what}: put into the inbox, server CPU ms",
                     f"{cpu / pushes * 1e3:.1f} ({pushes:,} pushes, {pushes / pushed:.0f} a second)"])  # fmt: skip
        rows.append([f"pushes with {what}: loader's CPU time of one, ms", f"{own / pushes * 1e3:.1f}"])
        if what == "rows":
            rows += [
                ["rows loaded a second", f"{number / wall:,.0f} ({number:,} rows)"],
                ["rows loaded a second of the loader's CPU time", f"{number / own:,.0f}"],
                ["server's CPU time a row, us", f"{serving / number * 1e6:.0f}"],
            ]
    rows += _inbox(url, ids, names, windows[0])
    return rows + _folded(server, url) + _one_function(url)


def _inbox(url: str, ids: dict[str, int], names: list[str], push: Push) -> list[list[str]]:
    """Send ten times as fast as so many hosts would, while a loader works: how many pushes wait at most."""
    (raw,) = (inflated(each) for each in pushes_of(push))
    waiting, sent, rate = [], 0, 10 * len(names) / 300
    loader = while_running(
        [sys.executable, "-c", _LOADER, url], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT / "src")}
    )
    with loader, connected(url, autocommit=True) as db:
        began = time.perf_counter()
        while (now := time.perf_counter() - began) < INBOX_S:
            if sent < now * rate:
                _send(db, ids[names[sent % len(names)]], sent % len(names), [raw])
                sent += 1
                continue
            row = db.execute("SELECT count(*) AS waiting FROM specmine.inbox").fetchone()
            assert row is not None
            waiting.append(int(row["waiting"]))
            time.sleep(0.05)
    return [[f"pushes that wait at most, {sent / INBOX_S:.0f} arriving a second", str(max(waiting))]]


def _at(rows: tuple[FoldedRow, ...], later_ns: int) -> tuple[FoldedRow, ...]:
    return tuple(
        replace(row, observation=replace(seen, start_ns=seen.start_ns + later_ns, end_ns=seen.end_ns + later_ns))
        for row in rows for seen in (row.observation,)
    )  # fmt: skip


def _send(db: Connection, host_id: int, number: int, raw: list[bytes]) -> None:
    """Send as a host: the pushes of the first one, with another boot."""
    for each in raw:
        payload = deflated(_of_host(each, number))
        db.execute(
            "SELECT * FROM specmine.import_push(%s, %s, (SELECT coalesce(max(accepted), 0) + 1 FROM specmine.stream"
            " WHERE stream = %s), %s, %s)",
            (host_id, uuid.UUID(int=number + 1), uuid.UUID(int=number + 1), payload, hashlib.sha256(payload).digest()),
        )


def _of_host(raw: bytes, number: int) -> bytes:
    (length,) = HEAD.unpack_from(raw)
    head = raw[HEAD.size : HEAD.size + length].replace(b"boot-00000", b"boot-%05d" % number)
    return HEAD.pack(len(head)) + head + raw[HEAD.size + length :]


def _loaded(server: Postgres, url: str, known: Known) -> tuple[int, float, float, float]:
    """Load what waits; return rows, and seconds of wall clock, of the loader's CPU time, of the server's.

    What a loader knows of paths it knows as long as its connection lives.
    """
    with connected(url, role=LOAD, autocommit=True) as db:
        rows = 0
        began, own, cpu = time.perf_counter(), time.process_time(), cpu_seconds(server)
        while (loaded := load(db, known)).pushes:
            rows += loaded.rows
        return rows, time.perf_counter() - began, time.process_time() - own, cpu_seconds(server) - cpu


def _folded(server: Postgres, url: str) -> list[list[str]]:
    with connected(url, role=LOAD, autocommit=True) as db:
        row = db.execute("SELECT now() AS now, (SELECT count(*) FROM observation) AS rows").fetchone()
        assert row is not None
        began, own, cpu = time.perf_counter(), time.process_time(), cpu_seconds(server)
        hours = fold_hours(db, row["now"])
        took, own, cpu = time.perf_counter() - began, time.process_time() - own, cpu_seconds(server) - cpu
    return [
        [f"{row['rows']:,} rows folded into {hours} hour(s), s", f"{took:.1f}"],
        ["loader's CPU time to fold a row, us", f"{own / row['rows'] * 1e6:.0f}"],
        ["server's CPU time of that, us", f"{cpu / row['rows'] * 1e6:.0f}"],
        ["memory of the loader at most, MB", f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f}"],
    ]


def _one_function(url: str) -> list[list[str]]:
    """Add up one function over all hosts: from hours of hosts, and from hours of the fleet."""
    rows = []
    for level, what in (("host_hour", "hours of hosts"), ("fleet_hour", "hours of the fleet")):
        with connected(url, autocommit=True) as db:
            began = time.perf_counter()
            found = db.execute(
                f"SELECT counts FROM specmine.{level} WHERE function_id = 7", binary=True
            ).fetchall()  # fmt: skip
            total = histogram_sum([each["counts"] for each in found]).total
        took = (time.perf_counter() - began) * 1e3
        rows.append([f"one function added up from {len(found):,} {what}, ms", f"{took:.0f} ({total:,} calls)"])
    return rows


if __name__ == "__main__":
    sys.exit(main())
