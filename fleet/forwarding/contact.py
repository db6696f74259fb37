"""One contact with the fleet: what waits is sent in order, and forgotten once it is acknowledged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from specmine.fleet.database.pushing import Reply
from specmine.store.outbox import Outbox

MOST_PUSHES = 64
MOST_NS = 60 * 10**9


class Receiver(Protocol):
    """Takes pushes."""

    def push(self, stream: str, number: int, payload: bytes, boot_id: str, now_ns: int) -> Reply:
        """Take one; see ``HostConnection.push``."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Contact:
    """What came of it."""

    sent: int
    """Pushes that the fleet acknowledged."""
    waiting: int
    streams_begun: int
    """More than none: another host has this stream, or the database was restored from an older backup."""
    duties: int | None = None
    """Functions that the fleet asks this host to observe; None: it asks for nothing."""
    learning: bool = False
    """Whether this host learns for the fleet, or told it of new functions: what follows is worth to be had soon."""


def send(outbox: Outbox, receiver: Receiver, boot_id: str, now_ns: Callable[[], int]) -> Contact:
    """Send what waits, for at most a minute. Raises FleetError if the fleet goes away meanwhile.

    Each push carries the present time of the host's monotonic clock. So the centre knows the ages of the rows, however
    wrong the host's wall clock is.
    """
    began, sent, begun = now_ns(), 0, 0
    while sent < MOST_PUSHES and now_ns() - began < MOST_NS:
        waiting = outbox.first()
        if waiting is None:
            break
        reply = receiver.push(outbox.stream, waiting.number, waiting.payload, boot_id, now_ns())
        if reply.accepted == waiting.number and not reply.conflict:
            outbox.acknowledge(waiting.number)
            sent += 1
        elif begun == 0:
            outbox.begin_stream()
            begun += 1
        else:
            break
    return Contact(sent=sent, waiting=outbox.waiting[0], streams_begun=begun)
