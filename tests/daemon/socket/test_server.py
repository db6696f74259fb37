"""The socket answers, to whoever may ask, within bounds, and nothing a client does stops it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from specmine.daemon.socket.answers import Answer
from specmine.daemon.socket.client import DaemonConnection, NoAnswer, NoDaemon, ask
from specmine.daemon.socket.peer import Peer
from specmine.daemon.socket.server import LARGEST_REQUEST, Server
from specmine.daemon.system.cpu_allowances import CpuAllowances
from specmine.model.errors import HostError, InputError, NoData
from tests.support.patience import patient


def answer(request: Mapping[str, Any], peer: Peer) -> Mapping[str, Any]:
    """Answer as a daemon would, in all the ways it can."""
    match request["command"]:
        case "echo":
            return {"said": request.get("text"), "uid": peer.uid, "may_change": peer.may_change}
        case "large":
            return {"text": "x" * 5_000_000}
        case "nothing":
            raise NoData("nothing is stable yet")
        case "host":
            raise HostError("this host cannot", remedy="run specmine doctor")
        case "mistake":
            raise RuntimeError("oops")
        case other:
            raise InputError(f"unknown command {other!r}")


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    """Run a server and return its socket."""
    server = Server(tmp_path / "s.sock", answer)
    yield tmp_path / "s.sock"
    server.close()


@contextlib.contextmanager
def open_to_all(answer: Answer) -> Iterator[tuple[Path, Server]]:
    """Run a server whose socket other users can reach; they may not enter pytest's own folders."""
    folder = Path(tempfile.mkdtemp(prefix="specmine-", dir="/tmp"))
    folder.chmod(0o755)
    server = Server(folder / "s.sock", answer)
    try:
        yield folder / "s.sock", server
    finally:
        server.close()
        shutil.rmtree(folder)


def raw(path: Path) -> socket.socket:
    """Connect without the client."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(5)
    connection.connect(str(path))
    return connection


def test_a_request_is_answered(path: Path) -> None:
    """The result comes back, and the kernel says who asks."""
    result = ask(path, {"command": "echo", "text": "häß\n"})
    assert result == {"said": "häß\n", "uid": os.getuid(), "may_change": True}


def test_a_large_answer_arrives_whole(path: Path) -> None:
    """Answers larger than the socket's buffer are sent in pieces."""
    assert len(ask(path, {"command": "large"})["text"]) == 5_000_000


@pytest.mark.parametrize(
    ("command", "error", "code"), [("nothing", NoData, 3), ("host", HostError, 4), ("no", InputError, 2)]
)
def test_errors_keep_their_kind(path: Path, command: str, error: type[Exception], code: int) -> None:
    """An error raised there is raised here, with its exit code and its remedy."""
    with pytest.raises(error) as caught:
        ask(path, {"command": command})
    assert getattr(caught.value, "exit_code", None) == code


def test_a_mistake_of_ours_does_not_end_the_server(path: Path) -> None:
    """After an unexpected exception the next request is answered."""
    with pytest.raises(InputError, match="failed to answer"):
        ask(path, {"command": "mistake"})
    assert ask(path, {"command": "echo"})["said"] is None


@pytest.mark.parametrize("line", [b"", b"[]", b"{}", b"\xff", b'{"command": 1}', b"[" * 20000])
def test_nonsense_is_answered_with_an_error(path: Path, line: bytes) -> None:
    """What is no request gets an error, and the connection goes on."""
    with raw(path) as connection, connection.makefile("rb") as lines:
        connection.sendall(line + b"\n")
        assert json.loads(lines.readline())["exit_code"] == 2
        connection.sendall(b'{"command": "echo", "text": "still"}\n')
        assert json.loads(lines.readline())["result"]["said"] == "still"


def test_a_request_without_end_is_cut_off(path: Path) -> None:
    """More than the bound without a newline gets an error and the end of the connection."""
    with raw(path) as connection, connection.makefile("rb") as lines:
        connection.sendall(b"x" * (LARGEST_REQUEST + 1))
        assert "larger than" in json.loads(lines.readline())["error"]
        assert lines.readline() == b""


def test_several_requests_in_one_packet_are_all_answered(path: Path) -> None:
    """Requests need not wait for each other's answers, even large ones, even if the client stops sending."""
    with raw(path) as connection, connection.makefile("rb") as lines:
        connection.sendall(b'{"command": "large"}\n' * 3 + b'{"command": "echo", "text": "last"}\n')
        connection.shutdown(socket.SHUT_WR)
        answers = [json.loads(line) for line in lines]
    assert [len(each["result"].get("text", "")) for each in answers] == [5_000_000] * 3 + [0]


