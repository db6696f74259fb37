"""What waits arrives once, whatever answers get lost."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from specmine.fleet.database.pushing import Reply
from specmine.fleet.forwarding.contact import send
from specmine.store.outbox import Outbox


class _Fleet:
    """A database that loses answers."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.streams: dict[str, list[bytes]] = {}

    def push(self, stream: str, number: int, payload: bytes, _: str, __: int) -> Reply:
        held = self.streams.setdefault(stream, [])
        if self.rng.random() < 0.2:
            raise ConnectionError("lost before")
        if number == len(held) + 1:
            held.append(payload)
            reply = Reply(accepted=number, conflict=False)
        else:
            same = 0 < number == len(held) and held[-1] == payload
            reply = Reply(accepted=len(held), conflict=number <= len(held) and not same)
        if self.rng.random() < 0.3:
            raise ConnectionError("lost after")
        return reply


def _send_all(outbox: Outbox, fleet: _Fleet) -> None:
    while outbox.waiting[0]:
        try:
            send(outbox, fleet, "boot", lambda: 0)
        except ConnectionError:
            continue


@pytest.mark.parametrize("seed", range(5))
def test_lost_answers_lose_and_repeat_nothing(tmp_path: Path, seed: int) -> None:
    """In one stream, in order, each once."""
    fleet = _Fleet(seed)
    payloads = [b"%d" % number for number in range(40)]
    for at in range(0, 40, 8):
        with Outbox(tmp_path / "o.db") as outbox:  # a new process each time
            outbox.put(payloads[at : at + 8], source={})
            _send_all(outbox, fleet)
    assert list(fleet.streams.values()) == [payloads]


def test_a_database_restored_from_a_backup_gets_a_new_stream(tmp_path: Path) -> None:
    """What was sent since the backup is gone; what follows arrives, and nobody waits."""
    fleet = _Fleet(1)
    with Outbox(tmp_path / "o.db") as outbox:
        outbox.put([b"a", b"b", b"c"], source={})
        _send_all(outbox, fleet)
        first = outbox.stream
        del fleet.streams[first][1:]
        outbox.put([b"d"], source={})
        _send_all(outbox, fleet)
        assert outbox.stream != first
        assert fleet.streams[outbox.stream] == [b"d"]


def test_a_cloned_host_begins_a_stream_of_its_own(tmp_path: Path) -> None:
    """Both hosts' data arrive."""
    fleet = _Fleet(2)
    with Outbox(tmp_path / "o.db") as outbox:
        outbox.put([b"a"], source={})
        _send_all(outbox, fleet)
    (tmp_path / "clone.db").write_bytes((tmp_path / "o.db").read_bytes())
    for name, payload in (("o.db", b"mine"), ("clone.db", b"other"), ("o.db", b"mine too"), ("clone.db", b"other too")):
        with Outbox(tmp_path / name) as outbox:
            outbox.put([payload], source={})
            _send_all(outbox, fleet)
    arrived = sorted(each for held in fleet.streams.values() for each in held)
    assert arrived == sorted([b"a", b"mine", b"other", b"mine too", b"other too"])
