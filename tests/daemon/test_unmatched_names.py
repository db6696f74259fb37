"""A name in functions.watch that names no function is reported, once it is sure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from specmine.daemon import unmatched_names
from specmine.daemon.config.settings import Settings
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.unmatched_names import AFTER_NS, EVERY_NS, UnmatchedName, UnmatchedNames
from specmine.model.batch import Lifetime, Started
from specmine.model.function import Function
from tests.support.lives import Life, config_text
from tests.support.patience import patient

LIFETIME = Lifetime(id="boot:7:1", pid=7, executable="/bin/app", build_id="ab", start_ns=1, processes=1)
SMOOTH = Function(build_id="ab", offset=16, name="smooth", module="app")


def state(now_ns: int, *watch: str, **more: Any) -> ControllerState:
    """Return a state of a program that was found at 0 and has one function."""
    started = cast(Started, SimpleNamespace(now_ns=0, host={}))
    known: dict[str, Any] = {"catalog": {SMOOTH.key: SMOOTH}, "lifetimes": {"l": LIFETIME}}
    return replace(ControllerState(), started=started, now_ns=now_ns, settings=Settings(watch=watch), **(known | more))


class Files:
    """What searches find in the programs' files."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
        """Have functions of these names."""
        self.names, self.asked = names, list[list[int]]()
        self.readable = True
        monkeypatch.setattr(unmatched_names, "missing_in", self._missing)

    def _missing(self, pids: Sequence[int], names: Sequence[str]) -> tuple[list[str], list[str]]:
        self.asked.append(list(pids))
        if not self.readable:
            raise PermissionError
        return [each for each in names if each not in self.names], list(self.names)


def settled(names: UnmatchedNames, at: ControllerState) -> None:
    """Let a search end, and take up what it found."""
    names.turn(at)
    if names._search is not None:
        names._search.join(patient(20))
    names.turn(at)


def test_a_misspelt_name_is_reported_once_with_what_is_alike(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """In the log once, and as long as it names nothing for the status."""
    files, names = Files(monkeypatch, "smooth", "main"), UnmatchedNames()
    names.turn(state(AFTER_NS - 1, "smooth", "smoth"))
    assert not files.asked, "it may be found yet"
    for _ in range(3):
        settled(names, state(AFTER_NS, "smooth", "smoth"))
    assert names.found == (UnmatchedName(name="smoth", programs=("app",), alike=("smooth",)),)
    assert files.asked == [[7]]
    (line,) = caplog.records
    assert vars(line)["facts"] == {"name": "smoth", "programs": "app", "alike": "smooth"}
    settled(names, state(AFTER_NS + 1, "smooth"))
    assert not names.found, "it is not watched for any more"


def test_nothing_is_searched_where_every_name_and_glob_has_a_function(monkeypatch: pytest.MonkeyPatch) -> None:
    """A glob names what it fits, and one function of any program is enough."""
    files, names = Files(monkeypatch), UnmatchedNames()
    settled(names, state(AFTER_NS, "smo*", "smooth (app)"))
    settled(names, state(AFTER_NS))
    assert not files.asked and not names.found


def test_a_function_that_has_no_calls_yet_is_no_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands in a file has a function, though nothing was found of it yet."""
    files, names = Files(monkeypatch, "later"), UnmatchedNames()
    settled(names, state(AFTER_NS, "later"))
    assert files.asked and not names.found


def test_a_function_of_an_old_build_is_none_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """The store knows functions of builds that nobody runs any more."""
    files, names = Files(monkeypatch), UnmatchedNames()
    settled(names, state(AFTER_NS, "smooth", mapped=frozenset({"cd"})))
    assert files.asked and [each.name for each in names.found] == ["smooth"]


def test_a_program_that_comes_later_is_searched_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its functions may be those that were meant."""
    files, names = Files(monkeypatch), UnmatchedNames()
    settled(names, state(AFTER_NS, "other", lifetimes={}))
    assert not files.asked, "no program runs"
    settled(names, state(AFTER_NS, "other"))
    assert [each.name for each in names.found] == ["other"]
    files.names = ("other",)
    both = {"l": LIFETIME, "m": replace(LIFETIME, id="boot:8:1", pid=8, executable="/bin/more")}
    settled(names, state(AFTER_NS + EVERY_NS, "other", lifetimes=both))
    assert files.asked[1:] == [[7, 8]] and not names.found


def test_what_cannot_be_read_is_searched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is said before it is sure."""
    files, names = Files(monkeypatch), UnmatchedNames()
    files.readable = False
    settled(names, state(AFTER_NS, "smoth"))
    assert not names.found
    files.readable = True
    settled(names, state(AFTER_NS + EVERY_NS, "smoth"))
    assert [each.name for each in names.found] == ["smoth"]


def test_the_status_of_a_daemon_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole way: configuration, search, answer."""
    files = Files(monkeypatch, "z")
    life = Life(tmp_path, config=config_text(tmp_path, "functions: {watch: [z, zz]}"))
    seen: list[Any] = []

    def searched() -> None:
        search = life.daemon._unmatched_names._search
        if search is not None:  # else it has ended already
            search.join(patient(20))

    life.at(15, searched)
    life.at(20, lambda: seen.append(life.ask(command="status")["unmatched_names"]))
    life.run(21)
    assert files.asked
    assert seen == [[{"name": "zz", "programs": ["app"], "alike": ["z"]}]]
