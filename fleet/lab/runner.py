"""The runner of one host: takes run after run, measures, hands in, until nothing is left of a benchmark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from specmine.experiments.host.environment import environment_of
from specmine.experiments.host.facts import read_host
from specmine.experiments.results.journal import default_path, read_journal
from specmine.model.clock import Clock

from .benchmark import Benchmark
from .ledger import Claim, Ledger, LedgerAway
from .measuring import Bench, GivenUp, RunFailed, counted
from .results import BadResult, encoded

T = TypeVar("T")
_RETRY_S = 2.0
_WAIT_S = 1.0
_SIGNS = 4.0
"""Signs of life within a lease."""
Tell = Callable[[str], None]


@dataclass(slots=True, kw_only=True)
class Runner:
    """Works on one benchmark."""

    ledger: Ledger
    name: str
    folder: Path
    clock: Clock
    tell: Tell
    stopped: Callable[[], bool] = lambda: False
    done: int = 0
    failed: int = 0

    def work(self) -> None:
        """Run until nothing is left that any host could still have to run again, or until ``stopped``.

        Raises
        ------
        InputError
            If the benchmark is not there, or the ledger does not answer at the start. Later the runner waits.
        """
        benchmark = self.ledger.benchmark(self.name)
        every_s = benchmark.lease / _SIGNS
        bench = Bench(benchmark=benchmark, folder=self.folder, clock=self.clock, every_s=every_s)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.ledger.hello(self.name, environment_facts())
        while not self.stopped():
            claim = self._asked(lambda: self.ledger.claim(self.name))
            if claim is not None:
                self._run(benchmark, bench, claim)
            elif self._asked(lambda: self.ledger.left(self.name)) == 0:
                return
            else:  # others are at it: if one of them is gone, its run is ours
                self._rest(min(_WAIT_S, every_s))

    def _run(self, benchmark: Benchmark, bench: Bench, claim: Claim) -> None:
        run = claim.run
        calls = (benchmark.calls or 0) + (benchmark.warm_up or 0)
        try:
            measured = bench.run(run.build, run.rebuild, calls, lambda: self._alive(claim))
            kept = counted(measured.found, benchmark.warm_up or 0, benchmark.calls)
            result = encoded(kept)
        except GivenUp:
            if self.stopped():
                self._give_back(claim)
            return
        except (RunFailed, BadResult) as error:
            why = str(error)
            self.failed += 1
            self.tell(f"run {run.number + 1} of {run.build}, attempt {claim.attempt}: {why}")
            self._asked(lambda: self.ledger.fail(self.name, claim, why))
            return
        if self._asked(lambda: self.ledger.finish(self.name, claim, result)):
            self.done += 1
            self.tell(f"run {run.number + 1}: {run.build}, {measured.seconds:.2f} s")

    def _alive(self, claim: Claim) -> bool:
        """Give a sign of life; a database that is away for a while ends no run."""
        if self.stopped():
            return False
        try:
            return self.ledger.beat(self.name, claim)
        except LedgerAway:
            return True

    def _give_back(self, claim: Claim) -> None:
        try:
            self.ledger.fail(self.name, claim, "its runner was stopped", counts=False)
        except LedgerAway as error:  # then its lease runs out
            self.tell(str(error))

    def _asked(self, question: Callable[[], T]) -> T | None:
        """Ask until there is an answer; None if the runner is stopped meanwhile."""
        told = False
        while True:
            try:
                return question()
            except LedgerAway as error:
                if not told:
                    told = True
                    self.tell(str(error))
                if self.stopped():
                    return None
                self._rest(_RETRY_S)

    def _rest(self, seconds: float) -> None:
        until = self.clock.now_ns() + int(seconds * 1e9)
        while not self.stopped() and self.clock.now_ns() < until:
            self.clock.sleep_until_ns(min(until, self.clock.now_ns() + 100_000_000))


def environment_facts() -> Mapping[str, Any]:
    """Return what is known of this host: ``specmine.environment/1``."""
    return environment_of(read_journal(default_path()).entries, read_host()).document()
