"""Eight real programs under a load that asks as fast as it is answered, and how much work each has done.

Packages: those of debian_programs.py, which prepares the servers, and mariadb-client memcached sqlite3 xz-utils gcc.
Every program runs in a private folder as Debian built it, on the last CPU; the load runs on the first.
"""

from __future__ import annotations

import mmap
import os
import random
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from bench.lib.debian_programs import (
    POSTGRES,
    QUIET,
    Command,
    Prepare,
    answers,
    apache,
    as_postgres,
    mariadb,
    nginx,
    port_of,
    postgres,
    redis,
)
from bench.lib.driver import TARGETS, built
from bench.lib.peers import stopped
from specmine.probes.process.proc import process

ROWS = 10_000
VARIANTS = 500
LAST_CPU = (os.cpu_count() or 1) - 1
"""Where the programs run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """How to run one program and what to ask it."""

    binary: str
    command: Prepare
    protocol: str
    requests: Callable[[random.Random], list[bytes]]
    """The first is sent once; the others in turn."""
    socket: str = "socket"
    connections: int = 4
    afterwards: Callable[[Path], None] = lambda folder: None
    """Done once it answers, before the load."""


@dataclass(frozen=True, slots=True)
class Running:
    """A program under load."""

    pid: int
    work: Callable[[], float]
    """Units of work done since some time."""
    unit: str


# what the servers are asked


def _http(chance: random.Random) -> list[bytes]:
    return [b"GET /index.html HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n"] * 2


def _redis(chance: random.Random) -> list[bytes]:
    def one() -> bytes:
        key, other = (f"key:{chance.randrange(ROWS):06d}" for _ in range(2))
        words = [
            ["SET", key, "x" * 64],
            ["GET", other],
            ["INCR", f"counter:{chance.randrange(100)}"],
            ["LPUSH", "list", "value"],
            ["LRANGE", "list", "0", "20"],
            ["LTRIM", "list", "0", "100"],
            ["ZADD", "sorted", str(chance.randrange(ROWS)), key],
            ["ZRANGE", "sorted", "0", "10"],
            ["HSET", f"hash:{chance.randrange(100)}", "field", "value"],
            ["PING"],
        ]
        return b"".join(
            b"*%d\r\n" % len(w) + b"".join(b"$%d\r\n%b\r\n" % (len(a), a.encode()) for a in w) for w in words
        )

    return [b"*1\r\n$4\r\nPING\r\n", *(one() for _ in range(VARIANTS))]


def _memcached(chance: random.Random) -> list[bytes]:
    def one() -> bytes:
        key, other = (f"key:{chance.randrange(ROWS):06d}" for _ in range(2))
        size = chance.choice((64, 500, 4000))
        return f"set {key} 0 0 {size}\r\n{'x' * size}\r\nincr counter 1\r\nget {other} {key}\r\n".encode()

    return [b"set counter 0 0 1\r\n0\r\nget counter\r\n", *(one() for _ in range(VARIANTS))]


def _postgres(chance: random.Random) -> list[bytes]:
    hello = struct.pack("!I", 196608) + b"user\0postgres\0database\0postgres\0\0"

    def one() -> bytes:
        at = chance.randrange(ROWS)
        text = (
            f"SELECT abalance FROM pgbench_accounts WHERE aid = {at}; "
            f"SELECT count(*), sum(abalance) FROM pgbench_accounts WHERE aid BETWEEN {at} AND {at + 100}"
        )
        body = text.encode() + b"\0"
        return b"Q" + struct.pack("!I", len(body) + 4) + body

    return [struct.pack("!I", len(hello) + 4) + hello, *(one() for _ in range(VARIANTS))]


def _mariadb(chance: random.Random) -> list[bytes]:
    # protocol 4.1, secure connection, plug-in authentication: user root, no password, database test
    hello = (
        struct.pack("<IIB23x", 0x0008820D, 1 << 24, 33) + b"root\0" + b"\0" + b"bench\0" + b"mysql_native_password\0"
    )

    def packet(number: int, body: bytes) -> bytes:
        return struct.pack("<I", len(body))[:3] + bytes([number]) + body

    def one() -> bytes:
        at = chance.randrange(ROWS)
        text = f"SELECT c FROM rows_ WHERE id BETWEEN {at} AND {at + 20} ORDER BY c"
        return packet(0, b"\x03" + text.encode())

    return [packet(1, hello), *(one() for _ in range(VARIANTS))]


# how they are run


def _memcached_command(folder: Path) -> Command:
    return ["/usr/bin/memcached", "-u", "nobody", "-l", "127.0.0.1", "-p", str(port_of(folder)), "-t", "2", "-m", "64"]


def _pgbench_tables(folder: Path) -> None:
    made: Command = [POSTGRES[-1] / "pgbench", "-h", folder, "-i", "-s", "1", "-q", "postgres"]
    subprocess.run(as_postgres(made), check=True, cwd=folder, **QUIET)


def _mariadb_tables(folder: Path) -> None:
    text = (
        "CREATE DATABASE bench; USE bench; CREATE TABLE rows_ (id INT PRIMARY KEY, k INT, c CHAR(120), KEY (k)); "
        f"INSERT INTO rows_ SELECT seq, seq % 97, MD5(seq) FROM seq_0_to_{ROWS + 100}"
    )
    client = ["mariadb", "--no-defaults", "-u", "root", f"--socket={folder}/socket", "-e", text]
    subprocess.run(client, check=True, **QUIET)


_FOUR = ("StartServers 4", "MinSpareServers 1", "MaxRequestWorkers 4", "KeepAlive Off")
_FOR_EVER = ("access_log off;", "keepalive_requests 1000000000;")
PROGRAMS = {
    "apache2": Program(binary="apache2", command=apache("prefork", *_FOUR), protocol="http", requests=_http, socket=""),
    "nginx": Program(binary="nginx", command=nginx(1, *_FOR_EVER), protocol="http", requests=_http, socket=""),
    "redis-server": Program(binary="redis-server", command=redis, protocol="redis", requests=_redis),
    "memcached": Program(
        binary="memcached", command=_memcached_command, protocol="memcached", requests=_memcached, socket=""
    ),
    "postgres": Program(
        binary="postgres",
        command=postgres(autovacuum="off", fsync="off"),
        protocol="postgres",
        requests=_postgres,
        socket=".s.PGSQL.5432",
        afterwards=_pgbench_tables,
    ),
    "mariadbd": Program(
        binary="mariadbd",
        command=mariadb,
        protocol="mariadb",
        requests=_mariadb,
        afterwards=_mariadb_tables,
    ),
}


def _text() -> Iterator[bytes]:
    chance = random.Random(1)
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(2, 9))) for _ in range(5000)]
    text = " ".join(chance.choices(words, k=1_500_000)).encode()
    while True:
        yield text


def _statements() -> Iterator[bytes]:
    chance = random.Random(1)
    yield b"CREATE TABLE t (id INTEGER PRIMARY KEY, k INT, c TEXT); CREATE INDEX by_k ON t (k);\n"
    yield b"WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)\n" % ROWS
    yield b"INSERT INTO t SELECT i, i % 97, hex(randomblob(40)) FROM n;\n"
    while True:
        at, k = chance.randrange(ROWS), chance.randrange(97)
        yield (
            f"SELECT c FROM t WHERE id BETWEEN {at} AND {at + 50} ORDER BY c;\n"
            f"SELECT count(*), max(c) FROM t WHERE k = {k};\n"
            f"BEGIN; UPDATE t SET c = hex(randomblob(40)) WHERE id = {at}; "
            f"DELETE FROM t WHERE id = {k}; INSERT INTO t VALUES ({k}, {k}, 'new'); COMMIT;\n"
        ).encode()


FED: Mapping[str, tuple[Command, Callable[[], Iterator[bytes]]]] = {
    "sqlite3": (("/usr/bin/sqlite3", "database"), _statements),
    "xz": (("xz", "-T1", "-1", "-c"), _text),
}
"""Programs that read what they have to do, without end: their commands, and what they read."""
NAMES = (*PROGRAMS, *FED)


@contextmanager
def loaded(name: str, folder: Path) -> Iterator[Running]:
    """Run a program under its load; both end at the end."""
    folder.chmod(0o755)
    with feeding(name, folder) if name in FED else serving(PROGRAMS[name], folder) as running:
        yield running


@contextmanager
def serving(program: Program, folder: Path) -> Iterator[Running]:
    """Run a server and its client."""
    with ExitStack() as stack:
        command = ["taskset", "-c", str(LAST_CPU), *program.command(folder)]
        server = subprocess.Popen(command, cwd=folder, start_new_session=True, **QUIET)
        stack.callback(stopped, server)
        address = folder / program.socket if program.socket else None
        until(lambda: address.exists() if address else answers(folder), server, f"{program.binary} starts")
        program.afterwards(folder)
        requests, counter = folder / "requests", folder / "counter"
        texts = program.requests(random.Random(1))
        requests.write_bytes(b"".join(struct.pack("<I", len(each)) + each for each in texts))
        counter.write_bytes(bytes(8))
        client = built(folder, TARGETS / "client.c", "-D_GNU_SOURCE")
        where = str(address or port_of(folder))
        words = [where, program.protocol, str(requests), str(counter), str(program.connections)]
        asking = subprocess.Popen(
            ["taskset", "-c", "0", client, *words], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, cwd=folder
        )
        stack.callback(asking.communicate)
        with counter.open("r+b") as file:
            count = stack.enter_context(mmap.mmap(file.fileno(), 8))

        def work() -> float:
            if asking.poll() is not None:
                raise SystemExit(f"the client of {program.binary} has ended")
            return float(struct.unpack("<Q", count[:8])[0])

        until(lambda: work() > 100, server, f"{program.binary} answers")
        yield Running(server.pid, work, "requests")


@contextmanager
def feeding(name: str, folder: Path) -> Iterator[Running]:
    """Run a program over a text without end."""
    command, texts = FED[name]
    program = subprocess.Popen(
        ["taskset", "-c", str(LAST_CPU), *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        cwd=folder,
    )

    def feed() -> None:
        with suppress(OSError):
            for text in texts():
                assert program.stdin is not None
                program.stdin.write(text)

    threading.Thread(target=feed, daemon=True).start()

    def work() -> float:
        return float(Path(f"/proc/{program.pid}/io").read_text().split()[1])

    try:
        until(lambda: work() > 1e5, program, f"{name} reads")
        yield Running(program.pid, work, "bytes")
    finally:
        program.kill()
        program.wait()


def until(done: Callable[[], bool], server: subprocess.Popen[bytes], what: str) -> None:
    """Wait until something is true of a server that lives."""
    end = time.monotonic() + 60
    while not done():
        found = process(server.pid)
        if server.poll() is not None or found is None or time.monotonic() > end:
            raise SystemExit(f"it does not come to pass that {what}")
        time.sleep(0.05)
