"""No way of ending the daemon leaves a probe in the program, or what it knew behind."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.breakpoints import Text, family
from tests.support.killing import kill, observations_stored
from tests.support.product import (
    PATIENCE_S,
    busy,
    daemon,
    running,
    seconds_until_clean,
    stop,
    wait_for_probes,
    wait_until,
    wait_until_gone,
)

pytestmark = pytest.mark.kernel

Programs = Callable[..., Path]
KILLS = 5
WATCH = "{watch: [z]}"
"""Where it does not matter how functions are found: one that is named has its probe two seconds earlier."""


def test_a_killed_daemon_leaves_no_probe_and_the_next_goes_on(program: Programs, tmp_path: Path) -> None:
    """Killed at any moment, the daemon is survived by its program and its knowledge, and by no probe."""
    path, chance = program("forks"), random.Random(7)
    with running(path, 600, 64) as child, daemon(tmp_path, programs=f"[{{exe: {path}}}]") as one:
        one.start()
        kills = []
        for number in range(KILLS):
            how = {"at_start": number % 5 == 4, "while_on": number < 3}
            kills.append(kill(one, child.pid, chance.uniform(0, 1), **how))
            assert child.poll() is None
    assert any(each.probes for each in kills)  # else the test has seen nothing
    assert all(each.continued for each in kills)
    assert sum(kills[-1].restored.values()) >= sum(kills[0].stored.values())


def test_a_stopped_daemon_frees_the_program_and_goes_on_later(program: Programs, tmp_path: Path) -> None:
    """After SIGSTOP no probe stays, also on a busy host; after SIGCONT watching goes on."""
    path = program("paths")
    with running(path, 300) as child, daemon(tmp_path, programs=f"[{{exe: {path}}}]", functions=WATCH) as one:
        process = one.start()
        wait_for_probes(child.pid, one)
        with Text(family(child.pid)) as text:
            with busy():
                stop(process)
                seconds_until_clean(text)
            process.send_signal(signal.SIGCONT)
            wait_for_probes(child.pid, one)
        assert process.poll() is None
        assert child.poll() is None


def test_a_terminated_daemon_ends_in_order(program: Programs, tmp_path: Path) -> None:
    """SIGTERM: every probe goes, the exit code is 0, the store holds all that was known."""
    path = program("paths")
    with running(path, 300) as child, daemon(tmp_path, programs=f"[{{exe: {path}}}]", functions=WATCH) as one:
        process = one.start()
        wait_for_probes(child.pid, one)
        wait_until(lambda: any(_observations(one.ask("functions"))), "an observation")
        with Text(family(child.pid)) as text:
            known = sum(_observations(one.ask("functions")))
            process.terminate()
            seconds_until_clean(text)
            assert process.wait(PATIENCE_S) == 0
        assert sum(observations_stored(one).values()) >= known
        assert not one.socket.exists()
        assert "level=error" not in one.log.read_text()
        assert child.poll() is None


def test_sigterm_ends_a_daemon_at_any_moment_of_its_start(program: Programs, tmp_path: Path) -> None:
    """A daemon that is told to end before it watches does so in order, and leaves no process."""
    path = program("single")
    with running(path, 120), daemon(tmp_path, programs=f"[{{exe: {path}}}]") as one:
        for delay_s in (0.5, 1.0, 1.6):
            process = one.start()
            time.sleep(delay_s)
            children = family(process.pid)[1:]
            process.terminate()
            assert process.wait(PATIENCE_S) in (0, -signal.SIGTERM)
            wait_until_gone(children)
        assert "Traceback" not in one.log.read_text()


def _observations(answer: dict[str, object] | None) -> list[int]:
    functions = (answer or {}).get("functions")
    return [int(each["observations"]) for each in functions] if isinstance(functions, list) else []
