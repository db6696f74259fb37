"""The demo's daemon: which functions it watches, what it knows of them, what a scrape and a browser see."""

from __future__ import annotations

import re
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from examples.demo.processes import SCRIPTS, background, foreground
from examples.demo.server import SetupError, free_ports
from specmine.daemon.socket.client import DaemonConnection
from specmine.model.errors import SpecmineError

T = TypeVar("T")
KNOWN = ("single", "explained", "unexplained")
POLL_S = 1.0
START_S = 40.0
CONFIGURATION = """\
programs:
  - {{name: apache2, pid: {pid}}}
functions: {{watch: [{functions}]}}
budget: {{overhead: {overhead}, agent: {agent}}}
"""
"""What the demo shows of its configuration."""
PLACES = """\
store: {{path: {folder}/specmine.db}}
metrics: {{listen: '{metrics}'}}
socket: {{path: {folder}/specmined.sock, mode: "0666"}}
host_lock: {folder}/host.lock
kill_switch: {folder}/off
experiments: {{enabled: false}}
"""
"""The rest keeps all files in the demo's folder. The socket is everybody's: the page runs as nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Daemon:
    """A daemon that runs."""

    socket: Path
    metrics: str
    log: Path
    process: subprocess.Popen[bytes]

    def functions(self) -> list[dict[str, Any]]:
        """Return what it knows of each function; nothing while it is only starting.

        Raises
        ------
        SetupError
            If it has ended.
        """
        if self.process.poll() is not None:
            said = self.log.read_text(errors="replace").strip().splitlines()
            raise SetupError(f"specmined has ended; its last line: {said[-1] if said else 'none'}")
        try:
            with DaemonConnection(self.socket, timeout_s=10) as daemon:
                return list(daemon.ask({"command": "specification"})["functions"])
        except SpecmineError:
            return []

    def show(self, *arguments: str) -> None:
        """Run a command that prints what the daemon knows, after a prompt."""
        print(f"\n$ specmine {' '.join(arguments)}", flush=True)
        foreground([SCRIPTS / "specmine", *arguments, "--socket", self.socket])

    def scraped(self) -> list[str]:
        """Return the samples of a scrape.

        Raises
        ------
        SetupError
            If it gives none.
        """
        try:
            with urllib.request.urlopen(f"http://{self.metrics}/metrics", timeout=10) as answer:
                text = answer.read().decode()
        except OSError as error:
            raise SetupError(f"specmined gives no metrics ({error})") from None
        return [line for line in text.splitlines() if line and not line.startswith("#")]


@contextmanager
def watching(folder: Path, shown: str) -> Iterator[Daemon]:
    """Run a daemon whose configuration begins with what was shown."""
    metrics = f"127.0.0.1:{free_ports(1)[0]}"
    configuration, log = folder / "specmined.yaml", folder / "specmined.log"
    configuration.write_text(shown + PLACES.format(folder=folder, metrics=metrics))
    with background([SCRIPTS / "specmined", "--config", configuration], log=log) as process:
        daemon = Daemon(socket=folder / "specmined.sock", metrics=metrics, log=log, process=process)
        if waited(daemon.functions, START_S) is None:
            raise SetupError(f"specmined has found no function after {START_S:.0f} s")
        yield daemon


def waited(find: Callable[[], T], seconds: float) -> T | None:
    """Return what is found, None if there is nothing after so long; asked at least once."""
    until = time.monotonic() + seconds
    while not (found := find()):
        if time.monotonic() >= until:
            return None
        time.sleep(POLL_S)
    return found


def is_learned(function: Mapping[str, Any]) -> bool:
    """Return whether it is known how long the calls of a function usually take."""
    median = (function.get("quantiles") or {}).get("p50") or {}
    return function["state"] in KNOWN and median.get("low") is not None


def slower(functions: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """Return the open violations of a function that is slower."""
    return [
        each
        for function in functions
        if function["function"] == name
        for each in function.get("violations") or ()
        if each["state"] == "open" and each["direction"] == "slower"
    ]


@contextmanager
def page(folder: Path, daemon: Daemon) -> Iterator[str]:
    """Serve the page; yield its address once it answers. Raises SetupError if it does not."""
    log = folder / "web.log"
    command = [SCRIPTS / "specmine", "web", "--socket", daemon.socket, "--listen", f"127.0.0.1:{free_ports(1)[0]}"]
    with background(command, log=log) as process:

        def address() -> str:
            found = re.search(r"http://\S+/", log.read_text(errors="replace"))
            return found[0] if found else "ended" if process.poll() is not None else ""

        found = waited(address, 30)
        if found is None or found == "ended":
            said = log.read_text(errors="replace").strip().splitlines()
            raise SetupError(f"the page does not start: {said[-1] if said else 'no message'}")
        try:
            urllib.request.urlopen(f"{found}?format=json", timeout=20).close()
        except OSError as error:
            raise SetupError(f"the page at {found} cannot be read ({error})") from None
        yield found
