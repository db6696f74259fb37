"""What threads keep in mind is forgotten when it changes: who is watched, which image runs, where probes stand."""

from __future__ import annotations

import itertools
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from specmine.probes.kernel.structs import (
    COOKIE_PATH,
    COOKIE_SHARED,
    GENERATION_SHIFT,
    RETURN_PROBED,
    RETURN_REFUSED,
    RETURN_SHARED,
)
from tests.support.bare_kernel import SOURCE, Bare, Target

pytestmark = pytest.mark.kernel
SLOT = 7


@pytest.fixture(scope="module")
def bare(cache: Path) -> Iterator[Bare]:
    """Programs and maps for all tests here."""
    one = Bare(cache)
    yield one
    one.loaded.close()


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Target]:
    """A running program."""
    source = tmp_path / "two.c"
    source.write_text(SOURCE)
    subprocess.run(["gcc", "-O1", "-o", tmp_path / "two", source], check=True)
    shutil.copy(tmp_path / "two", tmp_path / "other")
    one = Target(tmp_path / "two")
    yield one
    one.end()


def grown(bare: Bare, target: Target, cookie: int, places: str) -> dict[str, int]:
    """Have z called and return by how much the counters grew, those that did."""
    before = bare.counted(cookie)
    target.call(places)
    return {name: value - before[name] for name, value in bare.counted(cookie).items() if value != before[name]}


@contextmanager
def timed(bare: Bare, target: Target, program: str, cookie: int) -> Iterator[None]:
    """Have z timed at its return sites behind both calls; nothing is told of them yet."""
    z, a, b = (target.offsets[name] for name in ("z", "from_a_back", "from_b_back"))
    with bare.linked(target.path, {a: "call_site_return", b: "call_site_return", z: program}, cookie, target.pid):
        yield


@pytest.mark.parametrize("program", ["call_count", "call_time_session", "call_path_session"])
def test_a_process_counts_as_long_as_it_is_watched(bare: Bare, target: Target, program: str) -> None:
    """Calls of a process are its program's while it is watched, and a stranger's before and after."""
    if program not in bare.loaded.programs:
        pytest.skip("no sessions on this kernel")
    cookie = SLOT | COOKIE_SHARED
    with bare.linked(target.path, {target.offsets["z"]: program}, cookie):
        for _ in range(2):
            assert grown(bare, target, cookie, "aaa") == {"hits": 3, "bystander_hits": 3}
            bare.watch(target.pid)
            assert grown(bare, target, cookie, "aaaa")["calls"] == 4
            assert "bystander_hits" not in grown(bare, target, cookie, "aaaa")
            bare.unwatch(target.pid)


def test_an_exec_ends_what_a_thread_knows(bare: Bare, target: Target) -> None:
    """The same file executed again by the same thread is nobody's until somebody chooses it."""
    cookie = SLOT | COOKIE_SHARED
    with bare.following(), bare.linked(target.path, {target.offsets["z"]: "call_count"}, cookie):
        bare.watch(target.pid)
        assert grown(bare, target, cookie, "aaa") == {"hits": 3, "calls": 3}
        target.execute(target.path)
        assert grown(bare, target, cookie, "aaa") == {"hits": 3, "bystander_hits": 3}
        bare.watch(target.pid)
        assert grown(bare, target, cookie, "aaa") == {"hits": 3, "calls": 3}
    bare.unwatch(target.pid)


