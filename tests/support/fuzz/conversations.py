"""Socket and HTTP conversations of clients that keep to no rule, with a daemon over a simulated program."""

from __future__ import annotations

import json
import os
import random
import socket
import struct
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from specmine.daemon.system.logging import set_up
from tests.support.fuzz.mutation import damaged_bytes, damaged_json
from tests.support.lives import Life, config_text

NOBODY = 65534
MAY_WAIT_S = 10.0
"""How long an honest client may wait for its answer on a busy host."""
MORE_DESCRIPTORS = 39
"""Connections that the daemon may keep for a while after their clients are gone."""
_COMMANDS = (
    "status",
    "specification",
    "functions",
    "show",
    "violations",
    "label",
    "acknowledge",
    "share",
    "off",
    "on",
    "x",
)
_PAGES = (
    b"GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n",
    b"GET /metrics HTTP/1.0\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"HEAD /metrics HTTP/1.1\r\nHost: {host}\r\nAccept: application/openmetrics-text\r\n\r\n",
    b"GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    b"GET /metrics HTTP/1.1\r\nHost: {host}\r\nHost: evil.example\r\n\r\n",
    b"GET http://evil.example/metrics HTTP/1.1\r\nHost: {host}\r\n\r\n",
    b"POST /metrics HTTP/1.1\r\nHost: {host}\r\nContent-Length: 30\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    b"GET /metrics HTTP/1.1\r\n\r\n",
    b"GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\nGET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n",
    b"GET /../../../etc/passwd HTTP/1.1\r\nHost: {host}\r\n\r\n",
    b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
    b"GET /metrics HTTP/1.1\r\n" + b"X: y\r\n" * 5000 + b"\r\n",
    b"GET /metrics\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
)


@dataclass
class Talk:
    """What became of the conversations."""

    outcomes: Counter[str] = field(default_factory=Counter)
    slowest_s: float = 0.0
    """Longest wait of an honest client."""
    peak_bytes: int = 0
    faults: list[str] = field(default_factory=list)


@contextmanager
def living_daemon(folder: Path) -> Iterator[tuple[int, Path, str]]:
    """Give the pid, the socket and the address for metrics of a daemon in a process of its own."""
    folder.chmod(0o755)
    ready, told = os.pipe()
    waits, goes_on = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(goes_on)
        os._exit(_live(folder, told, waits))
    for fd in (told, waits):
        os.close(fd)
    with open(ready) as file:  # noqa: PTH123 (a descriptor)
        address = file.readline().strip()
    try:
        yield pid, folder / "run" / "s.sock", address
    finally:
        os.close(goes_on)
        _, status = os.waitpid(pid, 0)
        assert os.waitstatus_to_exitcode(status) == 0, (folder / "log").read_text()


