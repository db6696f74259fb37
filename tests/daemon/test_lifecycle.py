"""The daemon's whole life over a simulated program: start, answers, reload, stop, restart."""

from __future__ import annotations

import errno
import logging
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from simulated import FakeClock, SimulatedSource, paper_program, unimodal

from specmine.daemon.client import DaemonConnection, NoDaemon, ask
from specmine.daemon.config import Config
from specmine.daemon.configfile import parse_config
from specmine.daemon.controllerstate import ControllerState
from specmine.daemon.lifecycle import Daemon, Seams
from specmine.daemon.lock import FileLock, LockTaken
from specmine.daemon.notify import Notifier
from specmine.daemon.states import State
from specmine.daemon.store import Store
from specmine.daemon.worker import InlineWorker
from specmine.probes.batch import Source
from specmine.probes.errors import InputError, ProbeError

SECOND = 10**9


class EventClock(FakeClock):
    """A clock that calls functions at planned times, in the thread of the loop."""

    def __init__(self) -> None:
        super().__init__()
        self.plans: list[tuple[int, Callable[[], object]]] = []

    def sleep_until_ns(self, deadline_ns: int, wake: int = -1) -> None:
        """Pass the time and do what is due."""
        super().sleep_until_ns(deadline_ns)
        while self.plans and self.plans[0][0] <= self.now:
            self.plans.pop(0)[1]()


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


