"""The daemon's whole life over a simulated program: start, answers, reload, stop, restart."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import urllib.request
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from specmine.daemon.config.tree import Config, Kernel
from specmine.daemon.controller.decide import decide
from specmine.daemon.controller.phase import State
from specmine.daemon.documents.violation_context import violations_of
from specmine.daemon.loop import Step
from specmine.daemon.service import START_NS, Daemon, Seams
from specmine.daemon.socket.client import DaemonConnection, NoDaemon
from specmine.model.batch import Batch, Refusal, Request, Watch
from specmine.model.errors import InputError
from specmine.model.function import Reason
from specmine.model.observation import Kind
from specmine.store import Build, Verdict, open_store
from specmine.store.lock import FileLock, LockTaken
from tests.support.changing import lived, slower
from tests.support.growing import grown, held
from tests.support.lives import SECOND, Life
from tests.support.paths import ROOT
from tests.support.patience import patient
from tests.support.planted import unimodal
from tests.support.redeployments import BUILD_NS, RedeployedLife, RedeployedSource


def test_a_life_from_start_to_stop(tmp_path: Path) -> None:
    """A daemon answers and is scraped while it runs, and leaves nothing but its store."""
    life = Life(tmp_path)
    seen: dict[str, Any] = {}

    def look() -> None:
        seen["status"] = life.ask(command="status")
        seen["document"] = life.ask(command="specification", detail=True)
        seen["show"] = life.ask(command="show", function="z")
        with urllib.request.urlopen(f"http://{seen['status']['metrics']}/metrics", timeout=patient(60)) as page:
            seen["metrics"] = page.read().decode()

    life.at(40, look)
    state = life.run(45)
    assert life.source is not None and life.source.closed
    assert state.stopped == "signal"
    assert state.answered_ns > 0
    assert seen["status"]["schema"] == "specmine.status/1"
    assert seen["status"]["programs"] == ["shop"]
    assert seen["status"]["lifetimes"][0]["executable"] == "/opt/app"
    assert 0 < seen["status"]["budget"]["overhead"]["spent_ratio"] <= 0.0105
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
    (z,) = [each for each in first.functions.values() if each.function.name == "z"]
    assert z.state is State.EXPLAINED
    second = Life(tmp_path)
    found: list[dict[str, Any]] = []
    second.at(1, lambda: found.append(second.ask(command="specification")))
    again = second.run(2).functions[z.function.key]
    assert again.state is State.EXPLAINED
    assert again.probe.counts.calls >= z.probe.counts.calls
    assert [each["state"] for each in found[0]["functions"] if each["function"] == "z"] == ["explained"]
    with open_store(second.config.store.path, read_only=True) as store:
        document = store.document("specification")
        assert store.read(Verdict, function=z.function.key) or not z.verification.checks
    assert document is not None and document["schema"] == "specmine.specification/1"


def test_deployments_and_short_lives_leave_nothing_behind(tmp_path: Path) -> None:
    """Two hundred builds and two thousand lives: the second half leaves no more in memory than the first did."""
    life, seen = RedeployedLife(tmp_path), []
    whole = 200 * BUILD_NS // SECOND
    for second in range(20, whole, 20):
        life.at(second, life.look)
    for second in (whole // 2, whole):
        life.at(second, lambda: seen.append(held()))
    life.run(whole + 1)
    assert (life.source.builds, life.source.lives) == (200, 2001) and life.scrapes == whole // 20 - 1
    grows = grown(seen[0], seen[1], most=50)
    # what waits for the store's thread, which has no time in a simulation; and a name a comparison, for a month
    written = ("Writes.", "StoreWriter.", "FunctionRecord.", "Document.", "Verdict.", "EnvironmentVector.")
    passing = (*written, "BuildHistory.tested")
    assert {name: much for name, much in grows.items() if not name.startswith(passing)} == {}


class RefusingSource(RedeployedSource):
    """A kernel side that refuses one function of each build."""

    def __init__(self, life: Life) -> None:
        """Have refused nothing yet."""
        super().__init__(life)
        self.waiting: list[str] = []
        self.refused: set[str] = set()

    def apply(self, request: Request) -> None:
        """Refuse the function at the next poll."""
        if isinstance(request, Watch) and request.function == self.keys["work"]:
            self.waiting.append(request.function)
        else:
            super().apply(request)

    def poll(self, now_ns: int) -> Batch:
        """Report what was refused since the last one."""
        reason = Reason(code="noreturn", text="it never returns")
        refusals = tuple(Refusal(function=each, kind=Kind.COUNT, reason=reason) for each in self.waiting)
        self.refused.update(self.waiting)
        self.waiting.clear()
        return replace(super().poll(now_ns), refusals=refusals)


def test_a_refusal_is_logged_once_over_many_builds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Each new build has the function that was refused in the last one; each is refused, and one line says it."""
    monkeypatch.setattr("tests.support.redeployments.RedeployedSource", RefusingSource)
    life = RedeployedLife(tmp_path)
    with caplog.at_level("INFO", "specmine.daemon"):
        life.run(6 * BUILD_NS // SECOND)
    assert isinstance(life.source, RefusingSource)
    assert len(life.source.refused) >= 5
    lines = [vars(each)["facts"] for each in caplog.records if each.getMessage() == "refused"]
    assert [(each["function"], each["code"]) for each in lines] == [("work (app)", "noreturn")]


KILLED = """
import os, signal, sys, time
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from tests.support.lives import Life
from specmine.store import open_store
life = Life(Path(sys.argv[1]))
def kill():
    while True:
        with open_store(life.config.store.path, read_only=True) as store:
            if "explained" in [each["state"] for each in store.load().states.values()]:
                os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.05)
life.at(45, kill)
life.daemon.run()
"""


def test_a_killed_daemon_goes_on_too(tmp_path: Path) -> None:
    """After SIGKILL, without a last flush, the store still holds what was known some seconds before."""
    command = [sys.executable, "-c", KILLED, str(tmp_path), str(ROOT)]
    done = subprocess.run(command, timeout=patient(120), check=False)
    assert done.returncode == -signal.SIGKILL
    again = Life(tmp_path).run(1)
    assert {each.function.name for each in again.functions.values() if each.state is State.EXPLAINED} == {"z"}


def test_a_lock_holds_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its holder cannot be noted there, which is no reason to fail."""

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)
    lock = FileLock(tmp_path / "lock", what="it", remedy="")
    with pytest.raises(LockTaken, match=r"it is in use \(lock"):
        FileLock(tmp_path / "lock", what="it", remedy="")
    lock.release()


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
        budgets.append(life.daemon._state.settings.overhead)

    def give_back() -> None:
        for each in held:
            each.close()
        while life.daemon._leases.granted:
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
    with open_store(life.config.store.path, read_only=True) as store:
        assert [(each.build_id, each.label) for each in store.read(Build)] == [("b1d", "v1")]


def test_what_is_acknowledged_is_shown_at_once() -> None:
    """Who asks right after the answer sees it closed, before the loop has had a turn, and after it."""
    state = lived((unimodal(),), 250.0, [(150.0, "smooth", slower(2.0))]).state
    ids = tuple(one.id for one in violations_of(state))
    daemon = Daemon(Config(), None)
    daemon._state = state

    def shown() -> list[str]:
        found = daemon._answered_from()
        assert found is not None
        return [one.state.value for one in violations_of(found)]

    assert shown() == ["open"]
    daemon._acknowledge(ids, "ann", "wanted")
    assert shown() == ["acknowledged"]
    (message,) = daemon._messages
    event = message(cast(Any, None), state.now_ns)
    assert event is not None
    after, actions = decide(state, event)
    daemon._listen(Step(number=1, event=event, state=after, actions=actions))
    assert daemon._answered_from() is after and shown() == ["acknowledged"]


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


def test_the_priority_is_lowered_once_the_start_is_over(tmp_path: Path) -> None:
    """Beside busy CPUs the first probes would come late otherwise, also after a restart."""
    life = Life(tmp_path)
    begun = life.clock.now
    life.run(seconds=30)
    assert len(life.lowered) == 1
    assert START_NS <= life.lowered[0] - begun < 2 * START_NS


def test_a_thread_that_fails_ends_the_daemon(tmp_path: Path) -> None:
    """Without its store or socket it would look well and be useless: it ends, and the service is started anew."""
    life = Life(tmp_path)
    life.at(1, lambda: life.daemon.fail("a thread failed (store)"))
    assert life.daemon.run().stopped == "failed"
    assert life.daemon.failed


def test_a_configuration_may_forbid_to_follow_waits() -> None:
    """Who asks is told so at once."""
    with pytest.raises(InputError, match="forbids"):
        Daemon(Config(kernel=Kernel(wait_kind=False)), None)._follow(("key",))
    Daemon(Config(), None)._follow(("key",))