@pytest.mark.parametrize("program", ["call_time_site", "call_path_site"])
def test_return_sites_are_learnt_refused_and_forgotten(bare: Bare, target: Target, program: str) -> None:
    """Each change of what is known of a return site holds from the next call on, for the one site it is about."""
    cookie = SLOT | (COOKIE_PATH if "path" in program else 0)
    a, b = (target.base + target.offsets[name] for name in ("from_a_back", "from_b_back"))

    def both() -> tuple[int, int]:
        """How many calls are timed of twenty from each place: those places take turns."""
        alone = grown(bare, target, cookie, "a" * 20).get("timed", 0)
        found = grown(bare, target, cookie, "ab" * 20)
        assert found["calls"] == 40
        assert found.get("timed", 0) + found.get("unlearnt", 0) == 40
        return alone, found.get("timed", 0) - alone

    with timed(bare, target, program, cookie):
        bare.watch(target.pid)
        assert both() == (0, 0)
        bare.say(a, cookie, RETURN_PROBED)
        assert both() == (20, 0)
        bare.say(b, cookie, RETURN_PROBED)
        assert both() == (20, 20)
        bare.say(a, cookie, RETURN_REFUSED)
        assert both() == (0, 20)
        bare.say(a, cookie, RETURN_SHARED)
        assert both() == (0, 20)
        bare.watch(target.pid, followed=True)
        assert both() == (20, 20)
        bare.watch(target.pid, followed=False)
        assert both() == (0, 20)
        bare.unsay(b, cookie)
        assert both() == (0, 0)
    bare.unsay(a, cookie)
    bare.unsay(b, cookie)
    bare.unwatch(target.pid)


def test_a_site_known_in_one_use_of_a_slot_is_not_known_in_the_next(bare: Bare, target: Target) -> None:
    """Another attachment of the same slot has to learn for itself."""
    first, second = SLOT | 1 << GENERATION_SHIFT, SLOT | 2 << GENERATION_SHIFT
    a = target.base + target.offsets["from_a_back"]
    bare.watch(target.pid)
    bare.slots["generation"][SLOT] = 1
    bare.say(a, first, RETURN_PROBED)
    with timed(bare, target, "call_time_site", first):
        assert grown(bare, target, first, "aaa")["timed"] == 3
    bare.slots["generation"][SLOT] = 2
    with timed(bare, target, "call_time_site", second):
        assert grown(bare, target, second, "aaa")["unlearnt"] == 3
        bare.say(a, second, RETURN_PROBED)
        assert grown(bare, target, second, "aaa")["timed"] == 3
    bare.slots["generation"][SLOT] = 0
    bare.unsay(a, first)
    bare.unsay(a, second)
    bare.unwatch(target.pid)


@pytest.mark.parametrize("program", ["call_time_session", "call_path_session"])
def test_which_calls_are_timed_is_left_to_chance(bare: Bare, target: Target, program: str) -> None:
    """A quarter of the calls, and of those that follow a timed one another quarter, within five standard deviations."""
    if program not in bare.loaded.programs:
        pytest.skip("no sessions on this kernel")
    cookie = SLOT | (COOKIE_PATH if "path" in program else 0)
    bare.watch(target.pid)
    bare.slots["timed_of_4g"][SLOT] = 1 << 30
    with bare.linked(target.path, {target.offsets["z"]: program}, cookie, target.pid):
        drawn = [grown(bare, target, cookie, "a").get("timed", 0) for _ in range(2000)]
    bare.slots["timed_of_4g"][SLOT] = 0
    bare.unwatch(target.pid)
    after = [second for first, second in itertools.pairwise(drawn) if first]
    assert abs(sum(drawn) - 500) < 5 * (2000 * 0.25 * 0.75) ** 0.5
    assert abs(sum(after) - len(after) / 4) < 5 * (len(after) * 0.25 * 0.75) ** 0.5


def test_a_call_that_an_exec_cuts_off_is_dropped(bare: Bare, target: Target) -> None:
    """What was open in the old image is counted as dropped; no call of the new one is taken for an inner one."""
    cookie = SLOT
    with bare.following(), bare.linked(target.path, {target.offsets["leap"]: "call_time_site"}, cookie, target.pid):
        for dropped in range(1, 4):
            bare.watch(target.pid)
            bare.say(target.base + target.offsets["leaper_back"], cookie, RETURN_PROBED)
            before = bare.counted(cookie)
            target.execute(target.path)
            after = bare.counted(cookie)
            assert [after[name] - before[name] for name in ("calls", "inner", "dropped")] == [1, 0, 1], dropped
    bare.unwatch(target.pid)
