"""Whether a process has functions of the names that a user gave."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from specmine.daemon import name_search
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.name_search import AFTER_NS, NameSearch, names_without, none_is_named
from specmine.model.batch import Lifetime, Started
from tests.support.patience import patient
from tests.support.product import running, wait_until

LIFETIME = Lifetime(id="boot:7:1", pid=7, executable="/bin/app", build_id="ab", start_ns=1, processes=1)


def state(now_ns: int, **functions: Any) -> ControllerState:
    """Return a state of a program that was found at 0."""
    started = cast(Started, SimpleNamespace(now_ns=0))
    return replace(ControllerState(), started=started, now_ns=now_ns, lifetimes={"l": LIFETIME}, functions=functions)


def test_every_file_of_a_process_is_searched(program: Callable[..., Path]) -> None:
    """A name of a library is found as one of the program; what none has is answered with the program's own names."""
    with running(program("single"), 600) as child:
        wait_until(lambda: Path(f"/proc/{child.pid}/exe").readlink().name == "single", "the program runs")
        # its file is mapped a moment after /proc names it, and libraries after that
        wait_until(lambda: names_without(child.pid, ["smooth"]) is None, "the program's name is found")
        wait_until(lambda: names_without(child.pid, ["clock_gettime", "nobody"]) is None, "a library's name is found")
        alike = names_without(child.pid, ["smoth"])
    assert alike is not None and {"smooth", "main"} <= set(alike)


def test_it_is_looked_for_only_where_nothing_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not before some seconds, and not once a function is known."""
    asked: list[int] = []

    def looked(pid: int, _: object) -> list[str]:
        asked.append(pid)
        return ["smooth"]

    monkeypatch.setattr(name_search, "names_without", looked)
    search = NameSearch(["smoth"])
    assert not search.turn(state(AFTER_NS - 1)) and not search.turn(state(AFTER_NS, z=object()))
    assert not asked
    search.turn(state(AFTER_NS))
    wait_until(lambda: search.turn(state(AFTER_NS + 1)), "it is sure", patient(20))
    assert asked == [7] and search.known == ("smooth",)


def test_what_cannot_be_read_is_not_sure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the mining goes on to its end."""

    def refused(*_: Any) -> None:
        raise PermissionError

    monkeypatch.setattr(name_search, "names_without", refused)
    search = NameSearch(["smoth"])
    search.turn(state(AFTER_NS))
    assert search._thread is not None
    search._thread.join(patient(20))
    assert not search.turn(state(AFTER_NS + 1)) and search.known == ()


def test_names_are_at_fault_only_where_that_is_sure(program: Callable[..., Path]) -> None:
    """Not where the program's file has the function, was never seen, or was stopped before it was searched."""

    def ended(now_ns: int, *globs: str, seen: bool = True, interrupted: bool = False) -> bool:
        executable = replace(LIFETIME, executable=str(program("single")), processes=0)
        after = replace(state(now_ns), lifetimes={"l": executable})
        return none_is_named(after, globs, seen=seen, interrupted=interrupted)

    assert ended(1, "nosuch") and ended(AFTER_NS, "nosuch", interrupted=True)
    assert not ended(1, "nosuch", interrupted=True)
    assert not ended(1, "nosuch", seen=False)
    assert not ended(AFTER_NS, "smooth") and not ended(AFTER_NS)
