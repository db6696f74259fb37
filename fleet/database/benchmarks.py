"""Benchmarks of a fleet: planned by its administrator, claimed and handed in by hosts, read by everybody who reads."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

from specmine.fleet.lab.benchmark import Benchmark, benchmark_from
from specmine.fleet.lab.ledger import (
    LONGEST_REASON,
    Claim,
    Failure,
    LabHost,
    LedgerAway,
    NoBenchmark,
    Record,
    RunState,
)
from specmine.fleet.lab.run_order import PlannedRun
from specmine.model.errors import HostError, InputError

from .connecting import Connection, FleetError, connected, told
from .hosts import hosts
from .pushing import Credentials


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLogin:
    """Who a runner is: a host with its certificate, or somebody who may load and names a host."""

    url: str = field(repr=False)
    host: str = ""
    """Its name, where the certificate does not say it."""
    role: str | None = None
    credentials: Credentials | None = None

    def connect(self) -> Connection:
        """Connect. Raises FleetError."""
        if self.credentials is None:
            return connected(self.url, autocommit=True)
        return connected(self.url, autocommit=True, user=self.role or "", **self.credentials.parameters)


class FleetLedger:
    """A host's side of the benchmarks in a fleet; it connects anew whenever the connection is lost."""

    def __init__(self, login: HostLogin) -> None:
        """Take who we are; nothing is asked yet."""
        self._login = login
        self._db: Connection | None = None

    def benchmark(self, name: str) -> Benchmark:
        """Return a benchmark. Raises NoBenchmark, and InputError if this host is not to run it."""
        return benchmark_from(self._value("SELECT specmine.bench_hello(%s, %s, '{}') AS it", (name, self._login.host)))

    def hello(self, name: str, facts: Mapping[str, Any]) -> None:
        """Say that a runner of this host is there, and what host it is."""
        self._value("SELECT specmine.bench_hello(%s, %s, %s) AS it", (name, self._login.host, Jsonb(dict(facts))))

    def claim(self, name: str) -> Claim | None:
        """Take the next run for this host; None if there is none for it now."""
        row = self._row("SELECT * FROM specmine.bench_claim(%s, %s)", (name, self._login.host))
        if row is None:
            return None
        run = PlannedRun(number=row["number"], block=row["block"], build=row["build"], rebuild=row["rebuild"])
        return Claim(run=run, attempt=row["attempt"], token=str(row["token"]))

    def beat(self, name: str, claim: Claim) -> bool:
        """Renew the lease; False if another runner has the run."""
        return bool(self._value("SELECT specmine.bench_beat(%s, %s, %s, %s) AS it", self._of(name, claim)))

    def finish(self, name: str, claim: Claim, result: bytes) -> bool:
        """Hand a result in; False if another runner has the run, and this result does not count."""
        return bool(
            self._value("SELECT specmine.bench_finish(%s, %s, %s, %s, %s) AS it", (*self._of(name, claim), result))
        )

    def fail(self, name: str, claim: Claim, reason: str, *, counts: bool = True) -> None:
        """Give a run back: it is tried again, or has failed if it was tried often enough."""
        text = reason.replace("\0", "")[:LONGEST_REASON]
        self._value("SELECT specmine.bench_fail(%s, %s, %s, %s, %s, %s) AS it", (*self._of(name, claim), text, counts))

    def left(self, name: str) -> int:
        """Return how many runs have neither a result nor failed for good."""
        return int(self._value("SELECT specmine.bench_left(%s, %s) AS it", (name, self._login.host)))

    def close(self) -> None:
        """End the connection."""
        if self._db is not None:
            self._db.close()
            self._db = None

    def _of(self, name: str, claim: Claim) -> tuple[object, ...]:
        return name, self._login.host, claim.run.number, uuid.UUID(claim.token)

    def _value(self, statement: str, parameters: Sequence[object]) -> Any:
        row = self._row(statement, parameters)
        assert row is not None
        return row["it"]

    def _row(self, statement: str, parameters: Sequence[object]) -> dict[str, Any] | None:
        try:
            with told(self._login.url):
                try:
                    if self._db is None:
                        self._db = self._login.connect()
                    return self._db.execute(statement, parameters).fetchone()
                except psycopg.errors.NoDataFound as error:
                    raise NoBenchmark(str(parameters[0]), []) from error
                except psycopg.errors.InvalidAuthorizationSpecification as error:
                    raise InputError(_first_line(error), remedy="see: specmine fleet hosts") from error
        except FleetError as error:
            self.close()
            raise LedgerAway(error.message, remedy=error.remedy) from error
        except HostError:
            self.close()
            raise


