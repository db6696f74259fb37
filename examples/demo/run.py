"""The demo: what is normal in a stock apache2, then a change of its configuration, then what is told about it.

    make demo            (or: .venv/bin/python -m examples.demo.run [--seconds 45])

Needs root. Downloads and unpacks the server's packages into a temporary folder instead of installing them. All that it
started is stopped and the folder removed at the end, on ^C and on failure too.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from examples.demo.callers import explain
from examples.demo.processes import SCRIPTS, background, foreground
from examples.demo.server import LEVEL, Server, SetupError, running, set_compression, unpack
from examples.demo.watching import CONFIGURATION, Daemon, is_learned, page, slower, waited, watching

LOAD = Path(__file__).resolve().parents[2] / "bench" / "lib" / "http_load.py"
RATE, CLIENTS = 250, 4
"""Fewer clients than children: some children always wait for the accept mutex, however busy the machine is."""
CHANGED, NEW_LEVEL = "deflate", 6
NAMED = (CHANGED, "semop")
OVERHEAD, AGENT = "3%", "10%"
"""Three and ten times the defaults."""
LENGTH_S = 170.0
LEAST_S, MOST_S = 20.0, 45.0
"""How long the daemon watches before the change: the second only if it has not learned."""
LOOK_S = 300.0
"""How long the page stays where somebody is there to look at it."""
METRICS = rf'specmine_violation(_factor_ratio)?\{{.*function="{CHANGED}".*what="level"'


def main() -> int:
    """Run the demo; 0 unless something broke."""
    parser = argparse.ArgumentParser(description="A stock apache2: what is normal, a change, what is told about it.")
    parser.add_argument("--seconds", type=int, default=45, help="how long to mine at first")
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a shell's background job otherwise
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda n, _: sys.exit(128 + n))
    if os.geteuid() != 0:
        print("demo: needs root: BPF programs are loaded, and apache2's children get a user of their own")
        return 4
    try:
        with ExitStack() as stack:
            folder = Path(tempfile.mkdtemp(prefix="specmine-demo-"))
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            os.environ["CACHE_DIRECTORY"] = str(folder / "cache")  # calibration and bytecode go with the folder, too
            demo(stack, folder, options.seconds)
            return 0
    except SetupError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 4
    except KeyboardInterrupt:
        return 130


def demo(stack: ExitStack, folder: Path, seconds: int) -> None:
    """Tell the story, one step after the other."""
    start = time.monotonic()
    say("1. A stock Debian apache2: prefork, two ports, compression. It is unpacked into " + str(folder))
    server = stack.enter_context(running(folder, unpack(folder)))
    load = [sys.executable, LOAD, *server.addresses, "--seconds", 3600, "--rate", RATE, "--clients", CLIENTS]
    stack.enter_context(background(load))
    print(f"   Up to {RATE} requests a second on {' and '.join(server.addresses)}, one page each.")

    say(f"2. What is normal? Three minutes are short: {CHANGED} and semop are named, and the limit is not 1 % but 3 %.")
    store = folder / "specmine.db"
    mine(server, store, seconds)
    say("libapr has no names for the callers of semop. Its machine code says what they are:")
    explain(mined(store), server.libapr)

    shown = CONFIGURATION.format(pid=server.pid, functions=", ".join(NAMED), overhead=OVERHEAD, agent=AGENT)
    say("3. The daemon goes on from what was learned:")
    print("".join(f"   {line}\n" for line in shown.splitlines()), end="", flush=True)
    daemon = stack.enter_context(watching(folder, shown))
    learned = learn(daemon, start)
    daemon.show("functions")

    say(f"4. A change: an administrator sets DeflateCompressionLevel from {LEVEL} to {NEW_LEVEL}, without a restart.")
    set_compression(server, NEW_LEVEL)
    changed = time.monotonic()
    found = waited(lambda: slower(daemon.functions(), CHANGED), max(20.0, start + LENGTH_S - changed))
    if found:
        say(f"5. Told after {time.monotonic() - changed:.0f} s:")
        daemon.show("status")
        daemon.show("violations", CHANGED)
        print("\nThe same for Prometheus, which the alert rules read:")
        print("\n".join(f"   {each}" for each in daemon.scraped() if re.match(METRICS, each)))
    else:
        why = "its time was known" if learned else f"{CHANGED} was not learned in time"
        say(f"5. Nothing was told in {time.monotonic() - changed:.0f} s; {why}. A busy machine learns slowly.")
        daemon.show("status")
        daemon.show("functions", "--all")
        daemon.show("show", CHANGED)
    address = stack.enter_context(page(folder, daemon))
    link = f"violation?id={found[0]['id']}" if found else ""
    say(f"6. The same in a browser: {address}{link}")
    took = time.monotonic() - start
    if sys.stdin.isatty() and sys.stdout.isatty():
        look()
    say(f"Done in {took:.0f} s, cleaning up")


def mine(server: Server, store: Path, seconds: int) -> None:
    """Mine and print what was learned, kept in the store."""
    options = ["-p", str(server.pid), "--duration", str(seconds), "--budget", OVERHEAD]
    options += [word for name in NAMED for word in ("--function", name)]
    print(f"\n$ specmine mine {' '.join(options)}", flush=True)
    code = foreground([SCRIPTS / "specmine", "mine", *options, "--store", store])
    if code not in (0, 3):  # 3: nothing is stable yet
        raise SetupError(f"specmine mine ended with exit code {code}")


def mined(store: Path) -> list[dict[str, Any]]:
    """Return what is asserted of each function."""
    command: list[str | Path] = [SCRIPTS / "specmine", "assertions", "--store", store, "--format", "json"]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE)
    if done.returncode not in (0, 3):
        raise SetupError(f"specmine assertions ended with exit code {done.returncode}")
    return list(json.loads(done.stdout)["functions"])


def learn(daemon: Daemon, start: float) -> bool:
    """Wait until it is known how long the function that will change takes; True if it is."""
    began = time.monotonic()

    def learned() -> bool:
        known = any(each["function"] == CHANGED and is_learned(each) for each in daemon.functions())
        return known and time.monotonic() - began >= LEAST_S

    return bool(waited(learned, min(MOST_S, start + LENGTH_S - 40 - began)))


def look() -> None:
    """Let the page be looked at until Enter, or for some minutes."""
    print(f"   Enter ends the demo; it ends by itself after {LOOK_S / 60:.0f} min.", flush=True)
    select.select([sys.stdin], [], [], LOOK_S)


def say(what: str) -> None:
    """Print a heading."""
    print(f"\n== {what}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
