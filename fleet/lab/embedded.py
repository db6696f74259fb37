"""Benchmarks of one host, in its store: the ledger of whoever has no PostgreSQL."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from specmine.model.clock import utc_ns
from specmine.model.errors import InputError
from specmine.store import (
    BenchmarkHost,
    BenchmarkResult,
    BenchmarkRun,
    Store,
    StoredBenchmark,
    Writes,
    open_store,
    read_store,
)
from specmine.store.lock import LockTaken

from .benchmark import Benchmark, benchmark_from
from .ledger import (
    DONE,
    FAILED,
    LONGEST_REASON,
    RUNNING,
    WAITING,
    Claim,
    Failure,
    LabHost,
    LedgerAway,
    NoBenchmark,
    Record,
    RunState,
)
from .run_order import PlannedRun

T = TypeVar("T")
_OPEN = (WAITING, RUNNING)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreLedger:
    """The benchmarks in a store file. It is opened for each question, so that others may write in between."""

    path: Path
    host: str
    now_ns: Callable[[], int] = field(default=utc_ns)
    _checked: set[tuple[int, int]] = field(default_factory=set)
    """Device and inode of files that were looked through for damage: that takes seconds in a large one."""

    def plan(self, benchmark: Benchmark, plan: Mapping[str, Any], runs: Sequence[PlannedRun]) -> None:
        """Write a benchmark down. Raises InputError if there is one of its name."""

        def write(store: Store) -> None:
            if store.read(StoredBenchmark, name=benchmark.name):
                raise InputError(f"there is a benchmark {benchmark.name!r} already", remedy="choose another name")
            made = StoredBenchmark(
                name=benchmark.name, document=benchmark.document(), plan=plan, created_utc_ns=self.now_ns()
            )
            rows = [
                BenchmarkRun(benchmark=benchmark.name, number=each.number, block=each.block, build=each.build,
                             rebuild=each.rebuild)
                for each in runs
            ]  # fmt: skip
            store.write(Writes((made, *rows)), self.now_ns())

        self._written(write)

    def names(self) -> list[str]:
        """Return the benchmarks in the order in which they were planned."""
        if not self.path.is_file():
            return []
        with closing(read_store(self.path)) as store:
            return [each.name for each in store.read(StoredBenchmark)]

    def record(self, name: str) -> Record:
        """Return all that is known of a benchmark. Raises NoBenchmark."""
        found = self.benchmark(name)
        with closing(read_store(self.path)) as store:
            made = store.read(StoredBenchmark, name=name)[0]
            rows, hosts = store.read(BenchmarkRun, benchmark=name), store.read(BenchmarkHost, benchmark=name)
            results = {each.number: each.result for each in store.read(BenchmarkResult, benchmark=name)}
        failures = [
            Failure(number=row.number, attempt=each["attempt"], host=each["host"], at_utc_ns=each["at_utc_ns"],
                    reason=each["reason"])
            for row in rows for each in row.failures
        ]  # fmt: skip
        return Record(
            benchmark=found,
            plan=made.plan,
            created_utc_ns=made.created_utc_ns,
            now_utc_ns=self.now_ns(),
            runs=[
                RunState(run=_planned(row), state=row.state, host=row.host, attempts=row.attempts,
                         begun_utc_ns=row.begun_utc_ns, ended_utc_ns=row.ended_utc_ns,
                         result=results.get(row.number, b""))
                for row in rows
            ],
            hosts=[LabHost(host=each.host, heard_utc_ns=each.heard_utc_ns, facts=each.facts) for each in hosts],
            failures=sorted(failures, key=lambda each: (each.at_utc_ns, each.number)),
        )  # fmt: skip

    def benchmark(self, name: str) -> Benchmark:
        """Return a benchmark. Raises NoBenchmark."""
        known = self.names()
        if name not in known:
            raise NoBenchmark(name, known)
        with closing(read_store(self.path)) as store:
            return benchmark_from(store.read(StoredBenchmark, name=name)[0].document)

    def hello(self, name: str, facts: Mapping[str, Any]) -> None:
        """Say that a runner of this host is there, and what host it is."""
        host = BenchmarkHost(benchmark=name, host=self.host, heard_utc_ns=self.now_ns(), facts=facts)
        self._written(lambda store: store.write(Writes((host,)), self.now_ns()))

    def claim(self, name: str) -> Claim | None:
        """Take the next run; None if there is none now."""
        benchmark = self.benchmark(name)

        def take(store: Store) -> Claim | None:
            now = self.now_ns()
            before = store.read(BenchmarkRun, benchmark=name)
            rows = [_freed(each, now, benchmark.retries) for each in before]
            chosen = next((each for each in rows if each.state == WAITING), None)
            if chosen is not None:
                chosen = replace(
                    chosen, state=RUNNING, host=self.host, attempts=chosen.attempts + 1, token=secrets.token_hex(8),
                    leased_utc_ns=now + int(benchmark.lease * 1e9), begun_utc_ns=now,
                )  # fmt: skip
            changed = [row for row, was in zip(rows, before, strict=True) if row is not was]
            store.write(Writes((*changed, *([chosen] if chosen else []), *self._heard(store, name, now))), now)
            return Claim(run=_planned(chosen), attempt=chosen.attempts, token=chosen.token) if chosen else None

        return self._written(take)

    def beat(self, name: str, claim: Claim) -> bool:
        """Renew the lease; False if another runner has the run."""
        lease_ns = int(self.benchmark(name).lease * 1e9)

        def renew(store: Store) -> bool:
            row, now = self._row(store, name, claim), self.now_ns()
            if row is None:
                return False
            renewed = replace(row, leased_utc_ns=now + lease_ns)
            store.write(Writes((renewed, *self._heard(store, name, now))), now)
            return True

        return self._written(renew)

    def finish(self, name: str, claim: Claim, result: bytes) -> bool:
        """Hand a result in; False if another runner has the run, and this result does not count."""

        def end(store: Store) -> bool:
            row, now = self._row(store, name, claim), self.now_ns()
            if row is None:
                return False
            ended = replace(row, state=DONE, ended_utc_ns=now)
            store.write(Writes((ended, BenchmarkResult(benchmark=name, number=row.number, result=result))), now)
            return True

        return self._written(end)

    def fail(self, name: str, claim: Claim, reason: str, *, counts: bool = True) -> None:
        """Give a run back: it is tried again, or has failed if it was tried often enough."""
        retries = self.benchmark(name).retries

        def end(store: Store) -> None:
            row, now = self._row(store, name, claim), self.now_ns()
            if row is not None:
                store.write(Writes((_failed(row, reason, now, retries, counts=counts),)), now)

        self._written(end)

    def left(self, name: str) -> int:
        """Return how many runs have neither a result nor failed for good."""
        with closing(read_store(self.path)) as store:
            return sum(each.state in _OPEN for each in store.read(BenchmarkRun, benchmark=name))

    def _heard(self, store: Store, name: str, now: int) -> list[BenchmarkHost]:
        known = store.read(BenchmarkHost, benchmark=name, host=self.host)
        return [replace(each, heard_utc_ns=now) for each in known]

    @staticmethod
    def _row(store: Store, name: str, claim: Claim) -> BenchmarkRun | None:
        """Return a run if the lease of a claim is still the one that counts."""
        row = store.read(BenchmarkRun, benchmark=name, number=claim.run.number)[0]
        return row if row.state == RUNNING and row.token == claim.token else None

    def _written(self, work: Callable[[Store], T]) -> T:
        try:
            with open_store(self.path, check=self._file() not in self._checked) as store:
                self._checked.add(self._file())
                return work(store)
        except LockTaken as error:
            raise LedgerAway(error.message, remedy=error.remedy) from error

    def _file(self) -> tuple[int, int]:
        """Return which file there is now, (0, 0) for none."""
        try:
            status = self.path.stat()
        except OSError:
            return 0, 0
        return status.st_dev, status.st_ino


def _planned(row: BenchmarkRun) -> PlannedRun:
    return PlannedRun(number=row.number, block=row.block, build=row.build, rebuild=row.rebuild)


def _freed(row: BenchmarkRun, now: int, retries: int) -> BenchmarkRun:
    """Return a run that others may take if its lease has run out."""
    if row.state != RUNNING or row.leased_utc_ns >= now:
        return row
    return _failed(row, "its runner was not heard of any more", now, retries)


def _failed(row: BenchmarkRun, reason: str, now: int, retries: int, *, counts: bool = True) -> BenchmarkRun:
    attempts = row.attempts if counts else row.attempts - 1
    failure = {"attempt": row.attempts, "host": row.host, "at_utc_ns": now, "reason": reason[:LONGEST_REASON]}
    return replace(
        row, state=FAILED if attempts > retries else WAITING, attempts=attempts, token="", ended_utc_ns=now,
        failures=(*row.failures, failure),
    )  # fmt: skip