def _live(folder: Path, told: int, waits: int) -> int:
    """Be the daemon: stand still at a moment of its life while its servers answer."""
    try:
        log = os.open(folder / "log", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        os.dup2(log, 1)
        os.dup2(log, 2)
        sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
        set_up(level="info", form="logfmt")  # as the daemon does; handlers of the forking process write elsewhere
        life = Life(folder, config=config_text(folder, f"kill_switch: {folder}/off"))

        def stand_still() -> None:
            os.write(told, f"{life.ask(command='status')['metrics']}\n".encode())
            os.close(told)
            os.read(waits, 1)

        life.at(40, stand_still)
        life.run(42)
        return 0
    except BaseException:
        import traceback  # noqa: PLC0415

        traceback.print_exc()
        return 1


def talk(count: int, seed: int, folder: Path) -> Talk:
    """Hold ``count`` conversations, half of them as nobody if this is root; an honest client asks in between."""
    found = Talk()
    with living_daemon(folder) as (pid, path, address):
        before = _descriptors(pid)  # some are those of whoever forked it
        for begin in range(0, count, 20):
            chance = random.Random(f"specmine conversations {seed} {begin}")
            number = min(20, count - begin)
            for outcome in _in_a_fork(path, address, number, chance, as_nobody=begin // 20 % 2 == 1):
                found.outcomes[outcome] += 1
            began = time.monotonic()
            found.faults += [f"after {begin + number}: {each}" for each in _honest(path, address)]
            found.slowest_s = max(found.slowest_s, time.monotonic() - began)
        status = Path(f"/proc/{pid}/status").read_text()
        found.peak_bytes = 1024 * int(status.partition("VmHWM:")[2].split()[0])
        if (more := _descriptors(pid) - before) > MORE_DESCRIPTORS:
            found.faults.append(f"{more} more descriptors are open at the end than at the start")
    log = (folder / "log").read_text()
    found.faults += [
        line for line in log.splitlines() if "Traceback" in line or "Error" in line or "level=error" in line
    ]
    return found


def _descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def _in_a_fork(path: Path, address: str, number: int, chance: random.Random, *, as_nobody: bool) -> list[str]:
    """Hold conversations in a process of its own, whose end closes what they left open."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        outcomes = ["broke"]
        try:
            if as_nobody and os.geteuid() == 0:
                os.setgroups([])
                os.setresgid(NOBODY, NOBODY, NOBODY)
                os.setresuid(NOBODY, NOBODY, NOBODY)
            outcomes = [_conversation(path, address, chance) for _ in range(number)]
        except BaseException as error:
            outcomes.append(repr(error))
        os.write(write, json.dumps(outcomes).encode())
        os._exit(0)
    os.close(write)
    with open(read, "rb") as file:  # noqa: PTH123 (a descriptor)
        said = file.read()
    os.waitpid(pid, 0)
    outcomes = json.loads(said or b'["broke"]')
    assert "broke" not in outcomes, f"the client itself failed: {said!r}"
    return list(outcomes)


def _conversation(path: Path, address: str, chance: random.Random) -> str:
    """Say something, perhaps in pieces, perhaps without listening; return what kind of answer came first."""
    is_http = chance.random() < 0.5
    said = _page(address, chance) if is_http else _request(chance)
    client = socket.socket(socket.AF_INET if is_http else socket.AF_UNIX, socket.SOCK_STREAM)
    client.settimeout(0.3)
    try:
        host, port = address.rsplit(":", 1)
        client.connect((host, int(port)) if is_http else str(path))
        at = 0
        while at < len(said):
            piece = chance.choice((1, 7, 100, 5000, len(said)))
            client.sendall(said[at : at + piece])
            at += piece
            if chance.random() < 0.1:
                break
        match chance.randrange(5):
            case 0:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # ends by a reset
                return "left"
            case 1:
                client.shutdown(socket.SHUT_WR)
        answer = client.recv(1 << 16)
    except TimeoutError:
        return "waited"
    except OSError:
        return "cut off"
    finally:
        client.close()
    if is_http:
        return f"http {answer[9:12].decode(errors='replace')}" if answer.startswith(b"HTTP/1.") else "http closed"
    return (
        "answered"
        if answer.startswith(b'{"ok": true')
        else "refused"
        if answer.startswith(b'{"ok": false')
        else "closed"
    )


def _page(address: str, chance: random.Random) -> bytes:
    page = chance.choice(_PAGES).replace(b"{host}", address.encode())
    return damaged_bytes(page, chance) if chance.random() < 0.5 else page


def _request(chance: random.Random) -> bytes:
    fields = {
        "command": chance.choice(_COMMANDS),
        "function": "z",
        "build": "ab",
        "name": "n",
        "ratio": 0.001,
        "detail": True,
    }
    requests = [
        damaged_json(fields, chance) if chance.random() < 0.7 else json.dumps(fields)
        for _ in range(chance.choice((1, 1, 3, 50)))
    ]
    data = "\n".join(requests).encode() + b"\n"
    if chance.random() < 0.1:
        data = chance.choice(
            (b"[" * 60_000 + b"\n", b"x" * 70_000, b'{"command": "show", "function": "' + b"[a" * 20_000 + b'"}\n')
        )
    return damaged_bytes(data, chance) if chance.random() < 0.4 else data


def _honest(path: Path, address: str) -> list[str]:
    """Ask once each way; return what was wrong."""
    wrong = []
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(MAY_WAIT_S)
            client.connect(str(path))
            client.sendall(b'{"command": "status"}\n')
            with client.makefile("rb") as lines:
                answer = json.loads(lines.readline())
        if not answer["ok"]:
            wrong.append(f"status: {answer}")
        host, port = address.rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=MAY_WAIT_S) as client:
            client.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            with client.makefile("rb") as page:
                text = page.read()
        if not text.startswith(b"HTTP/1.0 200") or (b"specmine_info" not in text and b"specmine_" not in text):
            wrong.append(f"metrics: {text[:100]!r}")
    except (OSError, ValueError) as error:
        wrong.append(f"an honest client got {error!r}")
    return wrong
