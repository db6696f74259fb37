"""What a service manager is told of a daemon's life."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from specmine.daemon.system import systemd
from specmine.daemon.system.systemd import Notifier, metrics_socket, passed_socket
from specmine.model.errors import InputError, ProbeError
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


def passing(names: str, pid: int | None = None) -> dict[str, str]:
    """Return what a manager writes into the environment of a daemon that it passes sockets."""
    count = str(len(names.split(":")))
    return {"LISTEN_PID": str(pid or os.getpid()), "LISTEN_FDS": count, "LISTEN_FDNAMES": names}


def test_a_passed_socket_is_found_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second of two; children are neither told of it nor get it."""
    with socket.create_server(("127.0.0.1", 0)) as made:
        port, number = made.getsockname()[1], made.detach()
        os.set_inheritable(number, True)
        monkeypatch.setattr(systemd, "_FIRST_PASSED", number - 1)
        environment = passing("other:metrics")
        passed = metrics_socket(environment)
        assert passed is not None and passed.getsockname()[1] == port
        with passed:
            assert environment == {}
            assert not os.get_inheritable(number)


def test_sockets_for_another_process_are_left_alone() -> None:
    """What a parent was passed, or nothing, or another name, is no socket of ours."""
    assert passed_socket("metrics", passing("metrics", pid=1)) is None
    assert passed_socket("metrics", {}) is None
    assert passed_socket("metrics", passing("other")) is None


def test_a_unit_without_network_that_is_passed_no_socket_is_told_so() -> None:
    """It would listen where nobody can reach it."""
    with pytest.raises(InputError, match=r"specmined\.socket") as caught:
        metrics_socket({"SPECMINE_METRICS_SOCKET": "passed"})
    assert caught.value.exit_code == 2
    assert metrics_socket({}) is None
