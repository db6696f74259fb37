"""How large does a fleet's database grow, with 10, 100, 1,000 and 10,000 hosts?

    .venv/bin/python -m bench.fleet.sizes [--hosts 4] [--functions 100]

A few hosts send twelve times five minutes of their functions, drawn anew each time: 1,000 timed calls, three functions
in ten with 60 call paths. They are loaded and folded as in use. What a row takes on disk, with its index, is measured.
The table multiplies it by the rows that are kept: five minutes for two days, hours of lifetimes for two weeks, hours of
the fleet for 400 days, of 200 functions on each host and three builds. Needs PostgreSQL's binaries.
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

from bench.fleet.collect import SECOND, centres_of, observation
from bench.lib.driver import table
from specmine.fleet.database.connecting import connected
from specmine.fleet.database.hosts import enroll, hosts
from specmine.fleet.database.hours import fold_hours
from specmine.fleet.database.levels import FleetRetention
from specmine.fleet.database.loading import load
from specmine.fleet.database.numbering import Known
from specmine.fleet.database.schema import LOAD, initialize
from specmine.fleet.folding import FoldedRow
from specmine.fleet.push import Push, pushes_of
from specmine.model.batch import Lifetime
from specmine.model.function import Function
from specmine.model.observation import Observation
from specmine.store import Host
from tests.support.postgres import Postgres, running

ROUNDS, BUILDS, FUNCTIONS = 12, 3, 200
HOUR = 3600 * SECOND
LEVELS = ("observation", "host_hour", "fleet_hour")


def main() -> int:
    """Run it and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--functions", type=int, default=100)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="specmine-bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        with running(folder / "server") as server:
            sizes = _sizes(server, given)
    table(["level", "rows", "bytes a row, with its index"],
          [[level, f"{rows:,}", f"{size:.0f}"] for level, (rows, size) in sizes.items()])  # fmt: skip
    print()
    kept, rows = FleetRetention(), []
    days = {"observation": kept.observations, "host_hour": kept.host_hours, "fleet_hour": kept.fleet_hours}
    for number in (10, 100, 1_000, 10_000):
        a_day = {"observation": number * 288, "host_hour": number * 24, "fleet_hour": BUILDS * 24}
        found = [FUNCTIONS * a_day[each] * days[each].days * sizes[each][1] * 1e-9 for each in LEVELS]
        rows.append([f"{number:,}", *(f"{each:,.1f}" for each in found), f"{sum(found):,.0f}"])
    table(["hosts", "five minutes, GB", "hours of lifetimes, GB", "hours of the fleet, GB", "in all, GB"], rows)
    return 0


def _sizes(server: Postgres, given: argparse.Namespace) -> dict[str, tuple[int, float]]:
    """Return rows and bytes a row of each level."""
    url = server.url(server.new_database())
    initialize(url)
    rng = np.random.default_rng(1)
    functions = [
        Function(build_id="ab", offset=number, name=f"f{number}", module="app", in_program=True)
        for number in range(given.functions)
    ]
    centres = [centres_of(rng) for _ in functions]
    offset = (time.time_ns() // HOUR - 3) * HOUR
    with connected(url, autocommit=True) as db:
        for at in range(given.hosts):
            enroll(db, f"h{at}", {})
        ids = [each.host_id for each in sorted(hosts(db), key=lambda one: one.name)]
    for at, host_id in enumerate(ids):
        lifetime = Lifetime(id=f"boot-{at}:1:1", pid=1, executable="/bin/app", build_id="ab", start_ns=1, processes=1)
        records = (Host(boot_id=f"boot-{at}", hostname=f"h{at}", utc_offset_ns=offset), lifetime, *functions)
        pushes = [Push(records=records)]
        for turn in range(ROUNDS):
            seen = [
                observation(each.key, lifetime.id, rng, paths=number % 10 < 3, centres=centres[number])
                for number, each in enumerate(functions)
            ]
            pushes.append(
                Push(records=(), rows=tuple(FoldedRow(observation=_at(each, turn), windows=30) for each in seen))
            )
        _send(url, host_id, at, pushes)
    with connected(url, role=LOAD, autocommit=True) as db:
        known = Known()
        while load(db, known).pushes:
            pass
        row = db.execute("SELECT now() AS now").fetchone()
        assert row is not None
        fold_hours(db, row["now"])
    with connected(url, autocommit=True) as db:
        db.execute("VACUUM")
        return {each: _size(db.execute(_SIZE, (each, each)).fetchone(), db.execute(
            f"SELECT count(*) AS rows FROM specmine.{each}").fetchone()) for each in LEVELS}  # fmt: skip


_SIZE = (
    "SELECT coalesce(sum(pg_total_relation_size(i.inhrelid)), 0)::bigint"
    " + pg_total_relation_size(('specmine.' || %s)::regclass) AS bytes"
    " FROM pg_inherits i WHERE i.inhparent = ('specmine.' || %s)::regclass"
)


def _size(size: dict[str, int] | None, number: dict[str, int] | None) -> tuple[int, float]:
    assert size is not None
    assert number is not None
    return number["rows"], size["bytes"] / max(1, number["rows"])


def _at(seen: Observation, turn: int) -> Observation:
    start_ns = (turn * 300 + 1) * SECOND
    return replace(seen, start_ns=start_ns, end_ns=start_ns + 290 * SECOND)


def _send(url: str, host_id: int, number: int, pushes: list[Push]) -> None:
    with connected(url, autocommit=True) as db:
        stream = uuid.UUID(int=number + 1)
        for at, payload in enumerate((each for push in pushes for each in pushes_of(push)), start=1):
            db.execute(
                "SELECT * FROM specmine.import_push(%s, %s, %s, %s, %s)",
                (host_id, stream, at, payload, hashlib.sha256(payload).digest()),
            )


if __name__ == "__main__":
    sys.exit(main())