def test_a_client_that_does_not_read_holds_up_nobody(path: Path) -> None:
    """While one client leaves its answer lying another is served."""
    with raw(path) as lazy:
        lazy.sendall(b'{"command": "large"}\n')
        assert ask(path, {"command": "echo", "text": "me"})["said"] == "me"


def test_a_silent_client_is_let_go_and_told_to_the_daemon(tmp_path: Path) -> None:
    """After the idle time the connection ends, and so does what was granted to it."""
    ended = threading.Event()
    server = Server(tmp_path / "s.sock", answer, closed=lambda _: ended.set(), idle_s=0.05)
    try:
        with raw(tmp_path / "s.sock") as silent:
            assert silent.recv(1) == b""
        assert ended.wait(patient(60))
    finally:
        server.close()


def test_a_blank_is_no_sign_of_life(tmp_path: Path) -> None:
    """A client that sends no request is disconnected, whatever else it sends; one that asks stays."""
    server = Server(tmp_path / "s.sock", answer, idle_s=0.5)
    ended = False
    try:
        with raw(tmp_path / "s.sock") as slow, DaemonConnection(tmp_path / "s.sock") as asking:
            slow.settimeout(0.05)
            began = time.monotonic()
            while not ended and time.monotonic() < began + 5:
                asking.ask({"command": "echo"})
                try:
                    slow.sendall(b" ")
                    ended = slow.recv(1) == b""
                except TimeoutError:
                    pass
                except OSError:
                    ended = True
            assert ended
            while time.monotonic() < began + 1.5:
                asking.ask({"command": "echo"})
                time.sleep(0.05)
    finally:
        server.close()


def test_nobody_waits_for_the_requests_of_one_client(tmp_path: Path) -> None:
    """A client is answered once a turn, however many requests it sent."""
    turns: list[str] = []

    def noted(request: Mapping[str, Any], peer: Peer) -> Mapping[str, Any]:
        turns.append(request["command"])
        time.sleep(0.01)
        return {}

    server = Server(tmp_path / "s.sock", noted)
    try:
        with raw(tmp_path / "s.sock") as greedy:
            greedy.sendall(b'{"command": "greedy"}\n' * 200)
            ask(tmp_path / "s.sock", {"command": "other"})
        assert turns.index("other") < 100
    finally:
        server.close()


CROWD = """
import socket, sys, time
clients, refused = [], 0
for _ in range(64):
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(0.5)
    client.connect(sys.argv[1])
    clients.append(client)
time.sleep(0.5)
for client in clients:
    client.setblocking(False)
    try:
        refused += b"at most 16" in client.recv(1000)
    except BlockingIOError:
        client.sendall(b" ")
print(refused, flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
def test_another_user_does_not_shut_root_out() -> None:
    """Of 64 connections of another user 16 are served, the others get one line; root is answered meanwhile."""
    with open_to_all(answer) as (path, _):
        command = ["/usr/bin/python3", "-c", CROWD, str(path)]
        with subprocess.Popen(command, user=65534, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as crowd:
            assert crowd.stdout is not None
            assert crowd.stdin is not None
            assert crowd.stdout.readline() == "48\n"
            connections = [DaemonConnection(path) for _ in range(48)]
            assert all(connection.ask({"command": "echo"})["may_change"] for connection in connections)
            with pytest.raises(InputError, match="too many connections"):
                ask(path, {"command": "echo"})
            for connection in connections:
                connection.close()
            crowd.stdin.close()


GREED = """
import socket, sys, time
clients, answers = [], 0
for _ in range(8):
    client = socket.socket(socket.AF_UNIX)
    client.connect(sys.argv[1])
    client.setblocking(False)
    client.sendall(b"".join(b'{"command": "work", "number": %d}\\n' % (i + 2000 * len(clients)) for i in range(2000)))
    clients.append(client)
end = time.monotonic() + 3
while time.monotonic() < end:
    for client in clients:
        try:
            answers += client.recv(100_000).count(b"\\n")
        except BlockingIOError:
            pass
    time.sleep(0.01)
print(answers, flush=True)
"""


SAME = """
import socket, sys
client = socket.socket(socket.AF_UNIX)
client.connect(sys.argv[1])
client.sendall(b'{"command": "work"}\\n' * 20)
answers = b""
while answers.count(b"\\n") < 20:
    answers += client.recv(100_000)
print(len(set(answers.split(b"\\n")) - {b""}))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
def test_other_users_may_get_the_answer_of_a_moment_ago() -> None:
    """An answer that took 20 ms of CPU time is given again for 400 ms; root always gets a new one."""
    made: list[bool] = []

    def work(request: Mapping[str, Any], peer: Peer) -> Mapping[str, Any]:
        began_s = time.thread_time()
        while time.thread_time() < began_s + 0.02:
            pass
        made.append(peer.may_change)
        return {"number": len(made)}

    with open_to_all(work) as (path, _):
        command = ["/usr/bin/python3", "-c", SAME, str(path)]
        done = subprocess.run(command, user=65534, capture_output=True, text=True, check=True)
        assert 1 <= int(done.stdout) == made.count(False) < 20
        assert [ask(path, {"command": "work"})["number"] for _ in range(3)] == [len(made) - 2 + i for i in range(3)]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
