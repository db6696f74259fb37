"""Do stock servers survive it unharmed when they are reloaded, saved and shut down while their calls are timed?

    .venv/bin/python -m bench.truth.server_life [PROGRAM...]

Each server is mined under load. Meanwhile it gets three operations as its operators do them, and is then told to end,
still watched. The bench counts failed requests (of HTTP), processes ended by a signal (from the logs of kernel and
server), and the exit status, and prints what was timed. Needs root and the packages that bench/lib/debian_programs.py
names.
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
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.lib.debian_programs import PROGRAMS, QUIET, port_of
from bench.lib.driver import table
from bench.lib.peers import stopped

SPECMINE = Path(sys.executable).parent / "specmine"
SECONDS, FIRST_S, EVERY_S, END_S = 28, 8.0, 5.0, 24.0
_KILLED = ("segfault", "invalid opcode", "trap int3", "general protection")
_LOGGED = ("exited on signal", "exit signal")


@dataclass(frozen=True, slots=True)
class Life:
    """What is done to a server, and how it is ended."""

    what: str
    operate: Callable[[int, Path], None]
    end: signal.Signals = signal.SIGTERM


def _signalled(number: signal.Signals) -> Callable[[int, Path], None]:
    return lambda pid, folder: os.kill(pid, number)


def _saved(pid: int, folder: Path) -> None:
    subprocess.run(["redis-cli", "-s", folder / "socket", "BGSAVE"], check=True, **QUIET)


def _flushed(pid: int, folder: Path) -> None:
    subprocess.run(["mariadb-admin", f"--socket={folder}/socket", "--user=root", "refresh"], check=True, **QUIET)


LIVES = {
    "apache2-prefork": Life("three graceful restarts, ended by SIGTERM", _signalled(signal.SIGUSR1)),
    "nginx": Life("three reloads, ended by SIGQUIT", _signalled(signal.SIGHUP), signal.SIGQUIT),
    "redis-server": Life("three background saves, ended by SIGTERM", _saved),
    "postgres": Life("three reloads, ended by SIGINT (fast shutdown)", _signalled(signal.SIGHUP), signal.SIGINT),
    "mariadbd": Life("three refreshes, ended by SIGTERM", _flushed),
}


def main() -> int:
    """Run each program; 1 if anything was noticed."""
    parser = argparse.ArgumentParser(description="Servers that are reloaded and shut down while watched.")
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=f"of {', '.join(LIVES)}; all by default")
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("bench.truth.server_life: needs root", file=sys.stderr)
        return 4
    rows = []
    for name in options.programs or LIVES:
        with tempfile.TemporaryDirectory(prefix="specmine-bench-") as folder:
            rows.append(lived(name, Path(folder)))
    head = ["program", "what was done", "requests", "failed", "ended by a signal", "exit status", "counted", "timed"]
    table([*head, "functions timed", "spent"], rows)
    return int(any(row[3] not in (0, "-") or row[4] or row[5] for row in rows))


def lived(name: str, folder: Path) -> tuple[object, ...]:
    """Run one program from its start to its end."""
    stock, life = PROGRAMS[name], LIVES[name]
    folder.chmod(0o755)
    before = killed()
    with ExitStack() as stack:
        server = subprocess.Popen(list(stock.prepare(folder)), cwd=folder, start_new_session=True, **QUIET)
        stack.callback(stopped, server)
        deadline = time.monotonic() + 30
        while not stock.ready(folder):
            if server.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"{name} does not start; packages: {stock.packages}")
            time.sleep(0.05)
        asking = asked(name, folder)
        stack.callback(stopped, asking)
        mine = [str(SPECMINE), "mine", "-p", str(server.pid), "--duration", str(SECONDS), "--budget", "5%"]
        mining = subprocess.Popen(
            [*mine, "--format", "json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        stack.callback(stopped, mining)
        begun = time.monotonic()
        for number in range(3):
            time.sleep(max(0.0, begun + FIRST_S + number * EVERY_S - time.monotonic()))
            life.operate(server.pid, folder)
        time.sleep(max(0.0, begun + END_S - time.monotonic()))
        answer = json.loads(asking.communicate()[0]) if asking.stdout else {}  # HTTP's load has ended by now
        server.send_signal(life.end)
        status = server.wait(timeout=60)
        out, complaint = mining.communicate(timeout=90)
    if mining.returncode not in (0, 3):
        raise SystemExit(f"specmine mine: exit {mining.returncode}: {complaint}")
    document = json.loads(out)
    log = folder / "error.log"
    logged = sum(log.read_text(errors="replace").count(each) for each in _LOGGED) if log.exists() else 0
    timed = [each["timed"] for each in document["functions"]]
    return (
        name,
        life.what,
        f"{answer['requests']:,}" if answer else "-",
        answer.get("errors", "-"),
        killed() - before + logged,
        status,
        f"{sum(each['calls_counted'] for each in document['functions']):,}",
        f"{sum(timed):,}",
        sum(each > 0 for each in timed),
        f"{document['collection']['spent_ratio']:.1%}",
    )


def asked(name: str, folder: Path) -> subprocess.Popen[str]:
    """Put load on a server: counted HTTP requests until shortly before it ends, else its own load program."""
    if PROGRAMS[name].load is PROGRAMS["nginx"].load:
        load = [sys.executable, str(Path(__file__).parents[1] / "lib" / "http_load.py"), f"127.0.0.1:{port_of(folder)}"]
        words = [*load, "--seconds", str(END_S - 1), "--rate", "400"]
        return subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=folder, start_new_session=True)
    command = PROGRAMS[name].load(folder)
    assert command is not None
    return subprocess.Popen(list(command), text=True, cwd=folder, start_new_session=True, **QUIET)


def killed() -> int:
    """Return how many processes were ended by a fault, by the kernel's log."""
    lines = subprocess.run(["dmesg"], check=True, capture_output=True, text=True).stdout.splitlines()
    return sum(any(each in line for each in _KILLED) for line in lines)


if __name__ == "__main__":
    raise SystemExit(main())
