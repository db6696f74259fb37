"""The process that runs experiments: one request as JSON on standard input, one answer on standard output.

It is a process of its own for three reasons: nothing of it stays in the daemon, it can lead a session (the fallback of
confinement), and systemd can start it as a unit. It ends when its standard input is closed.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from specmine.experiments.library import EXPERIMENTS
from specmine.experiments.load.cgroup_confinement import confined, remove_leftovers
from specmine.experiments.load.tasks import Interrupted, rest
from specmine.experiments.load.worker_binary import worker_binary
from specmine.experiments.results.document import Document, skipped
from specmine.experiments.results.journal import read_journal, store_journal
from specmine.experiments.types import Experiment, Host
from specmine.model.errors import HostError, SpecmineError
from specmine.model.function import Reason

from . import lock
from .run import RunEnvironment, RunRequest, perform
from .schedule import PASSING

_PAUSE_S = 2.0


def main() -> int:
    """Answer one request."""
    signal.signal(signal.SIGTERM, _stop)
    request = json.loads(sys.stdin.buffer.readline())
    try:
        answer: dict[str, Any] = {"results": serve(request, cancel_fd=0)}
    except SpecmineError as error:
        answer = {"error": {"message": error.message, "remedy": error.remedy, "exit_code": error.exit_code}}
    except Interrupted:
        return 130
    data = json.dumps(answer, allow_nan=False).encode() + b"\n"
    while data:
        data = data[os.write(1, data) :]
    return 0


def serve(request: dict[str, Any], *, cancel_fd: int = -1) -> list[Document]:
    """Run the requested experiments.

    Parameters
    ----------
    request : dict
        ``names``, ``parameters``, ``force``, ``dangerous``, ``pid``, ``wait_seconds``, ``state`` (path of the
        journal), ``in_unit``.
    cancel_fd : int
        Descriptor that becomes readable when nobody waits for the answer any more.
    """
    until = time.monotonic() + float(request.get("wait_seconds", 0.0))
    path = Path(request["state"])
    chosen = [EXPERIMENTS[name] for name in request["names"]]
    while True:
        try:
            with lock.exclusive(lock.default_path()):
                return _results(chosen, request, path, until, cancel_fd)
        except lock.LockTaken:
            if time.monotonic() >= until:
                now = {"utc_ns": time.time_ns(), "now_ns": time.monotonic_ns()}
                return [skipped(experiment, lock.BUSY, Host(cpus=()), **now) for experiment in chosen]
            rest(_PAUSE_S / 4, cancel_fd)


def _results(
    chosen: list[Experiment], request: dict[str, Any], path: Path, until: float, cancel_fd: int
) -> list[Document]:
    remove_leftovers()
    how = RunRequest(
        parameters=request.get("parameters", {}),
        force=bool(request.get("force")),
        dangerous=bool(request.get("dangerous")),
        pid=request.get("pid"),
    )
    results = []
    with contextlib.ExitStack() as stack:
        environment = RunEnvironment(journal=read_journal(path), cancel_fd=cancel_fd)
        try:
            environment.worker = worker_binary()
        except HostError as error:
            text = f"load tasks are compiled C, and {error.message}"
            environment.no_worker = Reason(code="needs-native", text=text, remedy=error.remedy)
        try:
            if all(each.weight == "ordinary" or each.cpus == "none" for each in chosen):
                raise HostError("no experiment here runs at the lowest weight")
            environment.confinement = stack.enter_context(confined(in_unit=bool(request.get("in_unit"))))
        except HostError as error:
            environment.no_confinement = Reason(code="confinement", text=error.message, remedy="run it as root")
        for experiment in chosen:
            result = perform(experiment, how, environment)
            while _may_help(result) and time.monotonic() + _PAUSE_S < until:
                rest(_PAUSE_S, cancel_fd)
                result = perform(experiment, how, environment)
            store_journal(path, environment.journal)
            results.append(result)
    return results


def _may_help(result: Document) -> bool:
    return not result["valid"] and result["reason"]["code"] in PASSING


def _stop(*_: object) -> None:
    raise Interrupted
