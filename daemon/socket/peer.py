"""Who is at the other end of a connection to the daemon's socket."""

from __future__ import annotations

import os
import socket
import struct
from dataclasses import dataclass

_CREDENTIALS = struct.Struct("3i")


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


def peer_of(connection: socket.socket, number: int) -> Peer:
    """Return the peer of a connection that gets this number."""
    pid, uid, _ = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return Peer(connection=number, pid=pid, uid=uid)
