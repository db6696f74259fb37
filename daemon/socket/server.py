"""The daemon's unix socket, on a thread of its own, so that no client can delay the loop.

Requests and answers are one JSON object a line. Sizes, times and the number of clients are bounded, also per user. Root
and the daemon's own user have places that others cannot take, and are answered first. What answers to other users take
of a CPU is bounded, too.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

from specmine.daemon.system.cpu_allowances import CpuAllowances
from specmine.daemon.system.kept_texts import KeptTexts
from specmine.model.errors import InputError

from .answers import Answer, answered, failure
from .client_state import ClientState
from .listener import listening
from .peer import Peer, peer_of

LARGEST_REQUEST = 64 << 10
MOST_CLIENTS = 64
MOST_OTHERS = 48
"""Connections of users who may change nothing; the other places stay free for those who may."""
MOST_PER_USER = 16
"""Connections of one such user."""
OTHERS_SHARE = 0.1
"""CPU seconds a second for the requests of one such user; twice what keeping the page's documents fresh takes."""
IDLE_S = 30.0
TURN_S = 0.1
"""So long others are answered before the server checks again who waits."""
_PIECE = 1 << 16


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
            A client that sends no request for so long is disconnected.

        Raises
        ------
        InputError
            If the socket cannot be made there.
        """
        self.path = Path(path)
        self._answer = answer
        self._closed = closed
        self._idle_s = idle_s
        self._listener = listening(self.path, mode, group)
        self._inode = self.path.stat().st_ino
        self._wake_out, self._wake_in = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._wake_out, selectors.EVENT_READ)
        self._clients: dict[int, ClientState] = {}
        self._allowances, self._kept = CpuAllowances(OTHERS_SHARE), KeptTexts()
        self._accepted = 0
        self.cpu_s = 0.0
        """CPU time of the thread that answers."""
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
            ready = self._selector.select(self._longest_wait_s())
            if any(key.fileobj == self._wake_out for key, _ in ready):
                self._shut()
                return
            self._serve_all([(key.data, events) for key, events in ready if key.data is not None])
            if any(key.fileobj is self._listener for key, _ in ready):
                self._accept_all()
            self.cpu_s = time.thread_time()
            now = time.monotonic()
            for client in list(self._clients.values()):
                if client.parked:
                    self._unpark(client, now)
                elif client.deadline < now:
                    self._drop(client)

    def _longest_wait_s(self) -> float | None:
        """Return after how many seconds there is something to do even if no client moves."""
        now = time.monotonic()
        waits = [self._allowances.wait_s(each.peer.uid, now) for each in self._clients.values() if each.parked]
        return min([1.0, self._idle_s, *waits]) if self._clients else None

    def _park(self, client: ClientState) -> None:
        self._selector.unregister(client.socket)
        client.parked = True

    def _unpark(self, client: ClientState, now: float) -> None:
        if self._allowances.wait_s(client.peer.uid, now) == 0.0:
            self._selector.register(client.socket, client.events, client)
            client.parked, client.deadline = False, now + self._idle_s

    def _serve_all(self, ready: list[tuple[ClientState, int]]) -> None:
        """Serve those who may change something, then the others, for a while, in the order in which they waited."""
        began = time.monotonic()
        for client, events in sorted(ready, key=lambda each: (not each[0].peer.may_change, each[0].served)):
            if not client.peer.may_change and time.monotonic() - began > TURN_S:
                return
            client.served = time.monotonic()
            if client.peer.may_change:
                self._serve(client, events)
            elif self._allowances.wait_s(client.peer.uid, client.served):
                self._park(client)
            else:
                used_s = time.thread_time()
                self._serve(client, events)
                self._allowances.spend(client.peer.uid, time.thread_time() - used_s, client.served)

    def _accept_all(self) -> None:
        for _ in range(MOST_CLIENTS):
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return  # none is left, or gone already, or no descriptors left: the next one may work
            self._admit(connection)

    def _admit(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        peer = peer_of(connection, self._accepted + 1)
        refusal = self._refusal(peer)
        if refusal is not None:
            with connection, contextlib.suppress(OSError):
                connection.send(failure(refusal))
            return
        self._accepted += 1
        client = ClientState(peer, connection, time.monotonic() + self._idle_s)
        self._clients[peer.connection] = client
        self._selector.register(connection, selectors.EVENT_READ, client)

    def _refusal(self, peer: Peer) -> InputError | None:
        """Return why there is no place for a peer, None if there is one."""
        others = [client.peer.uid for client in self._clients.values() if not client.peer.may_change]
        most = f"the daemon serves at most {MOST_PER_USER} connections of one user at a time"
        if not peer.may_change and others.count(peer.uid) >= MOST_PER_USER:
            return InputError(most, remedy="end others of this user")
        if len(self._clients) >= MOST_CLIENTS or (not peer.may_change and len(others) >= MOST_OTHERS):
            return InputError("the daemon serves too many connections already", remedy="try again")
        return None

    def _serve(self, client: ClientState, events: int) -> None:
        """Read what came, send one answer; further requests wait for the client's next turn."""
        try:
            if events & selectors.EVENT_READ:
                piece = client.socket.recv(_PIECE)
                client.received += piece
                client.closing |= not piece
            if not client.to_send:
                self._answer_next(client)
            if client.to_send:
                client.to_send = client.to_send[client.socket.send(client.to_send) :]
        except BlockingIOError:
            pass
        except OSError:
            client.closing = True
            client.received, client.to_send = bytearray(), memoryview(b"")
        if client.closing and not client.is_busy:
            self._drop(client)
            return
        self._selector.modify(client.socket, client.events, client)

    def _answer_next(self, client: ClientState) -> None:
        """Answer the next complete line, if there is one."""
        line, newline, rest = client.received.partition(b"\n")
        if newline:
            client.received = rest
            client.to_send = memoryview(self._text(bytes(line), client.peer))
            if line.strip():  # only a request shows that somebody is there
                client.deadline = time.monotonic() + self._idle_s
        elif len(line) > LARGEST_REQUEST:
            client.received = bytearray()
            client.to_send = memoryview(failure(InputError("the request is larger than 64 KiB")))
            client.closing = True

    def _text(self, line: bytes, peer: Peer) -> bytes:
        """Return the answer; who may change nothing may get the one that another such user got a moment ago."""
        if peer.may_change:
            return answered(line, peer, self._answer)
        return self._kept.text(line, lambda: answered(line, peer, self._answer))

    def _drop(self, client: ClientState) -> None:
        if not client.parked:
            self._selector.unregister(client.socket)
        client.socket.close()
        del self._clients[client.peer.connection]
        self._closed(client.peer.connection)

    def _shut(self) -> None:
        for client in list(self._clients.values()):
            self._drop(client)
        self._selector.close()
        self._listener.close()
