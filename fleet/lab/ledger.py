"""Where runs are written down: who runs which, what came of it. The one seam between a runner and a database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from specmine.model.errors import InputError

from .benchmark import Benchmark
from .run_order import PlannedRun

WAITING, RUNNING, DONE, FAILED = "waiting", "running", "done", "failed"
LARGEST_RESULT = 4 << 20
LONGEST_REASON = 500


class NoBenchmark(InputError):
    """There is no benchmark of this name."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        """Name those that are there."""
        there = f"there are {', '.join(known)}" if known else "plan one with: specmine bench plan"
        super().__init__(f"there is no benchmark {name!r}", remedy=there)


class LedgerAway(InputError):
    """The ledger does not answer now; trying again may help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A run that a runner has a lease of."""

    run: PlannedRun
    attempt: int
    """From 1 on."""
    token: str
    """What a result must show: another runner's lease has another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An attempt that gave no result."""

    number: int
    attempt: int
    host: str
    at_utc_ns: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """What is known of a run."""

    run: PlannedRun
    state: str
    host: str = ""
    """Who runs it, or ran it."""
    attempts: int = 0
    begun_utc_ns: int = 0
    ended_utc_ns: int = 0
    result: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabHost:
    """A host that runs, or ran, a benchmark."""

    host: str
    heard_utc_ns: int
    """When its runner last gave a sign."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Its environment: ``specmine.environment/1``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """All that is known of a benchmark."""

    benchmark: Benchmark
    plan: Mapping[str, Any]
    """Counts and what they rest on."""
    created_utc_ns: int
    now_utc_ns: int
    """By the clock of the database."""
    runs: Sequence[RunState]
    hosts: Sequence[LabHost]
    failures: Sequence[Failure]

    @property
    def complete(self) -> bool:
        """Whether nothing is left to run."""
        return all(each.state in (DONE, FAILED) for each in self.runs)


class Ledger(Protocol):
    """Claims and results of one host's runners. Each method raises LedgerAway if there is no answer now."""

    def benchmark(self, name: str) -> Benchmark:
        """Return a benchmark. Raises NoBenchmark."""
        ...

    def hello(self, name: str, facts: Mapping[str, Any]) -> None:
        """Say that a runner of this host is there, and what host it is."""
        ...

    def claim(self, name: str) -> Claim | None:
        """Take the next run for this host; None if there is none for it now."""
        ...

    def beat(self, name: str, claim: Claim) -> bool:
        """Renew the lease; False if another runner has the run."""
        ...

    def finish(self, name: str, claim: Claim, result: bytes) -> bool:
        """Hand a result in; False if another runner has the run, and this result does not count."""
        ...

    def fail(self, name: str, claim: Claim, reason: str, *, counts: bool = True) -> None:
        """Give a run back: it is tried again, or has failed if it was tried often enough; ``counts``: it was tried."""
        ...

    def left(self, name: str) -> int:
        """Return how many runs have neither a result nor failed for good."""
        ...
