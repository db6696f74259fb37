"""What a command executed is known, also where it ended before anybody could look."""

from __future__ import annotations

import os
import shutil
from types import SimpleNamespace
from typing import Any, cast

from specmine.daemon.system.launcher import Command, CommandSource
from specmine.model.batch import Batch, Source
from tests.support.product import wait_until


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
