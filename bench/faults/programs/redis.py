"""A stock redis-server under a bounded load, with faults of data, configuration and host."""

from __future__ import annotations

import math
import random
import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.faults.programs.fault import Fault, Service, replaced, wandering
from bench.faults.programs.host import spinning_beside
from bench.lib.child_processes import running
from bench.lib.debian_programs import redis
from bench.lib.http_load import Counts, Rate, read_account, write_account

RATE = 4000
CLIENTS, TOGETHER = 2, 20
"""A client sends so many commands at once."""
LIST, LONG = 300, 3000


class Client:
    """One connection."""

    def __init__(self, path: Path) -> None:
        """Connect, waiting for the server to start."""
        self._socket = socket.socket(socket.AF_UNIX)
        end = time.monotonic() + 20
        while True:
            try:
                self._socket.connect(str(path))
                break
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)
        self._file = self._socket.makefile("rb")

    def ask(self, *words: object) -> object:
        """Send a command; return its answer."""
        return self.ask_all([words])[0]

    def ask_all(self, commands: Sequence[Sequence[object]]) -> list[object]:
        """Send some commands at once; return their answers."""
        self._socket.sendall(b"".join(map(_encoded, commands)))
        return [self._answer() for _ in commands]

    def _answer(self) -> object:
        line = self._file.readline()
        kind, rest = line[:1], line[1:-2]
        if kind == b"$":
            return self._file.read(int(rest) + 2)[:-2] if int(rest) >= 0 else None
        if kind == b"*":
            return [self._answer() for _ in range(int(rest))]
        if kind == b"-":
            raise SystemExit(f"redis-server: {rest.decode()}")
        return rest


def _encoded(words: Sequence[object]) -> bytes:
    parts = [str(word).encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in parts)


def load(path: Path, rate: Rate, seed: int, counts: Counts) -> None:
    """Ask at random times, at a rate that is constant on average; 3 % of the commands sort a list."""
    client, chance, due = Client(path), random.Random(seed), time.monotonic()
    while True:
        due = max(due + chance.expovariate(rate.now() / CLIENTS / TOGETHER), time.monotonic() - 1)
        time.sleep(max(0.0, due - time.monotonic()))
        began = time.monotonic()
        client.ask_all([command(chance) for _ in range(TOGETHER)])
        counts.latencies_s.append(time.monotonic() - began)


def command(chance: random.Random) -> tuple[object, ...]:
    """Return a command by chance."""
    key, kind = f"key:{chance.randrange(1000)}", chance.random()
    if kind < 0.03:
        return "SORT", "numbers"
    if kind < 0.4:
        return "SET", key, "x" * 64
    return ("LRANGE", "recent", 0, 20) if kind < 0.6 else ("GET", key)


def loads(path: str, rate: str, account: str) -> None:
    """Run the clients until this process is killed."""
    everyone = [Counts() for _ in range(CLIENTS)]
    for seed, counts in enumerate(everyone):
        threading.Thread(target=load, args=(Path(path), Rate(RATE, Path(rate)), seed, counts), daemon=True).start()
    while True:
        time.sleep(1)
        write_account(Path(account), everyone)


@contextmanager
def served(folder: Path) -> Iterator[Service]:
    """Run the server and its load."""
    with ExitStack() as stack:
        command = [*redis(folder), "--appendonly", "yes", "--appendfsync", "everysec"]
        server = stack.enter_context(running(command, cwd=folder, start_new_session=True, stdout=-3))
        client = Client(folder / "socket")
        chance = random.Random(0)

        def fill(length: int) -> None:
            client.ask("DEL", "numbers")
            for first in range(0, length, 300):
                client.ask(
                    "RPUSH", "numbers", *(chance.randrange(10**9) for _ in range(first, min(first + 300, length)))
                )

        def sync(when: str) -> None:
            client.ask("CONFIG", "SET", "appendfsync", when)

        def sorts() -> tuple[float, float]:
            text = client.ask("INFO", "commandstats")
            assert isinstance(text, bytes)
            line = next(line for line in text.decode().splitlines() if line.startswith("cmdstat_sort:"))
            numbers = dict(part.split("=") for part in line.partition(":")[2].split(","))
            return float(numbers["calls"]), float(numbers["usec"]) * 1e-6

        fill(LIST)
        client.ask("RPUSH", "recent", *range(100))
        rate, account = folder / "rate", folder / "account"
        rate.write_text(str(RATE))
        harmless = stack.enter_context(wandering(lambda factor: replaced(rate, str(RATE * factor))))
        names = f"{str(folder / 'socket')!r}, {str(rate)!r}, {str(account)!r}"
        code = f"from bench.faults.programs.redis import loads; loads({names})"
        stack.enter_context(running((sys.executable, "-c", code)))
        contention: list[ExitStack] = []
        yield Service(
            name="redis",
            exe="/usr/bin/redis-server",
            pid=server.pid,
            clients=lambda: read_account(account),
            faults=(
                Fault(
                    name="SORT of a list ten times as long",
                    inject=lambda: fill(LONG),
                    undo=lambda: fill(LIST),
                    functions=("sortCommand*", "pqsort", "qsort*", "_pqsort", "sortCompare", "lookupKey*", "call"),
                    causes=("load", "unknown", "callee"),
                    factor=LONG * math.log(LONG) / (LIST * math.log(LIST)),  # of the sorting itself
                    account=sorts,
                ),
                Fault(
                    name="appendfsync always",
                    inject=lambda: sync("always"),
                    undo=lambda: sync("everysec"),
                    functions=("flushAppendOnlyFile", "fdatasync", "beforeSleep", "aof*"),
                    causes=("wait", "callee"),
                ),
                Fault(
                    name="four busy processes beside it",
                    inject=lambda: contention.append(spinning_beside(folder)),
                    undo=lambda: contention.pop().close(),
                    causes=("host",),
                    alone=True,
                ),
                *harmless,
            ),
        )
