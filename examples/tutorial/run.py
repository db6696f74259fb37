"""Follows docs/tutorial.md on a redis of its own, and prints each command with its output. ``make tutorial``; root.

Its commands are those that the page shows, in their order, up to the alerts: what stops the daemon of this host is left
out. Lines of the page whose first word no line of the output has are listed at the end. Five minutes; with ``--quick``,
as a test runs it, a minute and a half.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from examples.demo.processes import DIES_WITH_US

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/tutorial.md"
PORT = 7787
FIRST_S, LEARNED_S, NOTICED_S = 60.0, 180.0, 90.0
"""So long it is waited for the first durations, for assertions, and after the change for a violation."""
STABLE = ("single", "explained", "unexplained")
CONFIGURATION = """\
programs: [{{name: redis, exe: {server}}}]
functions: {{watch: [processCommand, readQueryFromClient]}}
host_lock: {folder}/lock
socket: {{path: {folder}/socket}}
store: {{path: {folder}/specmine.db}}
metrics: {{listen: off}}
"""
QUICK = "budget: {overhead: 30%, agent: 50%}\nverify_every: 5s\n"
_LEFT_OUT = ("specmine web", "specmine off", "systemctl disable")
_WORD = re.compile(r"^\s*([A-Za-z][A-Za-z-]{2,})")
_OFFLINE = ("doctor", "mine")
"""Commands that ask no daemon."""


@dataclass(frozen=True, slots=True)
class Step:
    """A command of the page, with what the page shows of its output."""

    command: str
    shown: list[str] = field(default_factory=list)

    def missing(self, output: str) -> list[str]:
        """Return first words of lines shown that no line of the output begins with."""
        words = [match[1] for line in self.shown if (match := _WORD.match(line))]
        begins = {match[1] for line in output.splitlines() if (match := _WORD.match(line))}
        return [each for each in dict.fromkeys(words) if each not in begins]


def steps(text: str) -> list[Step]:
    """Return the commands of the page in their order, without those that are left out."""
    found: list[Step] = []
    for line in text.splitlines():
        if line.startswith("    $ "):
            found.append(Step(line.removeprefix("    $ ").strip()))
        elif line.startswith("    ") and found:
            found[-1].shown.append(line.removeprefix("    "))
        elif line and found and not line.startswith(" "):
            found.append(Step(""))  # what follows is another block
    return [each for each in found if each.command and not each.command.startswith(_LEFT_OUT)]


def main() -> int:
    """Follow the page; 1 if a third of the lines shown, or more, have no counterpart."""
    parser = argparse.ArgumentParser(description="Follow docs/tutorial.md on a redis of its own.")
    parser.add_argument("--quick", action="store_true", help="a larger budget and a shorter mine: a minute and a half")
    quick = parser.parse_args().quick
    if os.geteuid() != 0 or shutil.which("redis-server") is None:
        print("examples.tutorial.run: needs root and redis-server", file=sys.stderr)
        return 4
    lost: list[str] = []
    every = 0
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="specmine-tutorial-")))
        server = folder / "redis-server"  # a file of its own: no other redis of this host is watched
        shutil.copy(str(shutil.which("redis-server")), server)
        redis = stack.enter_context(running(server, "--port", PORT, "--save", "", "--dir", folder))
        load = stack.enter_context(loaded())
        config = folder / "specmined.yaml"
        config.write_text(CONFIGURATION.format(server=server, folder=folder) + (QUICK if quick else ""))
        changed = False
        for step in steps(PAGE.read_text(encoding="utf-8")):
            name = step.command.split()[1]
            if step.command.startswith("systemctl enable"):
                stack.enter_context(running(*specmine_at("specmined"), "--config", config))
                continue
            if name == "functions":
                until(lambda: any(each.get("quantiles") for each in known(folder)), FIRST_S)
            elif name == "status" and not changed:
                until(lambda: all(each["state"] in STABLE for each in known(folder) or [{"state": ""}]), LEARNED_S)
                changed = True
            elif name == "status":
                load.terminate()
                stack.enter_context(loaded(items=3000))
                until(lambda: asked(folder, "status").returncode == 1, NOTICED_S)
            output = run(step.command, redis.pid, folder, config, quick=quick)
            print(f"\n    $ {step.command}\n{output}", flush=True)
            every += len([line for line in step.shown if _WORD.match(line)])
            lost += [f"{step.command}: {word}" for word in step.missing(output)]
    print("\n".join(["", f"{len(lost)} of {every} lines of the page have no counterpart:", *lost]))
    return 1 if 3 * len(lost) >= every else 0


def run(command: str, pid: int, folder: Path, config: Path, *, quick: bool = False) -> str:
    """Run a command of the page on this redis; return its output, indented as on the page."""
    program, *words = shlex.split(command.replace("$(pidof redis-server)", str(pid)))
    if program == "specmined" or words[0] == "mine":
        words += ["--config", str(config)]
    if program == "specmine" and words[0] not in _OFFLINE:
        words += ["--socket", f"{folder}/socket"]
    if words[0] == "mine":
        words += ["--function", "processCommand", "--function", "readQueryFromClient"]
        words += ["--duration", "6"] if quick else []  # the last one counts
    done = subprocess.run(
        [*specmine_at(program), *words], check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env={**os.environ, "COLUMNS": "80"},
    )  # fmt: skip
    return "\n".join(f"    {line}".rstrip() for line in done.stdout.splitlines())


def asked(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Ask the daemon."""
    command = [*specmine_at("specmine"), *words, "--format", "json", "--socket", f"{folder}/socket"]
    return subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def known(folder: Path) -> list[dict[str, Any]]:
    """Return the functions that the daemon knows; none before it answers."""
    said = asked(folder, "functions")
    found: list[dict[str, Any]] = json.loads(said.stdout)["functions"] if said.returncode == 0 else []
    return found


def until(is_so: Callable[[], bool], longest_s: float) -> None:
    """Wait for something; after ``longest_s`` the page is followed all the same, and shows what is there."""
    end_s = time.monotonic() + longest_s
    while not is_so() and time.monotonic() < end_s:
        time.sleep(1)


def loaded(items: int = 300) -> AbstractContextManager[subprocess.Popen[bytes]]:
    """Run the client; ``items`` is the length of the list that it has sorted."""
    end_s = time.monotonic() + 10
    while time.monotonic() < end_s:
        with suppress(OSError), socket.create_connection(("127.0.0.1", PORT), timeout=1):
            break
        time.sleep(0.1)
    return running(sys.executable, ROOT / "examples/tutorial/load.py", PORT, items)


def specmine_at(name: str) -> list[str]:
    """Return how a command of this clone is run."""
    return [sys.executable, "-m", "specmine.daemon.main" if name == "specmined" else "specmine.cli"]


@contextmanager
def running(*argv: object) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process that ends with this one."""
    process = subprocess.Popen([*DIES_WITH_US, *map(str, argv)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(60)


if __name__ == "__main__":
    sys.exit(main())
