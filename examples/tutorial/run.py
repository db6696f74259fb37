"""Follows docs/tutorial.md on a redis of its own, and prints each command with its output. ``make tutorial``; root.

Its commands are those that the page shows, in their order, up to the alerts: what stops the daemon of this host is left
out. Lines of the page whose first word no line of the output has are listed at the end. Five minutes.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from examples.demo.processes import DIES_WITH_US

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/tutorial.md"
PORT = 7787
LEARNED_S, NOTICED_S = 180.0, 90.0
"""How long after the daemon's start it has assertions, and after the change a violation."""
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
        time.sleep(1)
        load = stack.enter_context(running(sys.executable, ROOT / "examples/tutorial/load.py", PORT))
        config = folder / "specmined.yaml"
        config.write_text(
            f"programs: [{{name: redis, exe: {server}}}]\n"
            "functions: {watch: [processCommand, readQueryFromClient]}\n"
            f"host_lock: {folder}/lock\nsocket: {{path: {folder}/socket}}\nstore: {{path: {folder}/specmine.db}}\n"
            "metrics: {listen: off}\n"
        )
        started_s, changed_s = time.monotonic(), 0.0
        for step in steps(PAGE.read_text(encoding="utf-8")):
            if step.command.startswith("systemctl enable"):
                stack.enter_context(running(*specmine_at("specmined"), "--config", config))
                started_s = time.monotonic()
                continue
            name = step.command.split()[1]
            if name == "functions":
                time.sleep(max(0.0, started_s + 25 - time.monotonic()))
            elif name == "status" and not changed_s:
                time.sleep(max(0.0, started_s + LEARNED_S - time.monotonic()))
            elif name == "status":
                load.terminate()
                stack.enter_context(running(sys.executable, ROOT / "examples/tutorial/load.py", PORT, 3000))
                changed_s = time.monotonic()
                wait_for_violation(folder, changed_s + NOTICED_S)
            elif name == "show":
                changed_s = changed_s or time.monotonic()
            output = run(step.command, redis.pid, folder, config)
            print(f"\n    $ {step.command}\n{output}", flush=True)
            every += len([line for line in step.shown if _WORD.match(line)])
            lost += [f"{step.command}: {word}" for word in step.missing(output)]
    print("\n".join(["", f"{len(lost)} of {every} lines of the page have no counterpart:", *lost]))
    return 1 if 3 * len(lost) >= every else 0


def run(command: str, pid: int, folder: Path, config: Path) -> str:
    """Run a command of the page on this redis; return its output, indented as on the page."""
    program, *words = shlex.split(command.replace("$(pidof redis-server)", str(pid)))
    if program == "specmined" or words[0] == "mine":
        words += ["--config", str(config)]
    if program == "specmine" and words[0] not in _OFFLINE:
        words += ["--socket", f"{folder}/socket"]
    if words[0] == "mine":
        words += ["--function", "processCommand", "--function", "readQueryFromClient"]
    done = subprocess.run(
        [*specmine_at(program), *words], check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env={**os.environ, "COLUMNS": "80"},
    )  # fmt: skip
    return "\n".join(f"    {line}".rstrip() for line in done.stdout.splitlines())


def wait_for_violation(folder: Path, until_s: float) -> None:
    """Wait until something is called slower."""
    command = [*specmine_at("specmine"), "status", "--format", "json", "--socket", f"{folder}/socket"]
    while time.monotonic() < until_s:
        if subprocess.run(command, check=False, stdout=subprocess.DEVNULL).returncode == 1:
            return
        time.sleep(2)


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
