"""The first check of the host, made by the caller at its own priority, before any process is started.

The process that runs experiments takes the lowest priority before it imports anything. Next to tasks that want all
CPUs, its start alone takes ten seconds. So the caller checks first: a busy host is reported at once and left alone. The
process checks again, because time has passed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from specmine.experiments.host.counters import busy_ratio, read_counters
from specmine.experiments.host.facts import forbidden_cpus, read_host
from specmine.experiments.results.document import Document, skipped
from specmine.experiments.results.journal import read_journal, store_journal
from specmine.experiments.types import Experiment, Host

from . import load_gate, lock
from .client import ExperimentProcess

_PAUSE_S = 1.0
Request = Mapping[str, Any]


class HostCheck:
    """A check of the host's load, from its construction to ``refusals``; ``FIRST_CHECK_S`` between them is enough."""

    def __init__(self) -> None:
        """Begin."""
        self._before = read_counters()

    def refusals(self, chosen: list[Experiment], request: Request) -> list[Document | None]:
        """Return the results of those experiments that may not start, and None for each that may.

        Parameters
        ----------
        chosen : list of Experiment
            The experiments requested.
        request : mapping
            How, as ``runner.server.serve`` takes it. What is refused goes into its journal.

        Raises
        ------
        SpecmineError
            If the journal cannot be written.
        """
        now = {"utc_ns": time.time_ns(), "now_ns": time.monotonic_ns()}
        if lock.is_taken(lock.default_path()):
            return [skipped(experiment, lock.BUSY, Host(cpus=()), **now) for experiment in chosen]
        after = read_counters()
        host, busy = read_host(pid=request.get("pid") or "self"), busy_ratio(self._before, after)
        cpus = load_gate.candidates(host, forbidden_cpus(), busy)
        results: list[Document | None] = []
        for experiment in chosen:
            parameters = {**experiment.parameters, **request.get("parameters", {})}
            reason = load_gate.dangerous(experiment, parameters, allowed=bool(request.get("dangerous")))
            if reason is None and experiment.cpus != "none":
                reason = load_gate.refused(experiment, cpus, self._before, after)
                if reason is not None and reason.code == "busy-host" and request.get("force"):
                    reason = None
            results.append(None if reason is None else skipped(experiment, reason, host, **now))
        return results


def run_admitted(
    request: Request, *, start: Callable[[Request], ExperimentProcess] = ExperimentProcess
) -> list[Document]:
    """Run the requested experiments as far as the host is quiet enough, and return the results.

    Parameters
    ----------
    request : mapping
        What ``runner.server.serve`` takes. For ``wait_seconds`` a quiet host is waited for.
    start : callable
        Starts the process.

    Raises
    ------
    SpecmineError
        If there are no results.
    """
    from specmine.experiments.library import EXPERIMENTS  # noqa: PLC0415  1 MB, for those who run them

    until = time.monotonic() + float(request.get("wait_seconds") or 0.0)
    chosen = [EXPERIMENTS[name] for name in request["names"]]
    while True:
        check = HostCheck()
        time.sleep(load_gate.FIRST_CHECK_S)
        refused = check.refusals(chosen, request)
        waits = time.monotonic() + _PAUSE_S < until and any(_temporary(skip) for skip in refused)
        if not waits or not all(refused):
            break
        time.sleep(_PAUSE_S)
    if waits:
        refused = [None] * len(chosen)  # some may start: their process waits for the others
    record_skips([skip for skip in refused if skip is not None], Path(request["state"]))
    names = [name for name, skip in zip(request["names"], refused, strict=True) if skip is None]
    if not names:
        return [skip for skip in refused if skip is not None]
    running = start({**request, "names": names, "wait_seconds": max(0.0, until - time.monotonic())})
    try:
        results = iter(running.answer())
    except BaseException:
        running.close()
        raise
    return [next(results) if skip is None else skip for skip in refused]


def record_skips(skips: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Enter the experiments that were not started in the journal.

    Raises
    ------
    InputError
        If it cannot be written.
    """
    entered = [skip for skip in skips if skip["reason"]["code"] != lock.BUSY.code]
    if not entered:
        return
    try:
        with lock.exclusive(lock.default_path()):
            journal = read_journal(path)
            for skip in entered:
                journal.add(skip)
            store_journal(path, journal)
    except lock.LockTaken:
        return  # the running process writes the whole journal: one skip less is counted


def _temporary(skip: Document | None) -> bool:
    return skip is not None and skip["reason"]["code"] in ("busy-host", lock.BUSY.code)
