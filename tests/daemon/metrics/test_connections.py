"""Who is served: a new connection takes the place of the one that waits longest for its client."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator

import pytest

from specmine.daemon.metrics.connections import Connections

Connect = Callable[[], tuple[socket.socket, socket.socket]]


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Make connections: the server's end and the client's."""
    made: list[socket.socket] = []

    def new() -> tuple[socket.socket, socket.socket]:
        pair = socket.socketpair()
        pair[1].setblocking(False)
        made.extend(pair)
        return pair

    yield new
    for end in made:
        end.close()


def is_ended(client: socket.socket) -> bool:
    """Return whether the server has ended a connection."""
    try:
        return client.recv(1) == b""
    except BlockingIOError:
        return False


def test_the_longest_wait_gives_way(connect: Connect) -> None:
    """Of those that wait for their client; those whose answer is being made stay."""
    connections = Connections(most=3, most_per_address=3, limit_s=10)
    ends = [connect() for _ in range(5)]
    for now_s, (own, _) in enumerate(ends[:3]):
        assert connections.admit(own, f"host{now_s}", now_s)
    assert connections.begin_answer(ends[0][0])
    assert connections.admit(ends[3][0], "host3", 3)
    assert [is_ended(client) for _, client in ends[:4]] == [False, True, False, False]
    assert not connections.begin_answer(ends[1][0])
    connections.send_answer(ends[0][0], 4)
    for own, _ in ends[2:4]:
        assert connections.begin_answer(own)
    assert connections.admit(ends[4][0], "host4", 5)
    assert is_ended(ends[0][1])


def test_without_a_wait_nobody_gives_way(connect: Connect) -> None:
    """While every answer is being made a new client is refused."""
    connections = Connections(most=1, most_per_address=1, limit_s=10)
    (own, client), (other, _) = connect(), connect()
    assert connections.admit(own, "a", 0)
    assert connections.begin_answer(own)
    assert not connections.admit(other, "b", 1)
    assert not is_ended(client)
    connections.leave(own)
    assert connections.admit(other, "b", 1)


def test_an_address_has_few_places(connect: Connect) -> None:
    """Beyond its own, an address takes the places of nobody else."""
    connections = Connections(most=4, most_per_address=2, limit_s=10)
    ends = [connect() for _ in range(4)]
    for now_s, ((own, _), address) in enumerate(zip(ends, "abbb", strict=True)):
        assert connections.admit(own, address, now_s)
    assert [is_ended(client) for _, client in ends] == [False, True, False, False]


def test_threads_are_bounded(connect: Connect) -> None:
    """What was shut down counts until its thread has ended."""
    connections = Connections(most=2, most_per_address=2, limit_s=10)
    ends = [connect() for _ in range(6)]
    assert [connections.admit(own, "a", 0) for own, _ in ends] == [True] * 4 + [False] * 2
    connections.leave(ends[0][0])
    assert connections.admit(ends[4][0], "a", 0)


def test_a_connection_ends_at_its_deadline(connect: Connect) -> None:
    """Also while its answer is made."""
    connections = Connections(most=2, most_per_address=2, limit_s=10)
    (own, client), (other, other_client) = connect(), connect()
    assert connections.end_late(0) is None
    connections.admit(own, "a", 0)
    connections.begin_answer(own)
    connections.admit(other, "a", 4)
    assert connections.end_late(9) == 1
    assert connections.end_late(10) == 4
    assert (is_ended(client), is_ended(other_client)) == (True, False)
    connections.end_all()
    assert is_ended(other_client)
