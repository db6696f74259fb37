"""Programs that walk stacks are loaded once they are needed: the same as otherwise, and nothing is lost meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from specmine.model.batch import Sampling, Unwatch, Watch
from specmine.model.buckets import BUCKETS
from specmine.model.errors import HelperError
from specmine.model.observation import Kind
from specmine.probes.kernel import later_programs
from specmine.probes.kernel.compiling_child import Answer
from specmine.probes.kernel.later_programs import LaterPrograms
from specmine.probes.kernel.loader import PATHS, SAMPLING, Loaded, load
from tests.support.product import wait_until
from tests.support.source_driver import driven, running

Programs = Callable[..., Path]


def loaded(*groups: str) -> Loaded:
    """Return programs of which some groups are left for later."""
    later: dict[str, Any] = {group: {"group": group} for group in groups}
    return Loaded(mode="session", maps={"a": 3}, entries={}, programs={}, notes=(), seconds=0.1, later=later)


def came(**programs: int) -> Answer:
    """Return what a child made."""
    return Answer(
        mode="", maps={}, entries={}, programs=programs, notes=("noted",), waiting=True, fields=True, seconds=0.2,
        cpu_seconds=0.5,
    )  # fmt: skip


def test_each_group_is_loaded_once_and_then_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is awaited until it has come; a group that is not left for later never is; what came is closed in the end."""
    asked: list[tuple[object, ...]] = []
    fd = os.open("/dev/null", os.O_RDONLY)

    def answer(interpreter: str, request: dict[str, str], fds: tuple[int, ...], **_: object) -> Answer:
        asked.append((interpreter, request["group"], fds))
        return came(call_path_session=fd)

    monkeypatch.setattr(later_programs, "answer", answer)
    later = LaterPrograms(loaded(PATHS), "python")
    assert later.take() == ({}, [], 0)
    assert not later.awaited("") and not later.awaited(SAMPLING)
    assert later.awaited(PATHS) and later.awaited(PATHS)
    found: list[tuple[dict[str, int], list[str], int]] = []

    def taken() -> bool:
        found.append(later.take())
        return bool(found[-1][0])

    wait_until(taken, "the programs")
    assert found[-1] == ({"call_path_session": fd}, ["noted"], 500_000_000)
    assert not later.awaited(PATHS)
    assert asked == [("python", PATHS, (3,))]
    os.fstat(fd)
    later.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


def test_a_child_that_breaks_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who takes what came gets its error."""

    def answer(*_: object, **__: object) -> Answer:
        raise HelperError("it broke")

    monkeypatch.setattr(later_programs, "answer", answer)
    later = LaterPrograms(loaded(PATHS), "python")
    later.awaited(PATHS)
    with pytest.raises(HelperError, match="it broke"):
        wait_until(lambda: later.take()[0], "an error")
    later.close()


def test_who_ends_waits_for_no_child(monkeypatch: pytest.MonkeyPatch) -> None:
    """A child that works on is given up."""

    def answer(*_: object, given_up: Any, **__: object) -> Answer:
        given_up.wait()
        raise HelperError("given up")

    monkeypatch.setattr(later_programs, "answer", answer)
    later = LaterPrograms(loaded(PATHS, SAMPLING), "python")
    assert later.awaited(PATHS) and later.awaited(SAMPLING)
    later.close()


@pytest.fixture(scope="module")
def everything(cache: Path) -> Iterator[Loaded]:
    """All programs, loaded at once; that they could be is known from then on."""
    one = load(interpreter="/usr/bin/python3", memory_bytes=16 << 20, buckets=BUCKETS, cache=cache)
    yield one
    one.close()


@pytest.mark.kernel
def test_in_two_steps_the_same_programs_are_loaded(everything: Loaded, cache: Path) -> None:
    """The first ones have none that walks a stack, with the later ones they are all."""
    first = load(interpreter="/usr/bin/python3", memory_bytes=16 << 20, buckets=BUCKETS, cache=cache, postponing=True)
    later = LaterPrograms(first, "/usr/bin/python3")
    try:
        assert set(first.later) == {PATHS, SAMPLING}
        assert (first.mode, first.notes, first.waiting) == (everything.mode, everything.notes, everything.waiting)
        assert not any("path" in name or name in ("on_cpu", "on_switch") for name in first.programs)
        assert later.awaited(PATHS) and later.awaited(SAMPLING)
        programs = dict(first.programs)

        def complete() -> bool:
            programs.update(later.take()[0])
            return not later.awaited(PATHS) and not later.awaited(SAMPLING)

        wait_until(complete, "the programs")
        assert set(programs) == set(everything.programs)
    finally:
        later.close()
        first.close()


@pytest.mark.kernel
def test_requests_wait_for_their_programs(everything: Loaded, program: Programs) -> None:
    """Call paths and samples come; calls are counted meanwhile; a function that is given up meanwhile is not timed."""
    with running(program("paths"), 600) as child, driven(child.pid):
        pass  # from now on prices are known, which the first start measures with all programs
    with running(program("paths"), 600) as child, driven(child.pid) as driver:
        source = driver.source
        source.apply(Sampling(hertz=199))
        keys = [driver.key(name) for name in ("z", "b")]
        for key in keys:
            source.apply(Watch(function=key, kind=Kind.PATH, window_calls=200, minimum_calls=20))
        assert set(source.parts.later_requests._held) == set(keys)
        assert [source.parts.registry.by_function[key].watch.kind for key in keys] == [Kind.COUNT, Kind.COUNT]
        source.apply(Unwatch(function=keys[1]))
        driver.poll(lambda: driver.observations and driver.observations[-1].paths)
        assert source.parts.later_requests._held == {}
        assert {each.function for each in driver.observations} == {keys[0]}
        assert {each.name for each in driver.functions.values()} >= {"z", "main"}
