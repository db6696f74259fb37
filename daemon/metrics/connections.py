"""Which connections are served: few in all, few from one address, each for a bounded time.

A connection that waits for its client gives way to a new one; the one that has waited longest goes first. So slow
clients, however many, do not keep a scraper out.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class _Connection:
    socket: socket.socket
    address: str
    deadline_s: float
    waits_since_s: float | None
    """Since when the client is waited for; None while its answer is made."""
    ended: bool = False
    """It was shut down; its thread has not ended yet."""


class Connections:
    """The open connections. Times are of any monotonic clock, in seconds."""

    def __init__(self, *, most: int, most_per_address: int, limit_s: float) -> None:
        """Begin without any.

        Parameters
        ----------
        most, most_per_address : int
            Connections that are served at a time: of all clients, of one address.
        limit_s : float
            How long one connection may last, whatever happens on it.
        """
        self._most, self._most_per_address, self._limit_s = most, most_per_address, limit_s
        self._connections: dict[socket.socket, _Connection] = {}
        self._lock = threading.Lock()

    def admit(self, client: socket.socket, address: str, now_s: float) -> bool:
        """Take a new connection in, in place of another if need be; False if there is no room."""
        with self._lock:
            if len(self._connections) >= 2 * self._most:  # those that were shut down have threads as well
                return False
            served = [connection for connection in self._connections.values() if not connection.ended]
            of_address = [connection for connection in served if connection.address == address]
            if len(of_address) >= self._most_per_address:
                admitted = _end_longest_wait(of_address)
            else:
                admitted = len(served) < self._most or _end_longest_wait(served)
            if admitted:
                self._connections[client] = _Connection(client, address, now_s + self._limit_s, now_s)
            return admitted

    def begin_answer(self, client: socket.socket) -> bool:
        """Note that the whole request is there; False if the connection was shut down meanwhile."""
        with self._lock:
            connection = self._connections[client]
            connection.waits_since_s = None
            return not connection.ended

    def send_answer(self, client: socket.socket, now_s: float) -> None:
        """Note that the client is waited for again: to take its answer."""
        with self._lock:
            self._connections[client].waits_since_s = now_s

    def leave(self, client: socket.socket) -> None:
        """Forget a connection whose thread ends."""
        with self._lock:
            self._connections.pop(client, None)

    def end_late(self, now_s: float) -> float | None:
        """Shut down the connections past their deadline; return the seconds until the next deadline, if any."""
        with self._lock:
            served = [connection for connection in self._connections.values() if not connection.ended]
            for connection in served:
                if connection.deadline_s <= now_s:
                    _end(connection)
            return min((each.deadline_s - now_s for each in served if not each.ended), default=None)

    def end_all(self) -> None:
        """Shut down every connection."""
        with self._lock:
            for connection in self._connections.values():
                _end(connection)


def _end_longest_wait(connections: list[_Connection]) -> bool:
    """Shut down the connection that has waited longest for its client; False if none waits."""
    waiting = [connection for connection in connections if connection.waits_since_s is not None]
    if not waiting:
        return False
    _end(min(waiting, key=lambda connection: connection.waits_since_s or 0.0))
    return True


def _end(connection: _Connection) -> None:
    """Shut down, not close: the connection's own thread uses the descriptor."""
    connection.ended = True
    with contextlib.suppress(OSError):
        connection.socket.shutdown(socket.SHUT_RDWR)
