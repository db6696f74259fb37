"""The demo's processes: each ends with it, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

DIES_WITH_US = ("setpriv", "--pdeathsig", "TERM")
"""Before a command: it gets SIGTERM should the demo itself be killed."""
SCRIPTS = Path(sys.executable).parent
"""Where the commands of specmine are."""


def stop(process: subprocess.Popen[bytes], patience_s: float) -> bool:
    """End a process in order, or its whole group with force if it does not hear; True if in order."""
    process.terminate()
    try:
        process.wait(patience_s)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return False
    return True


@contextmanager
def background(command: Sequence[object], log: Path | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command in the background, ended at the end."""
    with (log or Path(os.devnull)).open("wb") as output:
        process = subprocess.Popen(
            [*DIES_WITH_US, *map(str, command)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,  # ^C is for the demo, which stops it in order
        )
    try:
        yield process
    finally:
        stop(process, 10)


def foreground(command: Sequence[object]) -> int:
    """Run a command that prints for us; on ^C it hears it too, and is waited for."""
    sys.stdout.flush()
    process = subprocess.Popen([*DIES_WITH_US, *map(str, command)])
    try:
        return process.wait()
    except BaseException:
        with suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
            process.wait(3)
        if process.returncode is None:
            process.terminate()
            with suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
                process.wait(5)
        if process.returncode is None:
            process.kill()
            process.wait()
        raise
