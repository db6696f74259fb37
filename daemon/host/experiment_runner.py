"""The daemon's own host experiments: rarely, one at a time, in a process of its own."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from specmine.daemon.config.tree import ExperimentSettings
from specmine.experiments.results.document import stale_reason
from specmine.experiments.results.journal import read_journal
from specmine.experiments.runner.admission import HostCheck, record_skips
from specmine.experiments.runner.client import ExperimentProcess
from specmine.experiments.runner.load_gate import FIRST_CHECK_S
from specmine.experiments.runner.schedule import PASSING, Ledger, Rules, next_experiment
from specmine.experiments.types import SECOND, Experiment, Host
from specmine.model.errors import SpecmineError

CHECK_EVERY_NS = 30 * SECOND
DOCUMENT = "experiments"
"""Name under which the store holds the journal."""


class RunningExperiment(Protocol):
    """An experiment that runs in its process."""

    def ended(self) -> bool:
        """Whether the results are there."""

    def answer(self) -> list[dict[str, Any]]:
        """Return the results."""

    def stop(self) -> None:
        """Let it end soon; does not wait."""

    def close(self) -> None:
        """End it, and wait for its end."""


class PendingCheck(Protocol):
    """A check of the host's load that has begun."""

    def refusals(self, chosen: list[Experiment], request: Mapping[str, Any], /) -> Sequence[Mapping[str, Any] | None]:
        """Return results of those that may not start, None for those that may."""


class ExperimentRunner:
    """Starts experiments when they are due and takes their results; ``turn`` returns at once."""

    def __init__(
        self,
        settings: ExperimentSettings,
        path: Path,
        *,
        host: Callable[[], Host],
        report: Callable[[str], None],
        publish: Callable[[str, Mapping[str, Any]], None],
        start: Callable[[Mapping[str, Any]], RunningExperiment] = ExperimentProcess,
        check: Callable[[], PendingCheck] = HostCheck,
    ) -> None:
        """Take the settings, and where results and failures go.

        Parameters
        ----------
        settings : ExperimentSettings
        path : Path
            The journal.
        host : callable
            Returns the facts of this host.
        report : callable
            Gets one line about each failure.
        publish : callable
            Gets the name and the content of a document to store.
        start : callable
            Starts a request.
        check : callable
            Begins a check of the host's load, before anything is started.
        """
        self.settings = settings
        self._path, self._host, self._report, self._publish, self._start = path, host, report, publish, start
        self._check = check
        self._pending_check: PendingCheck | None = None
        self._running: RunningExperiment | None = None
        self._stopping = False
        self._name = ""
        self._ledger: Ledger | None = None
        self._checked_ns = 0
        self.entries: Mapping[str, Any] = read_journal(path).entries
        """The journal's entries by experiment, for the status."""

    @property
    def pid(self) -> int | None:
        """Process id of the experiment that runs, None if none does."""
        return getattr(self._running, "pid", None)

    def turn(self, now_ns: int, utc_ns: int, *, off: bool = False) -> None:
        """Take the results of what has ended, and start what is due; ``off``: end what runs and start nothing."""
        if self._ledger is None:
            self._ledger = Ledger(began_ns=now_ns)
        if self._running is not None:
            if off and not self._stopping:
                self._stopping = True
                self._running.stop()
            if self._running.ended():
                self._take_results()
        elif off:
            self._pending_check = None
        elif self._pending_check is not None:
            if now_ns - self._checked_ns >= FIRST_CHECK_S * SECOND:
                self._admit()
        elif now_ns - self._checked_ns >= CHECK_EVERY_NS and self.settings.enabled:
            self._checked_ns = now_ns
            self._begin(now_ns, utc_ns)

    def close(self) -> None:
        """End what runs."""
        if self._running is not None:
            self._running.close()
            self._running = None

    def _begin(self, now_ns: int, utc_ns: int) -> None:
        from specmine.experiments.library import EXPERIMENTS, REPEATED  # noqa: PLC0415  1 MB, for those who run them

        assert self._ledger is not None
        host = self._host()
        name = next_experiment(
            EXPERIMENTS,
            Rules(
                names=REPEATED if self.settings.run is None else self.settings.run,
                share=self.settings.share,
                delay_ns=self.settings.delay_ns,
            ),
            self._ledger,
            {name: age for name in self.entries if (age := self._age_ns(name, host, utc_ns)) is not None},
            costs_s={name: each["last"]["cpu_seconds"] for name, each in self.entries.items() if each["valid"]},
            cpus=os.cpu_count() or 1,
            seed=host.boot_id,
            now_ns=now_ns,
        )
        if name is None:
            return
        self._ledger = replace(self._ledger, ran_ns={**self._ledger.ran_ns, name: now_ns})
        self._name, self._pending_check = name, self._check()

    def _admit(self) -> None:
        """Start what is due, unless the host is busy."""
        from specmine.experiments.library import EXPERIMENTS  # noqa: PLC0415

        pending_check, self._pending_check = self._pending_check, None
        assert pending_check is not None
        request = {"names": [self._name], "state": str(self._path)}
        try:
            (skip,) = pending_check.refusals([EXPERIMENTS[self._name]], request)
            if skip is None:
                self._running = self._start(request)
                return
            record_skips([skip], self._path)
        except SpecmineError as error:
            self._failed(self._name, str(error))
            return
        self._record(skip)

    def _take_results(self) -> None:
        running, self._running = self._running, None
        stopped, self._stopping = self._stopping, False
        assert running is not None and self._ledger is not None
        if stopped:
            running.close()
            return
        try:
            result = running.answer()[0]
        except SpecmineError as error:
            self._failed(self._name, f"the experiment {self._name} failed: {error}")
            return
        self._record(result)

    def _record(self, result: Mapping[str, Any]) -> None:
        """Take a result that the journal holds."""
        assert self._ledger is not None
        spent = self._ledger.spent_s + result["cpu_seconds"]
        again = not result["valid"] and result["reason"]["code"] in PASSING
        failures = {**self._ledger.failures, self._name: self._failures() + 1 if again else 0}
        self._ledger = replace(self._ledger, spent_s=spent, failures=failures)
        journal = read_journal(self._path)
        self.entries = journal.entries
        with contextlib.suppress(SpecmineError):
            self._publish(DOCUMENT, journal.document())

    def _failed(self, name: str, text: str) -> None:
        assert self._ledger is not None
        self._ledger = replace(self._ledger, failures={**self._ledger.failures, name: self._failures() + 1})
        self._report(text)

    def _failures(self) -> int:
        return 0 if self._ledger is None else self._ledger.failures.get(self._name, 0)

    def _age_ns(self, name: str, host: Host, utc_ns: int) -> int | None:
        """Return how old a valid result is; None if there is none, or its time was told by a clock that was wrong."""
        valid = self.entries[name]["valid"]
        if not valid or stale_reason(valid, host):
            return None
        age_ns = utc_ns - utc_ns_of(valid["time"])
        return age_ns if age_ns >= 0 else None


def utc_ns_of(moment: str) -> int:
    """Return the time of an RFC 3339 text, ns since 1970."""
    return round(datetime.fromisoformat(moment).timestamp() * SECOND)
