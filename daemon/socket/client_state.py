"""What the daemon's socket has read from one client, and has still to send to it."""

from __future__ import annotations

import selectors
import socket
from dataclasses import dataclass, field

from .peer import Peer


@dataclass(slots=True, eq=False)
class ClientState:
    """One connection."""

    peer: Peer
    socket: socket.socket
    deadline: float
    served: float = 0.0
    """When it was served last."""
    received: bytearray = field(default_factory=bytearray)
    to_send: memoryview = field(default_factory=lambda: memoryview(b""))
    closing: bool = False
    parked: bool = False
    """Its user has taken too much CPU time; nothing is read from it or sent to it for now."""

    @property
    def is_busy(self) -> bool:
        """True if there is something to do without new data: an answer to send, or a whole request."""
        return bool(self.to_send) or b"\n" in self.received

    @property
    def events(self) -> int:
        """What to wait for."""
        return selectors.EVENT_WRITE if self.is_busy else selectors.EVENT_READ
