"""An acknowledged alarm is silent until it says something else; over restarts, later builds and both ways to say so."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from specmine.daemon.controller.events import Arrived
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.loop import Step
from specmine.daemon.metrics.collector import SnapshotCollector
from specmine.daemon.regression.acknowledgements import acknowledgement_now, matching_alarms, open_alarms, shown_with
from specmine.daemon.regression.history import BuildHistory, entries, with_acknowledgement
from specmine.daemon.regression.watcher import ChangeWatcher
from specmine.daemon.socket.budget_leases import BudgetLeases
from specmine.daemon.socket.handlers import RequestHandlers
from specmine.daemon.socket.peer import Peer
from specmine.mining.regression.acknowledgement import Acknowledgement
from specmine.mining.regression.comparison import Change
from specmine.model.batch import Batch, Lifetime
from specmine.model.errors import InputError
from specmine.model.function import Function
from specmine.model.histogram import EMPTY, Histogram
from specmine.model.observation import Kind
from specmine.store import Contents, Document, LifetimeSummary, Writes, open_store
from specmine.store.codec import encode_histogram
from tests.daemon.metrics.test_collector import status
from tests.daemon.regression.test_watcher import Told, grown, run_lifetimes

ROOT = Peer(connection=1, pid=1, uid=0)


def one(history: BuildHistory, new: str, base: str = "old") -> dict[str, object]:
    """Return the comparison of two builds."""
    return next(each for each in entries(history) if (each["base"], each["new"]) == (base, new))


def known(history: BuildHistory, new: str) -> BuildHistory:
    """Acknowledge what is said of a build."""
    entry = one(history, new)
    return with_acknowledgement(history, ["f\0app\0old\0" + new], acknowledgement_now(entry, 7, "we know"))


@pytest.fixture(scope="module")
def raised() -> BuildHistory:
    """Ten per cent between two builds, raised."""
    return grown(grown(BuildHistory(), "old", 1.0, 20, 1), "new", 1.1, 10, 2)


def test_it_is_silent_while_the_change_is_the_same(raised: BuildHistory) -> None:
    """More lifetimes of the same change wake nobody; the note stays."""
    history = grown(known(raised, "new"), "new", 1.1, 20, 3)
    found = one(history, "new")
    assert (found["alarm"], found["verdict"]) == ("acknowledged", "worse")
    assert isinstance(found["acknowledged"], Mapping) and found["acknowledged"]["note"] == "we know"


def test_a_change_that_grows_is_raised_again(raised: BuildHistory) -> None:
    """The build slows down by another 15 %: that is not what was acknowledged."""
    history = grown(known(raised, "new"), "new", 1.3, 60, 3)
    assert (one(history, "new")["alarm"], one(history, "new")["acknowledged"]) == ("raised", None)


def test_a_later_build_with_the_same_change_is_known_too(raised: BuildHistory) -> None:
    """Against the first build it is what was acknowledged; a build that is slower still is not."""
    history = known(raised, "new")
    same = grown(history, "later", 1.1, 10, 4)
    slower = grown(history, "later", 1.3, 10, 4)
    assert [one(each, "later")["alarm"] for each in (same, slower)] == ["acknowledged", "raised"]


def test_it_is_taken_back(raised: BuildHistory) -> None:
    """Undone it is raised as before."""
    history = with_acknowledgement(known(raised, "new"), ["f\0app\0old\0new"], None)
    assert (one(history, "new")["alarm"], one(history, "new")["acknowledged"]) == ("raised", None)


def test_only_an_alarm_can_be_acknowledged() -> None:
    """Of what is quiet nothing is known, whoever says so."""
    history = grown(grown(BuildHistory(), "old", 1.0, 5, 1), "new", 1.0, 5, 2)
    about = Acknowledgement(direction=Change.WORSE, ratio=1.1, utc_ns=0)
    assert one(with_acknowledgement(history, ["f\0app\0old\0new"], about), "new")["acknowledged"] is None


def test_an_acknowledged_alarm_is_exported_as_such(raised: BuildHistory) -> None:
    """The alarm's series is 0, the other 1."""
    shown = {**status(), "changes": entries(known(raised, "new"))}
    families = {each.name: each for each in SnapshotCollector(lambda: ((), shown), series=2000).collect()}
    values = [families[f"specmine_change_{name}"].samples[0].value for name in ("alarm", "acknowledged")]
    assert values == [0.0, 1.0]


def answers(watcher: ChangeWatcher) -> RequestHandlers:
    """Return what answers the socket."""
    return RequestHandlers(
        state=lambda: None, daemon=lambda: None, leases=BudgetLeases(0.01, lambda ratio: None),  # type: ignore[arg-type, return-value]
        label=lambda build, name: None, builds=frozenset, changes=watcher, utc_ns=lambda: 9,
    )  # fmt: skip


