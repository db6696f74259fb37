"""What do specmine's own processes cost: which one, for what, and how much memory?

    .venv/bin/python -m bench.overhead.own_cost [PROGRAM...] [--seconds 60] [--daemon] [--purposes] [--agent 1%]

Each program is mined for a while by a process of its own, with the caches as they are; with ``--daemon`` a daemon with
defaults watches it instead. Every 0.2 s the process and all its descendants are asked for their CPU time, and every
second for their memory. ``--purposes`` samples the main process by its own CPU time, which costs it a tenth more. The
programs are those of bench/lib/server_load.py, and shop. Needs root, gcc and the packages that server_load.py names.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import yaml

from bench.faults.programs import shop
from bench.lib import server_load
from bench.lib.bytecode import compiled
from bench.lib.child_processes import started
from bench.lib.driver import table
from bench.lib.tools.costs import Costs

NAMES = ("redis-server", "postgres", "shop")
EVERY_S, MEMORY_S = 0.2, 1.0
PURPOSES = (
    ("specmine.daemon.controller.actions:_plan", "plans"),
    ("specmine.daemon.controller.actions:_with_reasons", "reasons"),
    ("specmine.daemon.controller.transitions:", "windows judged"),
    ("specmine.daemon.controller.", "controller, the rest"),
    ("specmine.daemon.persistence.", "store"),
    ("specmine.daemon.regression.", "builds and changes"),
    ("specmine.daemon.documents.", "what is shown"),
    ("specmine.cli.runners.", "what is shown"),
    ("specmine.daemon.metrics.", "metrics"),
    ("specmine.daemon.worker.", "handing jobs over"),
    ("specmine.probes.sampling.", "sampling"),
    ("specmine.probes.timing.", "probes and windows"),
    ("specmine.probes.symbols.", "names and unwind rows"),
    ("specmine.probes.process.", "processes"),
    ("specmine.probes.", "kernel side, the rest"),
    ("importlib._bootstrap:", "imports"),
)
"""Parts of a stack by what they are for: the outermost frame that matches tells, imports before all."""

THROUGH = (
    "specmine.daemon.controller.decide:",
    "specmine.daemon.controller.actions:act",
    "specmine.probes.source:BpfSource.poll",
)
"""Frames that only call what the others are for."""


def made(folder: Path) -> Path:
    """Make a folder inside that servers of other users may enter, and return it."""
    folder.chmod(0o755)
    load = folder / "load"
    load.mkdir()
    return load


@contextmanager
def loaded(name: str, folder: Path) -> Iterator[int]:
    """Run a program under load; yield its pid."""
    folder.chmod(0o755)
    if name == "shop":
        with shop.served(folder) as service:
            yield service.pid
    else:
        with server_load.loaded(name, folder) as running:
            yield running.pid


def watched(command: Sequence[object], profile: Path, seconds: float | None) -> Costs:
    """Run specmine until it ends, or for a while, and return what it used."""
    costs = Costs()
    words = [str(each) for each in command]
    process = started(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    began = time.monotonic()
    try:
        looked = began
        while process.poll() is None:
            now = time.monotonic()
            memory = now - looked >= MEMORY_S
            looked = now if memory else looked
            costs.look(process.pid, now - began, memory=memory)
            if seconds is not None and now - began >= seconds:
                process.send_signal(signal.SIGTERM)
                process.wait(30)
                break
            time.sleep(EVERY_S)
    finally:
        process.kill()
        process.wait()
    return costs


def command_for(pid: int, options: argparse.Namespace, folder: Path) -> list[object]:
    """Return the command line of a mining, or of a daemon of its own."""
    module = "specmine.daemon.main" if options.daemon else "specmine.cli.main"
    run: list[object] = [sys.executable, "-m", "bench.lib.cpu_profile", folder / "profile", module]
    if not options.purposes:
        run = [Path(sys.executable).parent / ("specmined" if options.daemon else "specmine")]
    if not options.daemon:
        return [*run, "mine", "-p", pid, "--duration", options.seconds]
    configuration = {
        "programs": [{"name": "program", "pid": pid}],
        "budget": {"agent": options.agent},
        "store": {"path": str(folder / "store.db")},
        "socket": {"path": str(folder / "socket")},
        "metrics": {"listen": "off"},
        "host_lock": str(folder / "lock"),
        "kill_switch": str(folder / "off"),
        "experiments": {"enabled": False},
    }
    path = folder / "specmined.yaml"
    path.write_text(yaml.safe_dump(configuration))
    return [*run, "--config", path]


def purposes(path: Path) -> dict[str, float]:
    """Return CPU seconds of the main process by purpose."""
    told = json.loads(path.read_text())
    found: Counter[str] = Counter()
    for stack, count in told["stacks"]:
        found[purpose_of(stack)] += count
    return {name: count * told["every_s"] for name, count in found.most_common()}


def purpose_of(stack: Sequence[str]) -> str:
    """Return what a stack is for."""
    if any(frame.startswith("importlib._bootstrap:") for frame in stack):
        return "imports"
    for frame in stack:
        for start, purpose in PURPOSES:
            if frame.startswith(start) and not frame.startswith(THROUGH):
                return purpose
    return "loop, the rest"


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What specmine's own processes cost.")
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", default=NAMES)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--daemon", action="store_true", help="a daemon with defaults instead of a mining")
    parser.add_argument("--agent", default="1%", help="budget.agent of the daemon")
    parser.add_argument("--purposes", action="store_true", help="sample the main process")
    parser.add_argument("--keep", type=Path, help="folder for the samples")
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("bench.overhead.own_cost: needs root", file=sys.stderr)
        return 4
    compiled()
    rows = []
    for name in options.programs:
        with (
            tempfile.TemporaryDirectory(prefix="specmine-bench-") as text,
            loaded(name, made(Path(text))) as pid,
        ):
            folder = Path(text)
            costs = watched(command_for(pid, options, folder), folder, options.seconds if options.daemon else None)
            roles = sorted(costs.cpu_s, key=lambda role: -costs.cpu_s[role])
            rows.append(
                (
                    name,
                    f"{sum(costs.cpu_s.values()):.1f}",
                    ", ".join(f"{role} {costs.cpu_s[role]:.1f}" for role in roles if costs.cpu_s[role] >= 0.05),
                    f"{costs.most_of(60, 60):.1%}",
                    f"{sorted(costs.together)[len(costs.together) // 2]:.0f} / {max(costs.together):.0f}",
                    f"{sorted(costs.resident)[len(costs.resident) // 2]:.0f} / {max(costs.resident):.0f}",
                    ", ".join(f"{role} {value:.0f}" for role, value in costs.proportional.items()),
                )
            )
            if options.purposes:
                spent = purposes(folder / "profile")
                table(["CPU s of the main process", name], [(key, f"{value:.2f}") for key, value in spent.items()])
                if options.keep:
                    options.keep.mkdir(exist_ok=True)
                    (options.keep / f"{name}.json").write_text((folder / "profile").read_text())
    table(
        [
            "program",
            "CPU s",
            "by process",
            "most over 60 s, after the first 60",
            "PSS MB, median / most",
            "RSS MB, median / most",
            "most PSS by process",
        ],
        rows,
    )
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    raise SystemExit(main())
