"""A stock MariaDB under a bounded load, with faults of its plan, of locks, of the log and of the host."""

from __future__ import annotations

import random
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.faults.programs.cpu_group import CpuGroup
from bench.faults.programs.fault import Fault, Service, replaced, wandering
from bench.lib.child_processes import running
from bench.lib.debian_programs import QUIET, mariadb
from bench.lib.http_load import Counts, Rate, read_account, write_account

RATE = 150
CLIENTS = 4
ROWS, BRANCHES = 20_000, 10
_HELLO = struct.pack("<IIB23x", 0x0008820D, 1 << 24, 33) + b"root\0\0bench\0mysql_native_password\0"
_EOF, _ERROR = 0xFE, 0xFF


class Client:
    """One connection: protocol 4.1, user root without a password."""

    def __init__(self, path: Path) -> None:
        """Connect, waiting for the server to start."""
        self._socket = socket.socket(socket.AF_UNIX)
        end = time.monotonic() + 30
        while True:
            try:
                self._socket.connect(str(path))
                break
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)
        self._file = self._socket.makefile("rb")
        self._packet()
        self._send(1, _HELLO)
        self._packet()

    def ask(self, text: str) -> None:
        """Have a statement executed, and read all of its answer."""
        self._send(0, b"\x03" + text.encode())
        ends = 0 if self._packet()[0] else 2  # 0: done, without rows
        while ends < 2:
            packet = self._packet()
            ends += packet[0] == _EOF and len(packet) < 9

    def _send(self, number: int, body: bytes) -> None:
        self._socket.sendall(struct.pack("<I", len(body))[:3] + bytes([number]) + body)

    def _packet(self) -> bytes:
        head = self._file.read(4)
        body = self._file.read(int.from_bytes(head[:3], "little"))
        if body[0] == _ERROR:
            raise SystemExit(f"mariadbd: {body[9:].decode(errors='replace')}")
        return body


def statements(chance: random.Random) -> tuple[str, ...]:
    """Return a transaction by chance: it reads a row by an index, and adds to a counter."""
    return (
        "BEGIN",
        f"SELECT c FROM rows_ WHERE looked_up = {chance.randrange(ROWS)}",
        f"UPDATE branches SET n = n + 1 WHERE id = {chance.randrange(BRANCHES)}",
        "COMMIT",
    )


def load(path: Path, rate: Rate, seed: int, counts: Counts) -> None:
    """Ask at random times, at a rate that is constant on average."""
    client, chance, due = Client(path), random.Random(seed), time.monotonic()
    while True:
        due = max(due + chance.expovariate(rate.now() / CLIENTS), time.monotonic() - 1)
        time.sleep(max(0.0, due - time.monotonic()))
        began = time.monotonic()
        for text in statements(chance):
            client.ask(text)
        counts.latencies_s.append(time.monotonic() - began)


def loads(path: str, rate: str, account: str) -> None:
    """Run the clients until this process is killed."""
    everyone = [Counts() for _ in range(CLIENTS)]
    for seed, counts in enumerate(everyone):
        arguments = (Path(path), Rate(RATE, Path(rate)), seed, counts)
        threading.Thread(target=load, args=arguments, daemon=True).start()
    while True:
        time.sleep(1)
        write_account(Path(account), everyone)


def holds(path: str) -> None:
    """Hold the rows of all counters for 100 ms of 300, until this process is killed."""
    client = Client(Path(path))
    while True:
        for text in ("BEGIN", "SELECT n FROM branches FOR UPDATE"):
            client.ask(text)
        time.sleep(0.1)
        client.ask("COMMIT")
        time.sleep(0.2)


@contextmanager
def served(folder: Path) -> Iterator[Service]:
    """Run the server and its load."""
    with ExitStack() as stack:
        own = ("--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=64M")
        command = [*mariadb(folder), *own]
        server = stack.enter_context(running(command, cwd=folder, start_new_session=True, **QUIET))
        path, rate, account = folder / "socket", folder / "rate", folder / "account"
        while not path.exists():
            time.sleep(0.1)
        # the program's own client makes the database: ours names it when it connects
        made = "CREATE DATABASE bench"
        with running(("mariadb", "--no-defaults", "-u", "root", f"--socket={path}", "-e", made), **QUIET) as client:
            client.wait()
        client_of_ours = Client(path)
        ask = client_of_ours.ask
        ask("CREATE TABLE rows_ (id INT PRIMARY KEY, looked_up INT, c CHAR(120), KEY looked_up (looked_up))")
        ask(f"INSERT INTO rows_ SELECT seq, seq, MD5(seq) FROM seq_0_to_{ROWS}")
        ask("CREATE TABLE branches (id INT PRIMARY KEY, n INT)")
        ask(f"INSERT INTO branches SELECT seq, 0 FROM seq_0_to_{BRANCHES}")
        rate.write_text(str(RATE))
        names = f"{str(path)!r}, {str(rate)!r}, {str(account)!r}"
        code = f"from bench.faults.programs.mariadb import loads; loads({names})"
        stack.enter_context(running((sys.executable, "-c", code)))
        holding = f"from bench.faults.programs.mariadb import holds; holds({str(path)!r})"
        harmless = stack.enter_context(wandering(lambda factor: replaced(rate, str(RATE * factor))))
        quota = stack.enter_context(CpuGroup("specmine-bench-mariadb"))
        opened: list[ExitStack] = []

        def hold() -> None:
            opened.append(ExitStack())
            opened[-1].enter_context(running((sys.executable, "-c", holding)))

        def asked(text: str) -> Callable[[], None]:
            return lambda: ask(text)

        yield Service(
            name="mariadb",
            exe="/usr/sbin/mariadbd",
            pid=server.pid,
            clients=lambda: read_account(account),
            faults=(
                Fault(
                    name="an index is dropped",
                    inject=asked("DROP INDEX looked_up ON rows_"),
                    undo=asked("CREATE INDEX looked_up ON rows_ (looked_up)"),
                    functions=("*rnd_next*", "row_search*", "*evaluate_join*", "sub_select*", "*JOIN*", "*select*",
                               "*rr_*", "*READ_RECORD*", "*execute_command*", "dispatch_command*", "do_command*",
                               "*handler*", "mysql_parse*"),
                    causes=("load", "unknown", "callee"),
                    alone=True,
                ),
                Fault(
                    name="a session holds row locks for 100 ms of 300",
                    inject=hold,
                    undo=lambda: opened.pop().close(),
                    functions=("*lock_wait*", "*row_mysql_handle_errors*", "pthread_cond_*", "row_search*",
                               "*index_read*", "*update*", "*execute_command*", "dispatch_command*", "do_command*",
                               "*handler*", "mysql_parse*"),
                    causes=("wait", "callee"),
                ),
                Fault(
                    name="each commit syncs the log",
                    inject=asked("SET GLOBAL innodb_flush_log_at_trx_commit = 1"),
                    undo=asked("SET GLOBAL innodb_flush_log_at_trx_commit = 0"),
                    functions=("*log_write*", "fdatasync", "fsync", "*commit*", "trx_*", "*flush*", "*group_commit*",
                               "*execute_command*", "dispatch_command*", "do_command*", "mysql_parse*"),
                    causes=("wait", "callee"),
                ),
                Fault(
                    name="a CPU limit of half of what it uses",
                    inject=lambda: quota.halve(server.pid),
                    undo=quota.lift,
                    causes=("host",),
                ),
                *harmless,
            ),
        )  # fmt: skip
