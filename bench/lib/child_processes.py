"""Processes of a bench that die with it, however it ends: by a time limit, SIGTERM or SIGKILL."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1


def started(command: Sequence[object], **how: Any) -> subprocess.Popen[bytes]:
    """Start a command that is killed when the thread that starts it ends; ``how`` goes to Popen."""
    parent = os.getpid()

    def tied() -> None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it died before
            os._exit(1)

    return subprocess.Popen([str(each) for each in command], preexec_fn=tied, **how)  # noqa: PLW1509  tied is C only


@contextlib.contextmanager
def running(command: Sequence[object], **how: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command as long as this lasts."""
    process = started(command, **how)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def spinning(*cpus: int) -> Iterator[None]:
    """Run a busy loop on each of some CPUs, in sessions of their own, as foreign load is."""
    with contextlib.ExitStack() as stack:
        for cpu in cpus:
            command = ("taskset", "-c", cpu, "sh", "-c", "while :; do :; done")
            stack.enter_context(running(command, start_new_session=True))
        yield


def in_order() -> None:
    """Let SIGTERM end the bench as an error does, so that groups and files go, too."""
    signal.signal(signal.SIGTERM, _ended)


def _ended(*_: object) -> NoReturn:
    sys.exit(128 + signal.SIGTERM)
