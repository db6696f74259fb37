"""The daemon's unix socket, on a thread of its own, so that no client can delay the loop.

Requests and answers are one JSON object a line. Sizes, times and the number of clients are bounded.
"""

from __future__ import annotations

import json
import os
import selectors
import shutil
import socket
import stat
import struct
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from specmine.model.errors import InputError, SpecmineError

LARGEST_REQUEST = 64 << 10
MOST_CLIENTS = 64
IDLE_S = 30.0
_PEER = struct.Struct("3i")
_PIECE = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """The process at the other end of a connection, as the kernel identifies it."""

    connection: int
    """Number of the connection, never used twice."""
    pid: int
    uid: int

    @property
    def may_change(self) -> bool:
        """True for root and for the daemon's own user."""
        return self.uid in (0, os.geteuid())


Answer = Callable[[Mapping[str, Any], Peer], Mapping[str, Any]]
"""Returns the result of a request or raises SpecmineError. Runs on the server's thread; must not block."""


@dataclass(slots=True, eq=False)
class _Client:
    peer: Peer
    socket: socket.socket
    deadline: float
    received: bytearray = field(default_factory=bytearray)
    to_send: memoryview = field(default_factory=lambda: memoryview(b""))
    closing: bool = False


class Server:
    """Answers on a unix socket until it is closed."""

    def __init__(
        self,
        path: str | Path,
        answer: Answer,
        *,
        closed: Callable[[int], None] = lambda _: None,
        mode: int = 0o666,
        group: str | None = None,
        idle_s: float = IDLE_S,
    ) -> None:
        """Listen and start to answer.

        Parameters
        ----------
        path : path
            The socket; one that a dead daemon left behind is replaced.
        answer : callable
            Returns the answers.
        closed : callable
            Gets the number of each connection that ended.
        mode, group : int, str
            Who may connect.
        idle_s : float
            A client silent for so long is disconnected.

        Raises
        ------
        InputError
            If the socket cannot be made there.
        """
        self.path = Path(path)
        self._answer = answer
        self._closed = closed
        self._idle_s = idle_s
        self._listener = _listening(self.path, mode, group)
        self._inode = self.path.stat().st_ino
        self._wake_out, self._wake_in = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._wake_out, selectors.EVENT_READ)
        self._clients: dict[int, _Client] = {}
        self._accepted = 0
        self._thread = threading.Thread(target=self._run, name="socket", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop answering and remove the socket."""
        os.write(self._wake_in, b"x")
        self._thread.join(2.0)
        try:
            if self.path.stat().st_ino == self._inode:
                self.path.unlink()
        except OSError:
            pass  # somebody took it away already
        for fd in (self._wake_in, self._wake_out):
            os.close(fd)

    def _run(self) -> None:
        while True:
            for key, events in self._selector.select(min(1.0, self._idle_s) if self._clients else None):
                if key.fileobj == self._wake_out:
                    self._shut()
                    return
                if key.fileobj is self._listener:
                    self._accept()
                else:
                    self._serve(key.data, events)
            now = time.monotonic()
            for client in [each for each in self._clients.values() if each.deadline < now]:
                self._drop(client)

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:
            return  # gone already, or no descriptors left: the next one may work
        connection.setblocking(False)
        if len(self._clients) >= MOST_CLIENTS:
            connection.close()
            return
        pid, uid, _ = _PEER.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
        self._accepted += 1
        peer = Peer(connection=self._accepted, pid=pid, uid=uid)
        client = _Client(peer, connection, time.monotonic() + self._idle_s)
        self._clients[peer.connection] = client
        self._selector.register(connection, selectors.EVENT_READ, client)

    def _serve(self, client: _Client, events: int) -> None:
        try:
            if events & selectors.EVENT_READ:
                piece = client.socket.recv(_PIECE)
                client.received += piece
                client.closing |= not piece
                client.deadline = time.monotonic() + self._idle_s
            while self._answer_next(client):
                client.to_send = client.to_send[client.socket.send(client.to_send) :]
        except BlockingIOError:
            pass
        except OSError:
            client.closing = True
            client.to_send = memoryview(b"")
        if client.closing and not client.to_send:
            self._drop(client)
            return
        wanted = selectors.EVENT_WRITE if client.to_send else selectors.EVENT_READ
        self._selector.modify(client.socket, wanted, client)

    def _answer_next(self, client: _Client) -> bool:
        """Answer the next complete line once the last answer is sent; return whether there is something to send."""
        if client.to_send:
            return True
        line, newline, rest = client.received.partition(b"\n")
        if newline:
            client.received = rest
            client.to_send = memoryview(self._answered(bytes(line), client.peer))
        elif len(line) > LARGEST_REQUEST:
            client.received = bytearray()
            client.to_send = memoryview(_failure(InputError("the request is larger than 64 KiB")))
            client.closing = True
        return bool(client.to_send)

    def _answered(self, line: bytes, peer: Peer) -> bytes:
        try:
            request = json.loads(line)
            if not isinstance(request, dict) or not isinstance(request.get("command"), str):
                raise InputError('a request is {"command": ...} on one line')
            result = self._answer(request, peer)
            return json.dumps({"ok": True, "result": result}, allow_nan=False).encode("utf-8") + b"\n"
        except SpecmineError as error:
            return _failure(error)
        except (ValueError, RecursionError) as error:
            return _failure(InputError(f"the request cannot be answered: {error}"))
        except Exception as error:  # a mistake of ours must not end the thread that all clients share
            return _failure(InputError(f"the daemon failed to answer: {error!r}", remedy="report it"))

    def _drop(self, client: _Client) -> None:
        self._selector.unregister(client.socket)
        client.socket.close()
        del self._clients[client.peer.connection]
        self._closed(client.peer.connection)

    def _shut(self) -> None:
        for client in list(self._clients.values()):
            self._drop(client)
        self._selector.close()
        self._listener.close()


def _failure(error: SpecmineError) -> bytes:
    answer = {"ok": False, "error": error.message, "remedy": error.remedy, "exit_code": error.exit_code}
    return json.dumps(answer).encode("utf-8") + b"\n"


def _listening(path: Path, mode: int, group: str | None) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _clear(path)
        listener.bind(str(path))
        # Before listen() nobody can connect, so nobody slips in under the first mode
        if group is not None:
            shutil.chown(path, group=group)
        path.chmod(mode)
        listener.listen(16)
    except InputError:
        listener.close()
        raise
    except (OSError, LookupError) as error:
        listener.close()
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot make the socket {path}: {reason}", remedy="change socket.path") from error
    return listener


def _clear(path: Path) -> None:
    """Remove the socket of a dead daemon; anything else stays."""
    try:
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise InputError(f"{path} is not a socket", remedy="change socket.path, or move the file away")
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
    raise InputError(f"another daemon answers at {path}", remedy="stop it, or change socket.path")
