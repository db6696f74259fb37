"""What tests of benchmarks share: a benchmark, and a ledger of two hosts in a store or in a fleet."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from specmine.fleet.database.benchmarks import FleetLedger, HostLogin, benchmark_record, plan_benchmark
from specmine.fleet.database.connecting import Connection
from specmine.fleet.database.hosts import enroll
from specmine.fleet.lab.benchmark import Benchmark, benchmark_from
from specmine.fleet.lab.embedded import StoreLedger
from specmine.fleet.lab.ledger import Ledger, Record
from specmine.fleet.lab.results import FunctionResult, encoded
from specmine.fleet.lab.run_order import runs_in_order

HOSTS = ("lab-1", "lab-2")
SECOND = 1_000_000_000
_SCRIPT = (
    "import random, sys; f, n = float(sys.argv[1]), int(sys.argv[2]); s = random.gauss(1, 0.002);"
    " print('duration_ns'); [print(round(10000 * f * s * random.gauss(1, 0.05))) for _ in range(n)]"
)
PRINTS = f'{sys.executable} -S -c "{_SCRIPT}"'
"""A program that takes a factor and a number of calls, and prints so many durations."""


def benchmark(**given: Any) -> Benchmark:
    """Return a benchmark of two builds that has its counts."""
    whole = {
        "name": "b", "builds": {"v1": f"{PRINTS} 1.0 {{calls}}", "v2": f"{PRINTS} 1.1 {{calls}}"}, "calls": 50,
        "lifetimes": 4, "rebuilds": 1, "warm_up": 0, "lease": 60,
    }  # fmt: skip
    return benchmark_from(whole | given)


def result(value: float = 10_000.0, calls: int = 50) -> bytes:
    """Return the bytes of a result whose durations lie around a value."""
    durations = value * (1.0 + 0.05 * np.sin(np.arange(calls) * math.sqrt(2.0)))
    found = FunctionResult(
        function="all", module="", warmup=0, rate=None, durations_ns=np.round(durations), cells=None
    )  # fmt: skip
    return encoded([found])


class Lab(Protocol):
    """Hosts that share a ledger, and time that a test moves."""

    def plan(self, made: Benchmark, hosts: int = 2) -> None:
        """Write a benchmark down."""
        ...

    def host(self, name: str) -> Ledger:
        """Return a host's side."""
        ...

    def pass_seconds(self, seconds: float) -> None:
        """Let time pass."""
        ...

    def record(self, name: str = "b") -> Record:
        """Return all that is known."""
        ...


@dataclass(slots=True)
class StoreLab:
    """Two runners of one store."""

    path: Path
    now_ns: int = field(default=1_700_000_000 * SECOND)

    def plan(self, made: Benchmark, hosts: int = 2) -> None:
        """Write a benchmark down."""
        self.host("lab-1").plan(made, {"hosts": hosts}, _runs(made))

    def host(self, name: str) -> StoreLedger:
        """Return a runner's side."""
        return StoreLedger(path=self.path, host=name, now_ns=self._now)

    def pass_seconds(self, seconds: float) -> None:
        """Let time pass."""
        self.now_ns += int(seconds * SECOND)

    def record(self, name: str = "b") -> Record:
        """Return all that is known."""
        return self.host("lab-1").record(name)

    def _now(self) -> int:
        return self.now_ns


@dataclass(slots=True)
class FleetLab:
    """Two hosts of one fleet."""

    url: str
    db: Connection
    open: list[FleetLedger] = field(default_factory=list)

    def enroll(self) -> None:
        """Enrol the hosts."""
        for each in HOSTS:
            enroll(self.db, each, {"role": "lab"})

    def plan(self, made: Benchmark, hosts: int = 2) -> None:
        """Write a benchmark down."""
        plan_benchmark(self.db, made, {"hosts": hosts}, _runs(made))

    def host(self, name: str) -> FleetLedger:
        """Return a host's side."""
        self.open.append(FleetLedger(HostLogin(url=self.url, host=name)))
        return self.open[-1]

    def pass_seconds(self, seconds: float) -> None:
        """Let time pass: all that was written is so much older."""
        for table, column in (("bench_run", "leased_until"), ("bench_host", "heard_at"), ("bench_host", "hello_at")):
            self.db.execute(f"UPDATE specmine.{table} SET {column} = {column} - make_interval(secs => {seconds})")

    def record(self, name: str = "b") -> Record:
        """Return all that is known."""
        return benchmark_record(self.db, name)

    def close(self) -> None:
        """End all connections."""
        for each in self.open:
            each.close()


def _runs(made: Benchmark) -> Any:
    assert made.lifetimes is not None
    labels = [each.label for each in made.builds]
    return runs_in_order(labels, rebuilds=made.rebuilds or 1, lifetimes=made.lifetimes, seed=made.seed)
