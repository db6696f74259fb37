"""Whether anything is started at all: the first look at the host, by whoever wants an experiment, at its own weight.

The process that runs experiments has the lowest weight before it reads anything in, so beside tasks that want all CPUs
its start alone takes ten seconds. The caller looks before, and a busy host is told at once and left alone. The process
looks again: time has passed since.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from specmine.experiments.host.counters import busy_ratio, read_counters
from specmine.experiments.host.facts import forbidden_cpus, read_host
from specmine.experiments.results.document import Document, skipped
from specmine.experiments.results.journal import keep_journal, read_journal
from specmine.experiments.types import Experiment, Host

from . import load_gate, lock
from .client import Running

_PAUSE_S = 1.0
Request = Mapping[str, Any]


class Look:
    """A look at the host, from when it is made until it is asked; ``load_gate.FIRST_LOOK_S`` apart tells enough."""

    def __init__(self) -> None:
        """Begin."""
        self._before = read_counters()

    def refusals(self, chosen: list[Experiment], request: Request) -> list[Document | None]:
        """Return the results of those experiments that may not start, None for those that may as far as a look tells.

        Parameters
        ----------
        chosen : list of Experiment
            What is wanted.
        request : mapping
            How, as ``runner.server.serve`` takes it. What is refused goes into its journal.

        Raises
        ------
        SpecmineError
            If the journal cannot be written.
        """
        now = {"utc_ns": time.time_ns(), "now_ns": time.monotonic_ns()}
        if lock.taken(lock.default_path()):
            return [skipped(each, lock.BUSY, Host(cpus=()), **now) for each in chosen]
        after = read_counters()
        host, busy = read_host(pid=request.get("pid") or "self"), busy_ratio(self._before, after)
        cpus = load_gate.candidates(host, forbidden_cpus(), busy)
        found: list[Document | None] = []
        for each in chosen:
            parameters = {**each.parameters, **request.get("parameters", {})}
            reason = load_gate.dangerous(each, parameters, allowed=bool(request.get("dangerous")))
            if reason is None and each.cpus != "none":
                reason = load_gate.refused(each, cpus, self._before, after)
                if reason is not None and reason.code == "busy-host" and request.get("force"):
                    reason = None
            found.append(None if reason is None else skipped(each, reason, host, **now))
        return found


def answered(request: Request, *, start: Callable[[Request], Running] = Running) -> list[Document]:
    """Run what a request asks for if the host lets it, and return the results.

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
        look = Look()
        time.sleep(load_gate.FIRST_LOOK_S)
        refused = look.refusals(chosen, request)
        waits = time.monotonic() + _PAUSE_S < until and any(_passes(each) for each in refused)
        if not waits or not all(refused):
            break
        time.sleep(_PAUSE_S)
    if waits:
        refused = [None] * len(chosen)  # some may start: their process waits for the others
    keep([each for each in refused if each is not None], Path(request["state"]))
    names = [name for name, skip in zip(request["names"], refused, strict=True) if skip is None]
    if not names:
        return [each for each in refused if each is not None]
    running = start({**request, "names": names, "wait_seconds": max(0.0, until - time.monotonic())})
    try:
        found = iter(running.answer())
    except BaseException:
        running.close()
        raise
    return [next(found) if each is None else each for each in refused]


def keep(skips: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Note in a journal what was not started.

    Raises
    ------
    InputError
        If it cannot be written.
    """
    told = [each for each in skips if each["reason"]["code"] != lock.BUSY.code]
    if not told:
        return
    try:
        with lock.exclusive(lock.default_path()):
            journal = read_journal(path)
            for each in told:
                journal.add(each)
            keep_journal(path, journal)
    except lock.Taken:
        return  # what runs writes the journal whole: one skip less is counted


def _passes(skip: Document | None) -> bool:
    return skip is not None and skip["reason"]["code"] in ("busy-host", lock.BUSY.code)