def plan_benchmark(db: Connection, benchmark: Benchmark, plan: Mapping[str, Any], runs: Sequence[PlannedRun]) -> None:
    """Write a benchmark down, all of it or nothing. Raises InputError if there is one of its name."""
    with db.transaction():
        row = db.execute(
            "INSERT INTO specmine.bench_plan(name, document, plan) VALUES (%s, %s, %s)"
            " ON CONFLICT DO NOTHING RETURNING plan_id",
            (benchmark.name, Jsonb(benchmark.document()), Jsonb(dict(plan))),
        ).fetchone()
        if row is None:
            raise InputError(f"there is a benchmark {benchmark.name!r} already", remedy="choose another name")
        number = row["plan_id"]
        with db.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO specmine.bench_block(plan_id, block) VALUES (%s, %s)",
                [(number, block) for block in sorted({each.block for each in runs})],
            )
            cursor.executemany(
                "INSERT INTO specmine.bench_run(plan_id, number, block, build, rebuild) VALUES (%s, %s, %s, %s, %s)",
                [(number, each.number, each.block, each.build, each.rebuild) for each in runs],
            )


def hosts_for(db: Connection, labels: Mapping[str, str]) -> list[str]:
    """Return the names of the active hosts that have some labels."""
    return [each.name for each in hosts(db, labels) if each.state == "active"]


def benchmark_names(db: Connection) -> list[str]:
    """Return the benchmarks in the order in which they were planned."""
    return [row["name"] for row in db.execute("SELECT name FROM specmine.bench_plan ORDER BY plan_id")]


def benchmark_record(db: Connection, name: str) -> Record:
    """Return all that is known of a benchmark. Raises NoBenchmark."""
    with db.transaction():
        db.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        made = db.execute("SELECT *, now() AS now FROM specmine.bench_plan WHERE name = %s", (name,)).fetchone()
        if made is None:
            raise NoBenchmark(name, benchmark_names(db))
        known = {row["host_id"]: row["name"] for row in db.execute("SELECT host_id, name FROM specmine.host")}
        rows = db.execute(
            "SELECT * FROM specmine.bench_run WHERE plan_id = %s ORDER BY number", (made["plan_id"],)
        ).fetchall()
        there = db.execute("SELECT * FROM specmine.bench_host WHERE plan_id = %s", (made["plan_id"],)).fetchall()
        failures = db.execute(
            "SELECT * FROM specmine.bench_failure WHERE plan_id = %s ORDER BY at, number", (made["plan_id"],)
        ).fetchall()
    return Record(
        benchmark=benchmark_from(made["document"]),
        plan=made["plan"],
        created_utc_ns=_ns(made["created_at"]),
        now_utc_ns=_ns(made["now"]),
        runs=[
            RunState(
                run=PlannedRun(number=row["number"], block=row["block"], build=row["build"], rebuild=row["rebuild"]),
                state=row["state"], host=known.get(row["host_id"], ""), attempts=row["attempts"],
                begun_utc_ns=_ns(row["begun_at"]), ended_utc_ns=_ns(row["ended_at"]), result=row["result"] or b"",
            )
            for row in rows
        ],
        hosts=sorted(
            (LabHost(host=known.get(row["host_id"], ""), heard_utc_ns=_ns(row["heard_at"]), facts=row["facts"])
             for row in there),
            key=lambda each: each.host,
        ),
        failures=[
            Failure(number=row["number"], attempt=row["attempt"], host=known.get(row["host_id"], ""),
                    at_utc_ns=_ns(row["at"]), reason=row["reason"])
            for row in failures
        ],
    )  # fmt: skip


def _ns(moment: datetime | None) -> int:
    return 0 if moment is None else int(moment.timestamp() * 1e6) * 1000


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else "the fleet refuses this host"