@pytest.fixture(autouse=True)
def ordinary_priority(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests' own process does not step back."""
    monkeypatch.setattr("specmine.daemon.lifecycle.step_back", lambda: None)


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    """Run a service manager."""
    one = Manager(tmp_path / "notify")
    yield one
    one.close()


def config_text(folder: Path, more: str = "") -> str:
    """Return a configuration whose files lie in a folder."""
    return f"""
programs: [{{name: shop, exe: /opt/app}}]
store: {{path: {folder}/store/s.db}}
socket: {{path: {folder}/run/s.sock}}
host_lock: {folder}/run/host.lock
metrics: {{listen: "127.0.0.1:0"}}
{more}
"""


class Life:
    """A daemon over a simulated program."""

    def __init__(self, folder: Path, *, config: str = "", notifier: Notifier | None = None, **simulated: Any) -> None:
        self.path = folder / "c.yaml"
        self.path.write_text(config or config_text(folder))
        self.config = parse_config(self.path.read_text())
        self.socket = Path(self.config.socket.path)
        self.clock = EventClock()
        self.simulated = simulated
        self.source: SimulatedSource | None = None
        seams = Seams(
            source=self._source,
            clock=self.clock,
            worker=InlineWorker,
            notifier=notifier or Notifier({}),
        )
        self.daemon = Daemon(self.config, self.path, seams)

    def _source(self, config: Config) -> Source:
        self.source = SimulatedSource([*paper_program(), unimodal()], self.clock, **self.simulated)
        return self.source

    def at(self, seconds: int, act: Callable[[], object]) -> None:
        """Plan something."""
        self.clock.plans.append((self.clock.now + seconds * SECOND, act))
        self.clock.plans.sort(key=lambda each: each[0])

    def rewrite(self, text: str) -> None:
        """Change the configuration file."""
        self.path.write_text(text)

    def ask(self, **request: Any) -> dict[str, Any]:
        """Ask the daemon over its socket."""
        return ask(self.socket, request)

    def run(self, seconds: int) -> ControllerState:
        """Live for a simulated time."""
        self.at(seconds, lambda: self.daemon.stop("signal"))
        return self.daemon.run()


def test_a_life_from_start_to_stop(tmp_path: Path) -> None:
    """A daemon answers and is scraped while it runs, and leaves nothing but its store."""
    life = Life(tmp_path)
    seen: dict[str, Any] = {}

    def look() -> None:
        seen["status"] = life.ask(command="status")
        seen["document"] = life.ask(command="specification", detail=True)
        seen["show"] = life.ask(command="show", function="z")
        with urllib.request.urlopen(f"http://{seen['status']['metrics']}/metrics", timeout=5) as page:
            seen["metrics"] = page.read().decode()

    life.at(40, look)
    state = life.run(45)
    assert life.source is not None and life.source.closed
    assert state.stopped == "signal"
    assert seen["status"]["schema"] == "specmine.status/1"
    assert seen["status"]["programs"] == ["shop"]
    assert seen["status"]["lifetimes"][0]["executable"] == "/opt/app"
    assert 0 < seen["status"]["budget"]["inside"]["spent_ratio"] <= 0.0105
    z = next(each for each in seen["document"]["functions"] if each["function"] == "z")
    assert z["state"] == "explained"
    assert [each["function"] for each in seen["show"]["functions"]] == ["z"]
    assert 'specmine_behaviour_info{behaviour="' in seen["metrics"]
    assert 'expression="b->c"' in seen["metrics"]
    assert not life.socket.exists()
    with pytest.raises(NoDaemon):
        life.ask(command="status")


def test_a_restarted_daemon_goes_on_from_its_store(tmp_path: Path) -> None:
    """What was known before the restart is known right after it, without being mined again."""
    first = Life(tmp_path).run(45)
    (z,) = [each for each in first.known.values() if each.function.name == "z"]
    assert z.state is State.EXPLAINED
    second = Life(tmp_path)
    found: list[dict[str, Any]] = []
    second.at(1, lambda: found.append(second.ask(command="specification")))
    again = second.run(2).known[z.function.key]
    assert again.state is State.EXPLAINED
    assert again.totals.calls >= z.totals.calls
    assert [each["state"] for each in found[0]["functions"] if each["function"] == "z"] == ["explained"]
    with Store.open(second.config.store.path, read_only=True) as store:
        document = store.document("specification")
        assert store.verdicts(z.function.key) or not z.checks
    assert document is not None and document["schema"] == "specmine.specification/1"


KILLED = """
import os, signal, sys, time
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from test_lifecycle import Life
from specmine.daemon.server import Peer
from specmine.daemon.shares import Shares
from specmine.daemon.status import Surroundings
from specmine.daemon.store import Store
life = Life(Path(sys.argv[1]))
def kill():
    while True:
        with Store.open(life.config.store.path, read_only=True) as store:
            if "explained" in [each["state"] for each in store.load().states.values()]:
                os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.05)
life.at(45, kill)
life.daemon.run()
"""


def test_a_killed_daemon_goes_on_too(tmp_path: Path) -> None:
    """After SIGKILL, without a last flush, the store still holds what was known some seconds before."""
    command = [sys.executable, "-c", KILLED, str(tmp_path), str(Path(__file__).parent)]
    done = subprocess.run(command, timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL
    again = Life(tmp_path).run(1)
    assert {each.function.name for each in again.known.values() if each.state is State.EXPLAINED} == {"z"}


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
    Store.open(life.config.store.path).close()


def test_a_reload_changes_what_it_can(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A new budget holds from the reload on; keys that need a restart are named and left."""
    logging.getLogger("specmine").propagate = True
    life = Life(tmp_path)
    seen: list[float] = []
    new = config_text(tmp_path, "budget: {inside: 0.5%}\nfunctions: {ignore: [smooth]}").replace("run/s.sock", "x.sock")
    life.at(29, lambda: life.rewrite(new))
    life.at(30, life.daemon.reload)
    life.at(33, lambda: seen.append(life.ask(command="status")["budget"]["inside"]["promised_ratio"]))
    with caplog.at_level(logging.INFO, "specmine"):
        state = life.run(35)
    assert seen == [0.005]
    assert state.settings.budget == 0.005
    assert {each.state for each in state.known.values() if each.function.name == "smooth"} == {State.EXCLUDED}
    assert any(
        "only at a restart" in record.message and "socket.path" in str(record.__dict__) for record in caplog.records
    )


def test_a_reload_leaves_the_kill_switch_where_it_is(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Whoever holds the probes looks for the file named at the start: `off` makes that one, whatever was read since.

    And a file that names the old value again changes nothing.
    """
    logging.getLogger("specmine").propagate = True
    old = config_text(tmp_path, f"kill_switch: {tmp_path}/off")
    life = Life(tmp_path, config=old)
    life.at(2, lambda: life.rewrite(old.replace("/off", "/elsewhere")))
    life.at(3, life.daemon.reload)
    life.at(5, lambda: life.rewrite(old))
    life.at(6, life.daemon.reload)
    life.at(8, lambda: life.daemon.switch(off=True))
    with caplog.at_level(logging.INFO, "specmine"):
        life.run(10)
    assert (tmp_path / "off").exists() and not (tmp_path / "elsewhere").exists()
    warned = [vars(record)["facts"]["keys"] for record in caplog.records if "only at a restart" in record.message]
    changed = [vars(record)["facts"]["changed"] for record in caplog.records if "read again" in record.message]
    assert (warned, changed) == (["kill_switch"], ["nothing", "nothing"])


def test_a_lock_holds_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its holder cannot be noted there, which is no reason to fail."""

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)
    lock = FileLock(tmp_path / "lock", what="it", remedy="")
    with pytest.raises(LockTaken, match=r"it is in use \(lock"):
        FileLock(tmp_path / "lock", what="it", remedy="")
    lock.release()


@pytest.mark.parametrize("bad", ["budget: {insde: 1%}", "programs: [", "budget: {inside: 900%}"])
def test_a_bad_new_configuration_is_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture, bad: str) -> None:
    """The old configuration stays, and the log says what is wrong."""
    logging.getLogger("specmine").propagate = True
    life = Life(tmp_path)
    life.at(2, lambda: life.rewrite(bad))
    life.at(3, life.daemon.reload)
    with caplog.at_level(logging.ERROR, "specmine"):
        state = life.run(5)
    assert state.settings.budget == 0.01
    assert [record.message for record in caplog.records] == ["the new configuration is refused, the old one stays"]


def test_a_share_of_the_budget_is_lent_and_comes_back(tmp_path: Path) -> None:
    """While a share is lent the daemon plans with the rest; when the connection ends it has all again."""
    life = Life(tmp_path)
    budgets: list[float] = []
    held: list[DaemonConnection] = []

    def borrow() -> None:
        held.extend(DaemonConnection(life.socket) for _ in range(2))
        granted = [
            each.ask({"command": "share", "ratio": ratio}) for each, ratio in zip(held, (0.004, 0.5), strict=True)
        ]
        assert [each["granted_ratio"] for each in granted] == pytest.approx([0.004, 0.001])
        with pytest.raises(InputError, match="lent all it can"):
            life.ask(command="share", ratio=0.5)

    def note() -> None:
        assert life.daemon._state is not None
        budgets.append(life.daemon._state.settings.budget)

    def give_back() -> None:
        for each in held:
            each.close()
        while life.daemon._shares.lent:
            life.ask(command="status")

    life.at(5, borrow)
    life.at(8, note)
    life.at(9, give_back)
    life.at(12, note)
    life.run(13)
    assert budgets == pytest.approx([0.005, 0.01])


def test_a_build_is_labelled_by_the_beginning_of_its_id(tmp_path: Path) -> None:
    """The label is in the store afterwards; an unknown build is an error that lists the known."""
    life = Life(tmp_path)

    def label() -> None:
        assert life.ask(command="label", build="b1", name="v1") == {"build_id": "b1d", "label": "v1"}
        with pytest.raises(InputError, match="known: b1d"):
            life.ask(command="label", build="zz", name="v1")

    life.at(5, label)
    life.run(6)
    with Store.open(life.config.store.path, read_only=True) as store:
        assert [(each.build_id, each.label) for each in store.builds()] == [("b1d", "v1")]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_the_daemon(tmp_path: Path, number: signal.Signals) -> None:
    """SIGTERM and SIGINT end the loop at its next turn, and the handlers from before are back."""
    life = Life(tmp_path)
    before = signal.getsignal(number)
    life.at(3, lambda: os.kill(os.getpid(), number))
    state = life.daemon.run()
    assert state.stopped == "signal"
    assert state.now_ns - state.began_ns < 4 * SECOND
    assert signal.getsignal(number) is before


def test_sighup_reads_the_configuration_again(tmp_path: Path) -> None:
    """SIGHUP is a reload."""
    life = Life(tmp_path)
    life.at(2, lambda: life.rewrite(config_text(tmp_path, "verify_every: 30s")))
    life.at(3, lambda: os.kill(os.getpid(), signal.SIGHUP))
    assert life.run(5).settings.verify_every_ns == 30 * SECOND


def test_only_one_daemon_watches_a_host(tmp_path: Path) -> None:
    """A second one on the same lock, or on the same store, is refused in one line."""
    life = Life(tmp_path)
    errors: list[str] = []

    def second() -> None:
        other = Life(tmp_path)
        for config in (other.config, replace(other.config, host_lock=str(tmp_path / "other.lock"))):
            with pytest.raises(LockTaken) as caught:
                Daemon(config, None, Seams(source=other._source)).run()
            errors.append(str(caught.value))

    life.at(3, second)
    life.run(4)
    assert "this host is in use by process" in errors[0]
    assert "the store" in errors[1] and "is in use by process" in errors[1]


def test_without_programs_there_is_nothing_to_do(tmp_path: Path) -> None:
    """An empty choice is a mistake of the configuration."""
    with pytest.raises(InputError, match="no programs"):
        Daemon(Config(), None).run()
