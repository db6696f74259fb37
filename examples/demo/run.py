"""The demo: mine a stock apache2 under load, say what was found, watch on as a daemon, clean up.

    make demo            (or: .venv/bin/python -m examples.demo.run [--seconds 55] [--watch 25])

Needs root. Downloads and unpacks the server's packages into a temporary folder instead of installing them. All that it
started is stopped and the folder removed at the end, on ^C and on failure too.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from examples.demo.locks import Caller, semop_callers
from examples.demo.server import DIES_WITH_US, Server, SetupError, free_ports, running, stop, unpack

SCRIPTS = Path(sys.executable).parent
LOAD = Path(__file__).resolve().parents[2] / "bench" / "lib" / "http_load.py"
RATE, CLIENTS = 400, 4
"""Fewer clients than children: some children always wait for the accept mutex, however busy the machine is."""
SEMOP = ("semop", "semtimedop")
"""glibc's semop jumps into semtimedop: the same calls have both names."""
SHOWN_OF_EACH = 8
METRICS_SHOWN = (
    r"(overhead|agent)_(promised_ratio|seconds_total)",
    r"assertion_state.*\bsem(timed)?op\b",
    r"behaviour.*\bsem(timed)?op\b",
    r".*\bsem(timed)?op\b",
)


def main() -> int:
    """Run the demo; 0 if the functions that call semop distinguish its behaviours."""
    parser = argparse.ArgumentParser(description="Mine a stock apache2 under load.")
    parser.add_argument("--seconds", type=int, default=55, help="how long to mine")
    parser.add_argument("--watch", type=int, default=25, help="how long to run the daemon afterwards")
    parser.add_argument("--function", help="mine only functions of this name; by default they are found")
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
            return demo(stack, folder, options)
    except SetupError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 4
    except KeyboardInterrupt:
        return 130


def demo(stack: ExitStack, folder: Path, options: argparse.Namespace) -> int:
    """Do all steps, one after the other."""
    start = time.monotonic()
    say("a stock Debian apache2 (prefork, two ports, accept mutex of type sysvsem), unpacked into " + str(folder))
    server = stack.enter_context(running(folder, unpack(folder)))
    say(f"up to {RATE} requests a second on {' and '.join(server.addresses)}")
    stack.enter_context(loaded(server, options.seconds + options.watch + 60))

    store = folder / "specmine.db"
    mine(server, store, options.seconds, options.function)
    told_apart = explain(store, server.libapr)
    if not told_apart:
        say("a busy machine learns slowly: half a minute more, for the accept mutex alone")
        store = folder / "semop.db"  # a new one: the functions of the other would have their share of the budget
        mine(server, store, 30, SEMOP[0])
        told_apart = explain(store, server.libapr)

    say(f"specmined, for {options.watch} s, goes on from what was learned; what Prometheus scrapes from it:")
    watch(folder, store, server, options.watch)
    say(f"done in {time.monotonic() - start:.0f} s, cleaning up")
    return 0 if told_apart else 3


def mine(server: Server, store: Path, seconds: int, function: str | None) -> None:
    """Mine and print what was learned, kept in the store."""
    options = ["-p", str(server.pid), "--duration", str(seconds), *(["--function", function] if function else [])]
    say(" ".join(["specmine mine", *options]))
    code = foreground([SCRIPTS / "specmine", "mine", *options, "--store", store])
    if code not in (0, 3):  # 3: nothing is stable yet
        raise SetupError(f"specmine mine ended with exit code {code}")