def test_the_socket_acknowledges_and_a_restart_remembers() -> None:
    """Asked over the socket it holds from the next step on; the stored list brings it back."""
    told = Told()
    watcher = ChangeWatcher(told)
    run_lifetimes(watcher, "old", 1.0, 20)
    run_lifetimes(watcher, "slow", 1.2, 8)
    answer = answers(watcher)
    assert [each["alarm"] for each in answer({"command": "acknowledge"}, ROOT)["changes"]] == ["raised"]
    with pytest.raises(InputError, match="only root"):
        answer({"command": "acknowledge", "function": "f"}, Peer(connection=1, pid=1, uid=65_000))
    with pytest.raises(InputError, match="open are: f"):
        answer({"command": "acknowledge", "function": "g"}, ROOT)
    said = answer({"command": "acknowledge", "function": "f (app)", "comment": "known", "build": "sl"}, ROOT)
    assert [each["alarm"] for each in said["changes"]] == ["acknowledged"]
    watcher.listen(Step(number=0, event=Arrived(batch=Batch(now_ns=3)), state=ControllerState(), actions=()))
    assert [each["alarm"] for each in told.changes] == ["acknowledged"]

    again = ChangeWatcher(Told())
    again.restore(remembered(told), summaries())
    (found,) = again.changes
    assert (found["alarm"], found["acknowledged"]["note"], found["acknowledged"]["utc_ns"]) == (
        "acknowledged",
        "known",
        9,
    )
    answers(again)({"command": "acknowledge", "function": "f", "undo": True}, ROOT)
    again.listen(Step(number=0, event=Arrived(batch=Batch(now_ns=3)), state=ControllerState(), actions=()))
    assert [each["alarm"] for each in again.changes] == ["raised"]


def remembered(told: Told) -> Contents:
    """Return what a store would hold of it."""
    lifetimes = tuple(
        Lifetime(id=f"boot:{number}:{build}", pid=1, executable="/bin/app", build_id=build, start_ns=1, processes=0)
        for build, count in (("old", 20), ("slow", 8)) for number in range(count)
    )  # fmt: skip
    functions = tuple(Function(build_id=build, offset=16, name="f", module="app") for build in ("old", "slow"))
    documents = json.loads(json.dumps({"changes": {"changes": list(told.changes)}}))
    return Contents(lifetimes=lifetimes, functions=functions, documents=documents)


def summaries() -> list[LifetimeSummary]:
    """Return lifetimes of two builds, 20 % apart."""
    empty = encode_histogram(EMPTY)
    return [
        LifetimeSummary(
            function=f"{build}+0x10", lifetime=f"boot:{number}:{build}", kind=Kind.TIME, start_utc_ns=0,
            end_utc_ns=number + after, calls=400, watched_ns=1, bias_ns=0.0,
            packed_early=empty,
            packed_later=encode_histogram(Histogram.from_durations([factor * (1e5 + 300 * number)] * 400)),
        )
        for build, count, factor, after in (("old", 20, 1.0, 0), ("slow", 8, 1.2, 100)) for number in range(count)
    ]  # fmt: skip


def test_names_and_builds_choose() -> None:
    """Globs, bare names and beginnings of build-ids; what is acknowledged is chosen only to undo."""
    entry = {
        "function": "f(int)",
        "module": "app",
        "base": "a",
        "new": "bcd",
        "alarm": "raised",
        "direction": "worse",
        "ratio": 1.2,
    }
    silent = shown_with({**entry, "function": "g"}, acknowledgement_now(entry, 1, ""))
    quiet = {**entry, "function": "h", "alarm": "quiet"}
    every = [entry, silent, quiet]
    assert open_alarms(every) == [entry, silent]
    for glob in ("f", "f*", "f(int)", "* (app)"):
        assert matching_alarms(every, glob, "bc", undo=False) == [entry]
    assert matching_alarms(every, "*", "", undo=True) == [silent]
    assert shown_with(silent, None)["alarm"] == "raised"
    for glob, build in (("f", "x"), ("h", ""), ("g", "")):
        with pytest.raises(InputError):
            matching_alarms(every, glob, build, undo=False)


def test_the_command_works_on_a_store(tmp_path: Path, raised: BuildHistory) -> None:
    """Listed, acknowledged, undone; what is not there is an error."""
    from click.testing import CliRunner  # noqa: PLC0415

    from specmine.cli.commands.remarks import acknowledge  # noqa: PLC0415

    path = tmp_path / "s.db"
    with open_store(path) as store:
        document = {"schema": "specmine.changes/1", "changes": entries(raised)}
        store.write(Writes((Document(name="changes", document=document),)), 1)

    def run(*given: str) -> str:
        return CliRunner().invoke(acknowledge, [*given, "--store", str(path)], catch_exceptions=False).output

    assert "f (app), old -> new: worse by" in run() and ", raised" in run()
    assert "acknowledged: a note" in run("f", "--comment", "a note")
    assert "acknowledged: a note" in run()
    assert json.loads(run("f", "--undo", "--format", "json"))["changes"][0]["alarm"] == "raised"
    with pytest.raises(InputError, match="no open violation or alarm"):
        run("nothing")
