"""The installed product as its users run it: daemons and commands in processes of their own, private in all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from specmine.daemon.socket.client import DaemonConnection
from specmine.model.errors import SpecmineError
from tests.support.breakpoints import Text, family
from tests.support.patience import patient
from tests.support.yielding import yielding

BIN = Path(sys.executable).parent
SPECMINE, SPECMINED = str(BIN / "specmine"), str(BIN / "specmined")
PATIENCE_S = patient(90.0)
"""For what takes a second or two on a machine with nothing else to do."""


class Daemon:
    """``specmined`` with all its files in one folder; it can be started again and again."""

    def __init__(self, folder: Path, **sections: str) -> None:
        """Write its configuration.

        Parameters
        ----------
        folder : path
        sections : str
            Top-level keys of the configuration as YAML; the defaults keep everything in the folder.
        """
        self.folder = folder
        self.store, self.socket, self.log = folder / "specmine.db", folder / "socket", folder / "log"
        self.config = folder / "specmined.yaml"
        private = {
            "store": f"{{path: {self.store}}}",
            "socket": f"{{path: {self.socket}}}",
            "metrics": "{listen: off}",
            "host_lock": str(folder / "host.lock"),
        }
        self.config.write_text("".join(f"{key}: {text}\n" for key, text in {**private, **sections}.items()))
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *, alone: bool = False) -> subprocess.Popen[bytes]:
        """Start it; what it says goes to the end of the log.

        ``alone``: in a session of its own. Then the kernel gives it a share of a busy host's CPUs as it does to a
        service; else who asks it all the time takes that of both, since the daemon is the nicer one.
        """
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [SPECMINED, "--config", str(self.config)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=alone,
            )
        return self.process

    def ask(self, command: str = "status") -> dict[str, Any] | None:
        """Return its answer, None while it has none."""
        try:
            connection = DaemonConnection(self.socket)
        except SpecmineError:
            return None
        try:
            return connection.ask({"command": command})
        except SpecmineError:
            return None
        finally:
            connection.close()

    def first_answer(self, command: str = "functions") -> dict[str, Any]:
        """Wait until it answers."""
        found: list[dict[str, Any]] = []

        def answered() -> bool:
            assert self.process is not None
            assert self.process.poll() is None, self.log.read_text()
            answer = self.ask(command)
            found.extend([answer] if answer is not None else [])
            return bool(found)

        wait_until(answered, what="the daemon to answer")
        return found[0]

    def end(self) -> None:
        """End it if it runs."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            try:
                self.process.wait(PATIENCE_S)
            finally:
                self.process.kill()
                self.process.wait()


@contextmanager
def daemon(folder: Path, **sections: str) -> Iterator[Daemon]:
    """Give a daemon that is not started yet; it has ended at the end."""
    one = Daemon(folder, **sections)
    try:
        yield one
    finally:
        one.end()


@contextmanager
def running(*argv: object) -> Iterator[subprocess.Popen[str]]:
    """Start a target program; end it, with its children, in any case."""
    command = [str(each) for each in argv]
    with yielding():
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
    try:
        yield child
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
        child.communicate()


@contextmanager
def busy() -> Iterator[None]:
    """Keep every CPU busy twice over; who looks on goes before that."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    burners = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(2 * (os.cpu_count() or 1))]
    try:
        os.setpriority(os.PRIO_PROCESS, 0, -10)
        yield
    finally:
        for each in burners:
            each.kill()
            each.wait()
        os.setpriority(os.PRIO_PROCESS, 0, before)


def wait_until(done: Callable[[], object], what: str, limit_s: float = PATIENCE_S, step_s: float = 0.05) -> float:
    """Wait until something is true and return the seconds that took; fail after the limit."""
    began = time.monotonic()
    while not done():
        assert time.monotonic() - began < limit_s, f"waited {limit_s} s for {what}"
        time.sleep(step_s)
    return time.monotonic() - began


def wait_until_gone(pids: Iterable[int]) -> None:
    """Wait until none of these processes is left."""
    paths = [Path(f"/proc/{pid}") for pid in pids]
    wait_until(lambda: not any(path.exists() for path in paths), f"the end of {paths}")


def wait_for_probes(program: int, one: Daemon) -> None:
    """Wait until a daemon has a probe in the text of a program or of a child of it."""

    def probed() -> bool:
        assert one.process is not None
        assert one.process.poll() is None, one.log.read_text()
        with Text(family(program)) as text:
            return bool(text.changed())

    wait_until(probed, "a probe")


def stop(process: subprocess.Popen[Any]) -> None:
    """Stop a process by SIGSTOP; on a busy host its first thread takes a while to hear of that."""
    process.send_signal(signal.SIGSTOP)
    status = Path(f"/proc/{process.pid}/stat")
    wait_until(lambda: status.read_text().rpartition(")")[2].split()[0] == "T", "the stop", step_s=0.001)


def seconds_until_clean(text: Text, limit_s: float = PATIENCE_S) -> float:
    """Return after how many seconds no probe was left; the time of the look is in it."""
    began = time.monotonic()
    while left := text.changed():
        assert time.monotonic() - began < limit_s, f"still there after {limit_s} s: {left[:5]}"
        time.sleep(0.001)
    return time.monotonic() - began


def specmine(*arguments: object, timeout_s: float = PATIENCE_S, **how: Any) -> subprocess.CompletedProcess[str]:
    """Run a command of the product to its end."""
    return run([SPECMINE, *map(str, arguments)], timeout_s=timeout_s, **how)


def run(argv: Sequence[str], *, timeout_s: float = PATIENCE_S, **how: Any) -> subprocess.CompletedProcess[str]:
    """Run a command to its end and return what it said."""
    return subprocess.run(
        list(argv), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout_s, check=False, **how
    )
