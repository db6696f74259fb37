"""How much does a daemon with default budgets know of a server after five and ten minutes, and what did that cost?

    .venv/bin/python -m bench.overhead.daemon_learning [PROGRAM...] [--minutes 10] [--load bounded] [--keep FILE]

A daemon of its own watches each program, with nothing but the program configured. At some minutes it is asked for its
specification and its status. *Known* is the share of the program's own time, as sampled and idle waits aside, that
functions with levels took; it is read from the daemon's store at the end. The bounded loads are those of
bench/faults/programs, the saturated ones those of bench/lib/server_load.py. Needs root, gcc and their packages.
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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.faults.programs.bounded import BOUNDED
from bench.lib import server_load
from bench.lib.bytecode import compiled
from bench.lib.child_processes import in_order, started
from bench.lib.driver import table
from bench.lib.tools.costs import Costs
from bench.overhead.own_cost import command_for, made
from specmine.daemon.controller.checkpoint import Record
from specmine.daemon.controller.hotness import IDLE_WAITS
from specmine.daemon.socket.client import PATIENCE_S, DaemonConnection
from specmine.model.json_codec import decode
from specmine.store import open_store

USUAL = ("redis-server", "postgres", "nginx")
SETTLED = ("single", "explaining", "explained", "unexplained")
MARKS = (1.0, 2.0, 5.0, 10.0)
"""Minutes at which the daemon is asked."""
LOOK_S = 0.5


@contextmanager
def loaded(name: str, load: str, folder: Path) -> Iterator[int]:
    """Run a program under a load; yield its pid."""
    if load == "bounded":
        with BOUNDED[name](folder) as service:
            yield service.pid
    else:
        with server_load.loaded(name, folder) as running:
            yield running.pid


def asked(folder: Path, minutes: float) -> dict[str, Any]:
    """Return what the daemon knows now."""
    connection = DaemonConnection(folder / "socket", timeout_s=PATIENCE_S)
    try:
        specification = connection.ask({"command": "specification"})
        status = connection.ask({"command": "status"})
    finally:
        connection.close()
    functions, budget = specification["functions"], status["budget"]
    states = Counter(each["state"] for each in functions)
    waiting = Counter(each["reason"]["code"] for each in functions if each["state"] == "waiting" and each["reason"])
    return {
        "minutes": minutes,
        "functions": len(functions),
        "numbers": sum(each["timed"] >= 100 for each in functions),
        "levels": sum("p99" in each["quantiles"] for each in functions),
        "settled": sum(states[each] for each in SETTLED),
        "timed": sum(each["timed"] for each in functions),
        "overhead_s": budget["overhead"]["spent_seconds"],
        "overhead_ratio": budget["overhead"]["spent_ratio"],
        "waiting": dict(waiting),
        "pressure": budget["agent"]["pressure"],
        "with_levels": sorted(each["key"] for each in functions if "p99" in each["quantiles"]),
    }


def known_share(store: Path, with_levels: set[str]) -> float:
    """Return the share of the sampled time, idle waits aside, in functions with levels."""
    known = total = 0.0
    with open_store(store, read_only=True) as opened:
        contents = opened.load()
    names = {each.key: each for each in contents.functions}
    for key, state in contents.states.items():
        profile = decode(Record, state).profile
        if profile.loop_bottom or (key in names and names[key].name in IDLE_WAITS):
            continue
        total += profile.own_ns
        known += profile.own_ns * (key in with_levels)
    return known / total if total else float("nan")


def watched(name: str, options: argparse.Namespace, folder: Path) -> list[dict[str, Any]]:
    """Watch one program; return what was known at each mark."""
    marks, costs, found = [each for each in MARKS if each <= options.minutes], Costs(), list[dict[str, Any]]()
    with loaded(name, options.load, made(folder)) as pid:
        words = [str(each) for each in command_for(pid, options, folder)]
        with (folder / "log").open("wb") as log:
            daemon = started(words, stdout=subprocess.DEVNULL, stderr=log)
        began = time.monotonic()
        try:
            while marks:
                time.sleep(LOOK_S)
                at_s = time.monotonic() - began
                if daemon.poll() is not None:
                    raise SystemExit((folder / "log").read_text())
                costs.look(daemon.pid, at_s, memory=True)
                if at_s >= 60 * marks[0]:
                    found.append({"program": name, **asked(folder, marks.pop(0)), "own_s": sum(costs.cpu_s.values())})
            daemon.send_signal(signal.SIGTERM)
            daemon.wait(60)
        finally:
            daemon.kill()
            daemon.wait()
    found[-1]["known"] = known_share(folder / "store.db", set(found[-1]["with_levels"]))
    found[-1]["resident_mb"] = sorted(costs.resident)[len(costs.resident) // 2]
    return found


def main() -> int:
    """Watch each program, and print a row for each mark."""
    parser = argparse.ArgumentParser(description="What a daemon with default budgets learns.")
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=f"of {', '.join(BOUNDED)}", default=USUAL)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--load", choices=("bounded", "saturated"), default="saturated")
    parser.add_argument("--agent", default="1%", help="budget.agent")
    parser.add_argument("--keep", type=Path, help="append each row to this file, a line of JSON each")
    options = parser.parse_args()
    options.daemon, options.purposes = True, False
    if os.geteuid() != 0:
        print("bench.overhead.daemon_learning: needs root", file=sys.stderr)
        return 4
    in_order()
    compiled()
    rows = []
    for name in options.programs:
        with tempfile.TemporaryDirectory(prefix="specmine-bench-", dir="/var/tmp") as text:
            Path(text).chmod(0o755)
            for each in watched(name, options, Path(text)):
                rows.append(each)
                if options.keep:
                    with options.keep.open("a") as file:
                        file.write(json.dumps(each) + "\n")
    head = ["program", "min", "functions", "numbers", "levels", "settled", "timed", "overhead", "own CPU s", "pressure"]
    body = [
        (
            each["program"],
            f"{each['minutes']:.0f}",
            each["functions"],
            each["numbers"],
            each["levels"],
            each["settled"],
            f"{each['timed']:,}",
            f"{each['overhead_ratio']:.2%}",
            f"{each['own_s']:.1f}",
            f"{each['pressure']:.2f}",
            ", ".join(f"{code} {number}" for code, number in each["waiting"].items()) or "-",
            f"{each['known']:.0%}" if "known" in each else "",
            f"{each['resident_mb']:.0f}" if "resident_mb" in each else "",
        )
        for each in rows
    ]
    table([*head, "waiting for", "known", "RSS MB"], body)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
