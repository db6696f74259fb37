"""The user's command: what it executed, also where nobody saw it; it lives no longer than who started it."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from types import SimpleNamespace
from typing import Any, cast

import pytest

from specmine.daemon.system.launcher import Command, CommandSource
from specmine.model.batch import Batch, Source
from tests.support.patience import patient
from tests.support.product import wait_until

STARTS = """
import sys, time
from specmine.daemon.system.launcher import Command
command = Command(["sh", "-c", sys.argv[1]], sys.argv[2] or None)
command.release()
print(command.pid, flush=True)
time.sleep(600)
"""
CLEANS_UP = "trap 'echo cleaned up; exit 0' TERM; echo ready; while :; do sleep 0.05; done"
AS_NOBODY = pytest.param(
    "nobody", marks=pytest.mark.skipif(os.geteuid() != 0, reason="only root may run it as another")
)


@pytest.mark.parametrize("user", ["", AS_NOBODY])
def test_a_command_gets_sigterm_when_its_parent_is_killed(user: str) -> None:
    """SIGKILL of mine left it running for ever; now it ends, whoever it runs as, and can clean up before."""
    starts = [sys.executable, "-c", STARTS, CLEANS_UP, user]
    with subprocess.Popen(starts, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None and parent.stderr is not None
        pid = int(parent.stdout.readline())
        try:
            assert parent.stderr.readline() == "ready\n"
            parent.kill()
            assert parent.communicate(timeout=patient(60))[1] == "cleaned up\n"  # its output has ended with it
        except subprocess.TimeoutExpired:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
            raise


def test_a_command_that_nobody_saw_has_its_path_name_and_build() -> None:
    """The last batch tells its lifetime, which has ended."""
    command = Command(["true"], None)
    source = SimpleNamespace(
        start=lambda: SimpleNamespace(now_ns=5, lifetimes=()), poll=lambda now_ns: Batch(now_ns=now_ns)
    )
    wrapped = CommandSource(cast(Source, cast(Any, source)), command, None)
    wrapped.start()
    wait_until(lambda: command.poll() is not None, "its end")
    batch = wrapped.poll(9)
    (told,) = batch.lifetimes
    assert batch.ended and batch.exit_status == 0
    assert (told.executable, told.called, told.pid) == (
        os.path.realpath(str(shutil.which("true"))),
        "true",
        command.pid,
    )
    assert (told.start_ns, told.processes) == (5, 0)
    assert told.build_id
