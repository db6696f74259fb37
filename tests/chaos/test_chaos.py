"""Hostile targets end as they do unwatched, their calls and durations are true, and no probe stays behind."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from specmine.model.function import Reason
from specmine.probes.safety import gate
from tests.support.chaos_building import build
from tests.support.chaos_hostile import HOT, SUCCESSOR, TARGETS, Target
from tests.support.chaos_judging import HEADER, faults, gained, row
from tests.support.chaos_watching_targets import Outcome, unwatched, watched

pytestmark = pytest.mark.kernel

RUNS = int(os.environ.get("CHAOS_RUNS", "2"))
"""Even ones time returns as the gate chooses, odd ones by return sites."""
QUIET = "CHAOS_RUNS" in os.environ
"""`make chaos` has the host for itself and judges medians, too."""


@dataclass(slots=True)
class Results:
    """What the groups that ran so far gave."""

    alone: dict[str, Outcome] = field(default_factory=dict)
    runs: dict[str, list[Outcome]] = field(default_factory=lambda: defaultdict(list))

    def faults(self, target: Target, number: int) -> list[str]:
        """Return what was wrong in one run."""
        return faults(target, self.alone[target.name], self.runs[target.name][number], quiet=QUIET)


def by_sites(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have returns timed by return sites in every program."""
    reason = Reason(code="unwinder", text="the test wants it")
    monkeypatch.setattr(gate, "forbids_replacing", lambda *_: reason)


@pytest.fixture(scope="module")
def selected(request: pytest.FixtureRequest) -> list[Target]:
    """Return the targets whose tests were selected, of those that this machine can build."""
    names = {getattr(item, "callspec", None) and item.callspec.id for item in request.session.items}  # type: ignore[attr-defined]
    return [each for each in TARGETS if each.name in names and not each.missing]


@pytest.fixture(scope="module")
def paths(selected: list[Target], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the programs, all built."""
    return build([*selected, HOT, SUCCESSOR], tmp_path_factory.mktemp("chaos"))


@pytest.fixture(scope="module")
def results(pytestconfig: pytest.Config) -> Iterator[Results]:
    """Return where results are gathered; in the end show them as a table, under ``-s``."""
    gathered = Results()
    yield gathered
    print(f"\n{HEADER}\n" + "| --- " * (HEADER.count("|") - 1) + "|")
    for target in TARGETS:
        runs = gathered.runs.get(target.name, [])
        if any(each.counted for each in runs):
            print(row(target, runs, sum(not gathered.faults(target, n) for n in range(len(runs)))))


@pytest.fixture(scope="module")
def run_group(selected: list[Target], paths: dict[str, Path], cache: Path, results: Results) -> Callable[[int], None]:
    """Return what runs all targets of a group, RUNS times, unless it has."""

    def run(number: int) -> None:
        group = [(each, paths[each.name]) for each in selected if each.group == number]
        if group[0][0].name in results.runs:
            return
        with ThreadPoolExecutor() as pool:
            ended = pool.map(unwatched, [path for _, path in group])
        results.alone |= {each.name: outcome for (each, _), outcome in zip(group, ended, strict=True)}
        for turn in range(RUNS):
            with pytest.MonkeyPatch.context() as patch:
                if turn % 2:
                    by_sites(patch)
                for name, seen in watched(group, turn, cache=cache).items():
                    results.runs[name].append(seen)

    return run


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_target_is_unharmed(target: Target, run_group: Callable[[int], None], results: Results) -> None:
    """A hostile target ends as unwatched, its calls add up, no duration is impossible, and nothing stays attached."""
    if target.missing:
        pytest.skip(f"{target.needs} is not installed")
    run_group(target.group)
    assert results.alone[target.name].truth
    found = [f"run {n}: {fault}" for n in range(RUNS) for fault in results.faults(target, n)]
    assert not found, "\n".join(found)


def test_most_functions_are_timed(results: Results) -> None:
    """Nine of ten functions that can be timed safely are timed; the others are refused for the reasons expected."""
    runs = [(each, seen) for each in TARGETS for seen in results.runs.get(each.name, ())]
    if not runs:
        pytest.skip("no target was run")
    timed, missed, reasons = gained(runs)
    print(f"\n{timed} of {timed + len(missed)} functions timed, not {missed}; refused: {dict(reasons)}")
    assert timed >= 0.9 * (timed + len(missed)), missed


def test_hot_function_is_let_go(paths: dict[str, Path], cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A function called as fast as the CPU can is counted up to its bucket and then runs free."""
    path = paths[HOT.name]
    alone = unwatched(path)
    limits = {"hits_per_second": 2000.0, "burst_hits": 1000}
    for number in range(RUNS):
        with monkeypatch.context() as patch:
            if number % 2:
                by_sites(patch)
            seen = watched([(HOT, path)], number, cache=cache, limits=limits)[HOT.name]
        print(f"hot run {number} {seen.ways}: { ({what: seen.total(what) for what in ('hits', 'calls', 'timed')}) }")
        assert (seen.output, seen.status) == (alone.output, alone.status)
        assert not seen.left
        assert not seen.refused
        assert 0 < seen.total("timed") <= seen.total("calls")
        assert seen.total("hits") < 0.01 * seen.truth["tiny"]
