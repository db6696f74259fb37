"""All probes off at once, by file, signal and command, and back: the daemon goes on meanwhile and says so."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.support.breakpoints import Text, family
from tests.support.product import (
    Daemon,
    daemon,
    running,
    seconds_until_clean,
    specmine,
    stop,
    wait_for_probes,
    wait_until,
)

pytestmark = pytest.mark.kernel

Programs = Callable[..., Path]
WATCH = "{watch: [z]}"
"""Where it does not matter how functions are found: one that is named has its probe two seconds earlier."""


def probes(one: Daemon) -> object:
    """Return what status says of the probes."""
    return (one.ask("status") or {}).get("probes")


def test_every_way_takes_all_probes_off(program: Programs, tmp_path: Path) -> None:
    """A file, SIGUSR1 and ``specmine off`` each free the program; no probe comes until it is switched on again."""
    path, switch = program("paths"), tmp_path / "off"
    ways: dict[str, tuple[Callable[[Daemon], object], Callable[[Daemon], object]]] = {
        "file": (lambda one: switch.touch(), lambda one: switch.unlink()),
        "signal": (lambda one: _signal(one, signal.SIGUSR1), lambda one: _signal(one, signal.SIGUSR2)),
        "command": (
            lambda one: specmine("off", "--socket", one.socket),
            lambda one: specmine("on", "--socket", one.socket),
        ),
    }
    with (
        running(path, 300) as child,
        daemon(tmp_path, programs=f"[{{exe: {path}}}]", kill_switch=str(switch)) as one,
    ):
        process = one.start()
        for off, on in ways.values():
            wait_for_probes(child.pid, one)
            with Text(family(child.pid)) as text:
                off(one)
                seconds_until_clean(text)
                wait_until(lambda: probes(one) == "off", "the daemon to say so")
                before = (one.ask("status") or {})["updated"]
                for _ in range(20):
                    assert not text.changed()
                    time.sleep(0.05)
                wait_until(partial(_is_later, one, before), "the loop to turn")
            on(one)
            wait_until(lambda: probes(one) == "on", "the daemon to say so")
        wait_for_probes(child.pid, one)
        assert process.poll() is None
        assert "level=error" not in one.log.read_text()
        assert child.poll() is None


def test_a_switch_that_comes_and_goes_ends_no_daemon(program: Programs, tmp_path: Path) -> None:
    """However fast: afterwards the probes are back, and the switch takes all of them off."""
    path, switch = program("paths"), tmp_path / "off"
    with (
        running(path, 300) as child,
        daemon(tmp_path, programs=f"[{{exe: {path}}}]", kill_switch=str(switch)) as one,
    ):
        process = one.start()
        wait_for_probes(child.pid, one)
        for pause_s in (0.3, 0.2, 0.1, 0.02):
            for _ in range(12):
                switch.touch()
                time.sleep(pause_s)
                switch.unlink()
                time.sleep(pause_s)
            assert process.poll() is None, one.log.read_text()
        wait_until(lambda: probes(one) == "on", "the daemon to say so")
        wait_for_probes(child.pid, one)
        with Text(family(child.pid)) as text:
            switch.touch()
            seconds_until_clean(text)
        assert process.poll() is None
        assert child.poll() is None


def test_a_stopped_holder_cannot_keep_its_probes(program: Programs, tmp_path: Path) -> None:
    """Off is said once the programs' code shows it: the holder, which does nothing, is killed and replaced."""
    path, switch = program("paths"), tmp_path / "off"
    with (
        running(path, 300) as child,
        daemon(tmp_path, programs=f"[{{exe: {path}}}]", kill_switch=str(switch), functions=WATCH) as one,
    ):
        process = one.start()
        wait_for_probes(child.pid, one)
        with Text(family(child.pid)) as text:
            helpers = family(process.pid)[1:]
            holder = next(pid for pid in helpers if b"holder" in Path(f"/proc/{pid}/cmdline").read_bytes())
            os.kill(holder, signal.SIGSTOP)
            done = specmine("off", "--socket", one.socket, "--format", "json")
            if done.returncode == 0:  # on a busy host it may not be said in time
                assert json.loads(done.stdout)["breakpoints"] == 0
                assert not text.changed()
            else:
                assert done.returncode == 3
            seconds_until_clean(text)
            wait_until(lambda: (one.ask("status") or {}).get("breakpoints") == 0, "the daemon to see it")
            assert not text.changed()
        assert process.poll() is None


def test_a_hanging_daemon_cannot_keep_its_probes(program: Programs, tmp_path: Path) -> None:
    """With every thread of the daemon stopped the file alone takes the probes off."""
    path, switch = program("paths"), tmp_path / "off"
    with (
        running(path, 300) as child,
        daemon(tmp_path, programs=f"[{{exe: {path}}}]", kill_switch=str(switch), functions=WATCH) as one,
    ):
        process = one.start()
        wait_for_probes(child.pid, one)
        with Text(family(child.pid)) as text:
            stop(process)
            switch.touch()
            seconds_until_clean(text)
            process.send_signal(signal.SIGCONT)
            wait_until(lambda: probes(one) == "off", "the daemon to say so")
            assert not text.changed()


def test_a_daemon_that_starts_switched_off_waits(program: Programs, tmp_path: Path) -> None:
    """It runs, says so, and begins when it is switched on; ``mine`` does not begin at all."""
    path, switch = program("paths"), tmp_path / "off"
    switch.touch()
    with (
        running(path, 300) as child,
        daemon(tmp_path, programs=f"[{{exe: {path}}}]", kill_switch=str(switch), functions=WATCH) as one,
    ):
        one.start()
        wait_until(lambda: probes(one) == "off", "the daemon to say so")
        with Text(family(child.pid)) as text:
            assert not text.changed()
        mined = specmine("mine", "-p", child.pid, "--config", one.config, "--duration", 2)
        assert mined.returncode == 4
        assert str(switch) in mined.stderr
        done = specmine("on", "--socket", one.socket, "--format", "json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["probes"] == "on"
        wait_for_probes(child.pid, one)


def test_without_a_daemon_the_file_is_made(tmp_path: Path) -> None:
    """``off --file`` and ``on --file`` need no daemon."""
    switch = tmp_path / "run" / "off"
    assert specmine("off", "--file", switch).returncode == 0
    assert switch.exists()
    assert specmine("on", "--file", switch).returncode == 0
    assert not switch.exists()


def _is_later(one: Daemon, before: str) -> bool:
    return str((one.ask("status") or {}).get("updated", "")) > before


def _signal(one: Daemon, number: int) -> None:
    assert one.process is not None
    os.kill(one.process.pid, number)
