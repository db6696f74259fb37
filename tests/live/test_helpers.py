"""Helpers of the daemon that are killed or stopped: it lives on, the program is free meanwhile, watching comes back."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.breakpoints import Text, family
from tests.support.product import Daemon, daemon, running, seconds_until_clean, wait_for_probes, wait_until

pytestmark = [pytest.mark.kernel, pytest.mark.slow]

Programs = Callable[..., Path]
NAMED = "{watch: [z, smooth]}"
"""Functions that are named have their probes two seconds earlier than those that samples find."""


def helper(one: Daemon, word: str) -> int:
    """Return the child of the daemon whose command line holds a word, 0 if there is none."""
    assert one.process is not None
    for pid in family(one.process.pid)[1:]:
        try:
            if word.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                return pid
        except OSError:
            continue
    return 0


def restarts(one: Daemon, name: str) -> int:
    """Return how often a helper was started anew."""
    return int((one.ask("status") or {}).get("restarts", {}).get(name, -1))


@pytest.mark.parametrize(("number", "functions"), [(signal.SIGKILL, "{}"), (signal.SIGSTOP, NAMED)])
def test_a_holder_that_is_gone_is_replaced(
    program: Programs, tmp_path: Path, number: signal.Signals, functions: str
) -> None:
    """The text is clean soon, the daemon says what was lost, the probes come back, twice; functions go on."""
    path = program("paths")
    with running(path, 300) as child, daemon(tmp_path, programs=f"[{{exe: {path}}}]", functions=functions) as one:
        process = one.start()
        for time in (1, 2):
            wait_for_probes(child.pid, one)
            with Text(family(child.pid)) as text:
                os.kill(helper(one, "holder"), number)
                seconds_until_clean(text)
                wait_until(lambda time=time: restarts(one, "holder") == time, "the daemon to say so")  # type: ignore[misc]
        wait_for_probes(child.pid, one)
        wait_until(lambda: any(each["observations"] for each in (one.ask("functions") or {})["functions"]), "calls")
        assert process.poll() is None and child.poll() is None
        assert "probes are held by a new process" in one.log.read_text()
        assert "Traceback" not in one.log.read_text()


@pytest.mark.parametrize(("number", "functions"), [(signal.SIGKILL, "{}"), (signal.SIGSTOP, NAMED)])
def test_a_reader_that_is_gone_is_replaced(
    program: Programs, tmp_path: Path, number: signal.Signals, functions: str
) -> None:
    """A program that starts later is named and watched all the same."""
    first, second = program("paths"), program("single")
    with daemon(tmp_path, programs=f"[{{exe: {first}}}, {{exe: {second}}}]", functions=functions) as one:
        one.start()
        with running(first, 300) as child:
            wait_for_probes(child.pid, one)
        os.kill(helper(one, "parser"), number)
        with running(second, 300) as child:
            wait_for_probes(child.pid, one)
            assert child.poll() is None
        wait_until(lambda: restarts(one, "reader") > 0, "the daemon to say so")


def test_a_compiler_that_is_killed_is_tried_again(program: Programs, tmp_path: Path) -> None:
    """The start goes on after a pause."""
    path = program("single")
    with running(path, 300) as child, daemon(tmp_path, programs=f"[{{exe: {path}}}]", functions=NAMED) as one:
        one.start()
        killed: list[int] = []

        def kill() -> bool:
            pid = helper(one, "compiler")
            if pid:
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
            return bool(pid)

        wait_until(kill, "the compiler", step_s=0.005)
        wait_for_probes(child.pid, one)
        assert killed


def test_a_helper_that_cannot_live_ends_with_a_code_of_its_own(program: Programs, tmp_path: Path) -> None:
    """A compiler that is killed each time is no fault of the host: 1, after which a service is started anew."""
    path, fake = program("single"), tmp_path / "python3"
    fake.write_text("#!/bin/sh\nkill -9 $$\n")
    fake.chmod(0o755)
    kernel = f"{{interpreter: {fake}}}"
    with running(path, 300), daemon(tmp_path, programs=f"[{{exe: {path}}}]", kernel=kernel) as one:
        assert one.start().wait(120) == 1
        assert "compiling child" in one.log.read_text().splitlines()[-1]
        assert subprocess.run(["pgrep", "-P", str(one.process.pid)], check=False).returncode == 1  # type: ignore[union-attr]