def explain(store: Path, libapr: Path) -> bool:
    """Say what semop's nameless callers are; True if some of them distinguish its behaviours."""
    command: list[str | Path] = [SCRIPTS / "specmine", "assertions", "--store", store, "--format", "json"]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE)
    if done.returncode not in (0, 3):
        raise SetupError(f"specmine assertions ended with exit code {done.returncode}")
    functions = json.loads(done.stdout)["functions"]
    expressions = [b["expression"] for f in functions if f["function"] in SEMOP for b in f["behaviours"]]
    edges = {atom for expression in expressions for atom in atoms(expression)}
    callers = semop_callers(libapr)
    if not any(edge.endswith(ends(caller)) for edge in edges for caller in callers):
        print(f"   its callers do not distinguish semop's behaviours yet; its expressions: {expressions or 'none'}")
        return False
    say("libapr has no names for the callers of semop; its machine code says what they are:")
    for caller in callers:
        print(f"   {libapr.name}+0x{caller.offset:x} = {caller.role}: {caller.evidence}")
        for edge in sorted(e for e in edges if e.endswith(ends(caller))):
            print(f"      so `{edge}` holds for the calls that {caller.role} the accept mutex")
    return True


def ends(caller: Caller) -> tuple[str, ...]:
    """Return how the call edges from a caller to semop end."""
    return tuple(f"+0x{caller.offset:x}->{name}" for name in SEMOP)


def atoms(expression: str) -> list[str]:
    """Return the call edges of an expression, without quotes."""
    words = re.split(r" (?:and|or) ", expression)
    return [w.removeprefix("not ").replace("`", "") for w in words]


def watch(folder: Path, store: Path, server: Server, seconds: int) -> None:
    """Run the daemon on the same store and show what a scrape sees at the end."""
    metrics = f"127.0.0.1:{free_ports(1)[0]}"
    configuration = folder / "specmined.yaml"
    configuration.write_text(
        f"programs:\n  - {{name: apache2, pid: {server.pid}}}\n"
        f"store: {{path: {store}}}\n"
        f"metrics: {{listen: '{metrics}'}}\n"
        f"socket: {{path: {folder}/specmined.sock}}\n"
        f"host_lock: {folder}/host.lock\n"
    )
    with background([SCRIPTS / "specmined", "--config", configuration], log=folder / "specmined.log") as daemon:
        with suppress(subprocess.TimeoutExpired):
            daemon.wait(seconds)
        try:
            with urllib.request.urlopen(f"http://{metrics}/metrics", timeout=5) as answer:
                text = answer.read().decode()
        except OSError as error:
            output = (folder / "specmined.log").read_text(errors="replace").strip().splitlines()
            raise SetupError(
                f"specmined gives no metrics ({error}); its last line: {output[-1] if output else 'none'}"
            ) from None
    samples = [line for line in text.splitlines() if line and not line.startswith("#")]
    if not samples:
        raise SetupError(f"specmined has measured nothing after {seconds} s")
    shown_samples = [sample for sample in samples if not (sample.endswith(" 0.0") and "state=" in sample)]  # one-hot
    shown: list[str] = []
    for pattern in METRICS_SHOWN:
        shown += [t for t in shown_samples if re.match("specmine_" + pattern, t) and t not in shown][:SHOWN_OF_EACH]
    print("\n".join(shown))
    print(f"   (and {len(samples) - len(shown)} more)")


@contextmanager
def loaded(server: Server, seconds: int) -> Iterator[None]:
    """Keep the server busy."""
    command: list[str | Path] = [sys.executable, LOAD, *server.addresses, "--seconds", str(seconds)]
    with background([*command, "--rate", str(RATE), "--clients", str(CLIENTS)]):
        yield


@contextmanager
def background(command: list[str | Path], log: Path | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command in the background, ended at the end."""
    with (log or Path(os.devnull)).open("wb") as output:
        process = subprocess.Popen(
            [*DIES_WITH_US, *command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        stop(process, 10)


def foreground(command: list[str | Path]) -> int:
    """Run a command that prints for us; on ^C it hears it too, and is waited for."""
    sys.stdout.flush()
    process = subprocess.Popen([*DIES_WITH_US, *command])
    try:
        return process.wait()
    except BaseException:
        with suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
            process.wait(3)
        if process.returncode is None:
            process.terminate()
            with suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
                process.wait(5)
        if process.returncode is None:
            process.kill()
            process.wait()
        raise


def say(what: str) -> None:
    """Print a heading."""
    print(f"\n== {what}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
