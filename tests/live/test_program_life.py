"""Programs fork, execute something else, load libraries, start late, end early: watching follows, and harms none."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.breakpoints import Text, family
from tests.support.product import PATIENCE_S, SPECMINE, daemon, running, specmine, wait_for_probes, wait_until
from tests.support.truth import function_named

pytestmark = [pytest.mark.kernel, pytest.mark.slow]

Programs = Callable[..., Path]
AMPLE = ("--budget", "50%")
"""Programs that hardly run get a millisecond a second: how cold the caches are decides how many calls that times."""
IGNORES_SIGTERM = "import signal, sys\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: sys.intern('x')"


def mined(*arguments: object, seconds: int) -> dict[str, Any]:
    """Mine and return the specification."""
    done = specmine("mine", "--duration", seconds, "--format", "json", *arguments, timeout_s=seconds + PATIENCE_S)
    assert done.returncode in (0, 3), done.stderr
    assert "Traceback" not in done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


@contextmanager
def mining(*arguments: object) -> Iterator[subprocess.Popen[str]]:
    """Mine in the background, begun when this returns."""
    argv = [SPECMINE, "mine", "--format", "json", *map(str, arguments)]
    child = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert child.stderr is not None
        assert child.stderr.readline() == "specmine: watching\n"
        yield child
    finally:
        child.kill()
        child.communicate()


def test_each_exec_begins_a_lifetime(program: Programs) -> None:
    """A process that executes its program again is watched on, in a lifetime of its own; the build is the same."""
    for seconds in (3, 12):  # how soon a call is timed depends on the host
        document = mined(*AMPLE, "--function", "generation_work", "--", program("execs"), seconds, 3, seconds=16)
        lifetimes = document["program"]["lifetimes"]
        assert len({each["id"] for each in lifetimes}) == 3
        assert len({each["build_id"] for each in lifetimes}) == 1
        if timed := function_named(document, "generation_work")["timed"] > 0:
            break
    assert timed


def test_forks_ends_and_new_starts_are_followed(program: Programs, tmp_path: Path) -> None:
    """Workers belong to their parent's lifetime; after the end of all, the next start of the program is watched."""
    path = program("forks")
    with daemon(tmp_path, programs=f"[{{exe: {path}}}]") as one:
        one.start()
        one.first_answer("status")
        for _ in range(2):
            with running(path, 120, 8) as child:
                wait_until(lambda: _processes(one.ask()) == [9], "nine processes")
                wait_for_probes(child.pid, one)
                with Text([family(child.pid)[-1]]) as text:
                    wait_until(text.changed, "a probe in the last worker")
            wait_until(lambda: _processes(one.ask()) == [], "the end of all")


def _processes(status: dict[str, Any] | None) -> list[int] | None:
    return None if status is None else [each["processes"] for each in status["lifetimes"]]


def test_a_library_that_comes_and_goes_is_watched(program: Programs) -> None:
    """A function of a library loaded later is found by its name and timed while the library is there."""
    document = mined(*AMPLE, "--function", "plugin_work", "--", program("dlopens"), 60, 1500, seconds=4)
    work = function_named(document, "plugin_work")
    assert work["module"] == "plugin.so"
    assert work["timed"] > 0
    assert document["program"]["exit_status"] == 0


@pytest.mark.parametrize(("variant", "between_ms"), [("plain", 0), ("hidden", 2000)])
def test_exceptions_pass_after_a_cpp_library_was_loaded(program: Programs, variant: str, between_ms: int) -> None:
    """A program that names dlopen may throw at once; in another the change to return sites takes a moment."""
    path = program("late", variant)
    document = mined(*AMPLE, "--function", "relay", "--", path, 60, 4000, between_ms, seconds=8)
    assert document["program"]["exit_status"] == 0
    assert function_named(document, "relay")["timed"] > 0


def test_a_program_that_starts_later_is_watched(program: Programs) -> None:
    """--exe waits for the executable to be started."""
    path = program("single")
    for seconds in (4, 16):  # how soon a call is timed depends on the host
        with mining("--duration", seconds, "--function", "smooth", "--exe", path) as process:
            time.sleep(1)
            with running(path, 60) as child:
                out, _ = process.communicate(timeout=PATIENCE_S)
                assert child.poll() is None
        assert process.returncode in (0, 3)
        if timed := function_named(json.loads(out), "smooth")["timed"] > 0:
            break
    assert timed


def test_one_interrupt_shows_what_was_learned(program: Programs) -> None:
    """After one ^C the command ends in order and the specification so far is printed."""
    with mining("--function", "smooth", "--", program("single"), 60) as process:
        time.sleep(3)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode in (0, 3)
    document = json.loads(out)
    assert document["program"]["exit_status"] == 0
    assert function_named(document, "smooth")["state"]


def test_an_interrupt_before_names_are_known_is_lack_of_data(program: Programs) -> None:
    """Right after the start nobody knows yet whether the program has the function: not a wrong name."""
    with mining("--function", "smooth", "--", program("single"), 60) as process:
        process.send_signal(signal.SIGINT)
        out, words = process.communicate(timeout=PATIENCE_S)
    assert process.returncode in (0, 3), words
    assert json.loads(out)["schema"] == "specmine.specification/1"


def test_two_interrupts_give_up(program: Programs) -> None:
    """A second ^C ends at once with 130 and kills a command that does not want to end."""
    with mining("--", sys.executable, "-c", IGNORES_SIGTERM) as process:
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        time.sleep(1)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        out, words = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out) == (130, "")
    assert words.splitlines()[-1] == "specmine: interrupted"


def test_a_command_that_ignores_sigterm_is_killed() -> None:
    """Some time after the end of the duration it gets SIGKILL, and its status says so."""
    document = mined("--", sys.executable, "-c", IGNORES_SIGTERM, seconds=1)
    assert document["program"]["exit_status"] == -signal.SIGKILL


def test_the_program_lives_on_after_mining(program: Programs) -> None:
    """A process watched by its pid is left as it was, no byte of its text changed."""
    with running(program("paths"), 60) as child:
        mined("-p", child.pid, seconds=4)
        assert child.poll() is None
        with Text(family(child.pid)) as text:
            assert text.changed() == []


@pytest.mark.parametrize(("argv", "name", "status"), [(["/bin/true"], "true", 0), (["sh", "-c", "exit 7"], "sh", 7)])
def test_a_command_that_ends_at_once_is_named(argv: list[str], name: str, status: int) -> None:
    """What was executed is known, though nobody saw it run."""
    program = mined("--", *argv, seconds=5)["program"]
    assert (program["name"], program["exit_status"]) == (name, status)
    assert program["path"].startswith("/") and program["build_id"]
