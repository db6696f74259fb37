"""What a service manager is told of a daemon's life."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from specmine.daemon.system.systemd import Notifier
from specmine.model.errors import ProbeError
from specmine.store import open_store
from specmine.store.lock import FileLock
from tests.support.lives import Life


class Manager:
    """A service manager that listens."""

    def __init__(self, path: Path, watchdog_us: int = 2_000_000) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(path))
        self._socket.settimeout(0)
        self.environment = {"NOTIFY_SOCKET": str(path), "WATCHDOG_USEC": str(watchdog_us)}

    def told(self) -> list[str]:
        """Return the messages since the last call."""
        found = []
        while True:
            try:
                found.append(self._socket.recv(4096).decode())
            except BlockingIOError:
                return found

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    """Run a service manager."""
    one = Manager(tmp_path / "notify")
    yield one
    one.close()


def test_the_service_manager_is_told(tmp_path: Path, manager: Manager) -> None:
    """READY comes once the probes are loaded, the watchdog twice an interval, STOPPING at the end."""
    life = Life(tmp_path, notifier=Notifier(manager.environment))
    told: list[list[str]] = []
    for second in (1, 11):
        life.at(second, lambda: told.append(manager.told()))
    life.run(12)
    assert any("READY=1" in message for message in told[0])
    assert 9 <= told[1].count("WATCHDOG=1") <= 11
    assert any("STOPPING=1" in message for message in manager.told())


def test_what_is_ready_answers(tmp_path: Path) -> None:
    """READY comes when there is a state to ask for: what a unit starts after this one may ask at once."""
    answers: list[dict[str, Any]] = []

    class Asking(Notifier):
        def send(self, **fields: object) -> None:
            if "READY" in fields:
                answers.append(life.ask(command="status"))

    life = Life(tmp_path, notifier=Asking({}))
    life.run(2)
    assert [each["programs"] for each in answers] == [["shop"]]


def test_a_hanging_loop_is_not_hidden(tmp_path: Path, manager: Manager) -> None:
    """The watchdog is fed by the loop alone: while it stands still nothing is sent."""
    life = Life(tmp_path, notifier=Notifier(manager.environment))
    life.at(5, manager.told)
    state: list[list[str]] = []
    life.at(5, lambda: state.append(manager.told()))
    life.run(6)
    assert state == [[]]


def test_a_source_that_cannot_start_ends_the_daemon(tmp_path: Path, manager: Manager) -> None:
    """READY is never said, and everything is taken down again."""
    life = Life(tmp_path, notifier=Notifier(manager.environment), fail_at=1)
    with pytest.raises(ProbeError):
        life.run(5)
    assert not any("READY" in message for message in manager.told())
    FileLock(life.config.host_lock, what="", remedy="").release()
    open_store(life.config.store.path).close()