def test_another_user_takes_a_share_of_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """However much he asks for on however many connections; he is answered in the end, and root at once."""
    monkeypatch.setattr("specmine.daemon.socket.server.CpuAllowances", lambda _: CpuAllowances(0.05, 0.1))
    used_s: list[float] = []

    def work(request: Mapping[str, Any], peer: Peer) -> Mapping[str, Any]:
        if request["command"] == "work":
            began_s = time.thread_time()
            while time.thread_time() < began_s + 0.005:
                pass
            used_s.append(0.005)
        return {}

    with open_to_all(work) as (path, server):
        command = ["/usr/bin/python3", "-c", GREED, str(path)]
        began_s = time.monotonic()
        with subprocess.Popen(command, user=65534, stdout=subprocess.PIPE, text=True) as greedy:
            while greedy.poll() is None:
                ask(path, {"command": "other"})
                time.sleep(0.05)
            took_s = time.monotonic() - began_s
            assert greedy.stdout is not None
            answers = int(greedy.stdout.read())
            told_s = server.cpu_s
    assert 1 <= answers <= len(used_s)
    assert told_s >= 0.9 * sum(used_s)
    assert sum(used_s) <= 0.1 + 0.05 * took_s + 0.01, "one answer may be begun with little left"


def test_a_full_queue_is_no_missing_daemon(tmp_path: Path) -> None:
    """While the daemon accepts nobody the client waits, then says that it is busy."""
    path = tmp_path / "s.sock"
    with socket.socket(socket.AF_UNIX) as listener, contextlib.ExitStack() as stack:
        listener.bind(str(path))
        listener.listen(0)
        stack.enter_context(raw(path))
        with pytest.raises(NoAnswer, match="busy") as caught:
            ask(path, {"command": "status"}, timeout_s=0.2)
        assert caught.value.exit_code == 2


def test_no_daemon_is_one_line_with_a_remedy(tmp_path: Path) -> None:
    """Without a socket, and with one that nobody listens at, the error says what to do."""
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(str(tmp_path / "dead.sock"))
    for name in ("none.sock", "dead.sock"):
        with pytest.raises(NoDaemon, match=r"no daemon answers.*--store") as caught:
            ask(tmp_path / name, {"command": "status"})
        assert caught.value.exit_code == 2
    dead.close()


def test_a_daemon_that_dies_is_an_error(tmp_path: Path) -> None:
    """A connection that ends before the answer is reported, not taken for an answer."""
    server = Server(tmp_path / "s.sock", answer)
    with DaemonConnection(tmp_path / "s.sock") as connection:
        assert connection.ask({"command": "echo"})["said"] is None
        server.close()
        with pytest.raises(NoDaemon):
            connection.ask({"command": "echo"})
    assert not (tmp_path / "s.sock").exists()


def test_a_dead_socket_is_replaced_and_a_living_one_is_not(tmp_path: Path) -> None:
    """What a killed daemon left behind is no obstacle; a daemon that answers is."""
    path = tmp_path / "s.sock"
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(str(path))
    dead.close()
    server = Server(path, answer)
    with pytest.raises(InputError, match="another daemon answers"):
        Server(path, answer)
    assert ask(path, {"command": "echo"})["said"] is None
    server.close()


def test_a_file_in_the_way_is_left_alone(tmp_path: Path) -> None:
    """A file that is no socket is never deleted."""
    path = tmp_path / "s.sock"
    path.write_text("precious")
    with pytest.raises(InputError, match="not a socket"):
        Server(path, answer)
    assert path.read_text() == "precious"


def test_a_path_too_long_is_an_error(tmp_path: Path) -> None:
    """The kernel takes 107 bytes; more is one clear line."""
    with pytest.raises(InputError, match="cannot make the socket"):
        Server(tmp_path / ("x" * 120), answer)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
def test_another_user_may_read_but_not_change() -> None:
    """A user without rights is answered, and known as one."""
    code = (
        "import json, socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]);"
        ' s.sendall(b\'{"command": "echo"}\\n\'); print(s.recv(999).decode())'
    )
    with open_to_all(answer) as (path, _):
        command = ["/usr/bin/python3", "-c", code, str(path)]
        done = subprocess.run(command, user=65534, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["result"] == {"said": None, "uid": 65534, "may_change": False}
