"""A local user without rights does not end, blind or steer the daemon; tests/support/attacks.py has the attacks."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.support.attacks import ATTACKS, USER, Aim, run_together
from tests.support.breakpoints import family
from tests.support.product import Daemon, daemon, running, wait_for_probes, wait_until

pytestmark = pytest.mark.kernel
ROUNDS = 5
"""In each, attacks of different kinds run together: one that takes all places for clients would keep the others out."""


def calls(one: Daemon, program: str) -> int:
    """Return how many calls of all functions of a program were counted."""
    answer = one.ask("functions")
    return sum(each["calls_counted"] for each in answer["functions"] if each["program"] == program) if answer else -1


def words_of(pid: int) -> bytes:
    """Return the command line of a process, b'' of one that has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def counts_on(one: Daemon, before: int) -> bool:
    """Return whether more calls were counted than before."""
    return calls(one, "single") > before


@contextmanager
def place(there: Path, program: Path) -> Iterator[tuple[Path, Path]]:
    """Give a copy of the program that everyone may run, and a folder for the daemon that everyone may look into."""
    home = there / "home"
    for each in (there, home):
        each.mkdir(exist_ok=True)
        each.chmod(0o755)
    yield Path(shutil.copy(program, there)), home


def test_no_attack_of_a_local_user_does_anything(program: Callable[..., Path]) -> None:
    """After all the daemon and its helpers are the same, it answers, counts on, and has said nothing of an error."""
    harm = []
    with (
        tempfile.TemporaryDirectory(prefix="specmine-attacks-") as there,
        place(Path(there), program("single")) as (path, home),
        running(path, 900) as child,
        daemon(
            home, programs=f"[{{exe: {path}}}]", metrics="{listen: '127.0.0.1:0'}", kill_switch=str(home / "off")
        ) as one,
    ):
        process = one.start()
        wait_for_probes(child.pid, one)
        status = one.first_answer("status")
        for attacks in (ATTACKS[number::ROUNDS] for number in range(ROUNDS)):
            names = ", ".join(each.__name__ for each in attacks)
            folders = [Path(there) / each.__name__ for each in attacks]
            for folder in folders:
                folder.mkdir()
                os.chown(folder, USER, USER)
            pids = tuple(family(process.pid))
            aims = [
                Aim(folder=folder, program=path, home=home, metrics=status["metrics"], pids=pids) for folder in folders
            ]
            kept = {pid for pid in pids if b"holder" in words_of(pid)}
            before = calls(one, "single")
            failed = run_together(attacks, aims)
            assert process.poll() is None, f"the daemon ended under {names}: {one.log.read_text()[-2000:]}"
            wait_until(partial(counts_on, one, before), f"calls after {names}")
            harm += [f"a helper ended under {names}"] if kept - set(family(process.pid)) else []
            harm += [f"{name} failed by itself" for name in failed]
        log = one.log.read_text()
        wrong = (
            "level=error",
            "Traceback",
            "\x1b",
            "the process that parses files ended",
        )  # one that is idle says nothing
        harm += [line for line in log.splitlines() if any(each in line for each in wrong)]
        functions = (one.ask("functions") or {})["functions"]
        assert {each["program"] for each in functions if each["program"]} == {"single"}
        # what all processes map has no program while several run and it was not measured; of no other library
        shared = {"libc.so.6", "ld-linux-x86-64.so.2", "[vdso]"}
        assert {each["module"] for each in functions if not each["program"]} <= shared
        assert (home / "specmine.db").exists() and not (home / "off").exists()
    assert harm == []
