"""Hostile targets end as they do unwatched, their calls are accounted for, and no probe stays behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from building import Builder, offsets
from watching_targets import Outcome, unwatched, watched

from specmine.mining.observation import Reason
from specmine.probes import gate

pytestmark = pytest.mark.kernel

RUNS = int(os.environ.get("CHAOS_RUNS", "2"))


def stop_and_continue(pid: int) -> None:
    """Stop the target again and again."""
    for _ in range(20):
        os.kill(pid, signal.SIGSTOP)
        time.sleep(0.01)
        os.kill(pid, signal.SIGCONT)
        time.sleep(0.005)


def debug(pid: int) -> None:
    """Attach gdb, look at the stack from within a probed function, go away."""
    steps = [each for step in ("break inner", "continue", "backtrace", "delete", "detach") for each in ("-ex", step)]
    command = ["gdb", "-p", str(pid), "-batch", "-nx", *steps]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=30)
    assert "outer" in done.stdout, done.stdout + done.stderr


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One hostile target and what is expected of it."""

    name: str
    functions: tuple[str, ...]
    build: str = ""
    """Source, if it is not called like the target."""
    variant: str = ""
    by_site: bool = False
    """Replacing its return addresses would end it, so that the gate must not."""
    exact: bool = True
    """Every call is made under the probes."""
    left_open: tuple[str, ...] = ()
    """Functions that never return."""
    timed: tuple[str, ...] = ()
    """Functions of whose calls most return and are timed once their sites are learnt."""
    meddle: Callable[[int], None] | None = None
    needs: str = ""
    """A tool that is not on every machine."""
    may_refuse: frozenset[str] = frozenset()


TARGETS = (
    Target(
        name="throws",
        by_site=True,
        functions=("leaf", "middle", "again", "ways", "other", "library_call"),
        timed=("ways",),
        may_refuse=frozenset({"no-return-site"}),
    ),
    Target(
        name="panics",
        by_site=True,
        functions=("leaf", "middle"),
        needs="rustc",
        may_refuse=frozenset({"no-return-site"}),
    ),
    Target(name="jumps", functions=("leaf", "middle", "outer"), timed=("outer",)),
    Target(name="fibers", by_site=True, functions=("step", "inner")),
    Target(name="deep", functions=("down", "ping", "pong")),
    Target(name="tails", functions=("first", "second", "third", "even", "odd"), timed=("first",)),
    Target(name="storm", functions=("work", "forking"), timed=("forking",)),
    Target(name="execs", functions=("work",), exact=False),
    # 200 calls in all: whether their return sites are learnt in time depends on the load of the host
    Target(name="plugins", functions=("use", "plugged"), exact=False, timed=()),
    Target(
        name="exits",
        by_site=True,
        functions=("leave", "wait_long", "plain"),
        left_open=("leave", "wait_long"),
        timed=("plain",),
    ),
    Target(name="signals", by_site=True, functions=("outer", "handled"), timed=("outer", "handled")),
    Target(name="stopped", build="steady", functions=("outer", "inner"), timed=("outer",), meddle=stop_and_continue),
    Target(name="debugged", build="steady", functions=("outer", "inner"), meddle=debug, needs="gdb"),
    Target(name="static", build="steady", variant="static", functions=("outer", "inner"), timed=("outer", "inner")),
    Target(name="stripped", build="steady", variant="stripped", functions=("outer", "inner"), timed=("outer", "inner")),
    Target(name="many", functions=tuple(f"f{n}" for n in range(8)), timed=("f0", "f7")),
)


@pytest.fixture(scope="module")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Builder:
    """Return what compiles the targets, each once."""
    return Builder(tmp_path_factory.mktemp("chaos"))


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder for compiled programs and the calibration."""
    return tmp_path_factory.mktemp("compiled")


def keys_of(path: Path, target: Target) -> dict[str, str | None]:
    """Return the functions, with their keys where the file does not name them."""
    if target.variant != "stripped":
        return dict.fromkeys(target.functions)
    notes = subprocess.run(["readelf", "-n", path], check=True, capture_output=True, text=True).stdout
    build_id = notes.split("Build ID:")[1].split()[0]
    places = offsets(path.with_suffix(".whole"), target.functions)
    return {name: f"{build_id}+{at:#x}" for name, at in places.items()}


def by_sites(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have returns timed by return sites in every program."""
    reason = Reason(code="unwinder", text="the test wants it")
    monkeypatch.setattr(gate, "forbids_replacing", lambda _: reason)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_target_is_unharmed(target: Target, builder: Builder, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hostile target ends as unwatched, its calls add up, and nothing stays attached."""
    if target.needs and not shutil.which(target.needs):
        pytest.skip(f"{target.needs} is not installed")
    path = builder.build(target.build or target.name, target.variant)
    alone = unwatched(path)
    assert alone.truth, alone
    for number in range(RUNS):
        with monkeypatch.context() as patch:
            if number % 2:
                by_sites(patch)
            seen = watched(path, keys_of(path, target), number, cache=cache, meddle=target.meddle)
        tell(target.name, number, seen)
        judge(target, alone, seen)


def judge(target: Target, alone: Outcome, seen: Outcome) -> None:
    """Compare one watched run with the unwatched one and with the target's own counts."""
    assert (seen.output, seen.status) == (alone.output, alone.status)
    assert not seen.left
    assert not target.by_site or set(seen.ways.values()) == {"sites"}
    assert set(seen.refused.values()) <= target.may_refuse
    for name, counted in seen.counted.items():
        if name in seen.refused:
            continue
        calls = counted["calls"] + counted["inner"]
        if target.exact:
            assert calls == seen.truth[name], (name, counted)
        else:
            assert 0 < calls <= seen.truth[name], (name, counted)
        assert counted["timed"] <= counted["calls"], (name, counted)
        if name in target.timed:
            assert counted["timed"] > 0.5 * counted["calls"], (name, counted)
    assert 0 <= seen.open <= sum(seen.truth[name] for name in target.left_open), seen.counted


def tell(name: str, number: int, seen: Outcome) -> None:
    """Print one run as a line of the table."""
    sums = " ".join(f"{what} {seen.total(what)}" for what in ("calls", "inner", "timed", "unlearnt", "dropped", "lost"))
    ways = "+".join(sorted(set(seen.ways.values())))
    print(f"{name:10} run {number} {ways:8} status {seen.status} {sums} open {seen.open} refused {seen.refused or '-'}")


@pytest.mark.parametrize("way", ["chosen", "sites"])
def test_hot_function_is_let_go(way: str, builder: Builder, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A function called as fast as the CPU can is counted up to its bucket and then runs free."""
    path = builder.build("hot")
    alone = unwatched(path)
    limits = {"hits_per_second": 2000.0, "burst_hits": 1000}
    for number in range(RUNS):
        with monkeypatch.context() as patch:
            if way == "sites":
                by_sites(patch)
            seen = watched(path, {"tiny": None}, number, cache=cache, limits=limits)
        tell(f"hot/{way}", number, seen)
        assert (seen.output, seen.status) == (alone.output, alone.status)
        assert not seen.left
        assert not seen.refused
        assert 0 < seen.total("timed") <= seen.total("calls")
        assert seen.total("hits") < 0.01 * seen.truth["tiny"]
