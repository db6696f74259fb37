"""What the hosts sent becomes medians of functions, builds and hosts; the command says what follows."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import timedelta

import numpy as np
import pytest

from specmine.fleet.database.connecting import Connection
from specmine.fleet.database.host_levels import read_levels
from specmine.fleet.database.hosts import set_state
from specmine.fleet.folding import FoldedRow
from specmine.fleet.push import Push
from specmine.model.batch import Lifetime
from specmine.model.function import Function
from specmine.model.histogram import EMPTY, Histogram
from specmine.model.observation import Kind, Observation
from specmine.model.split import Split
from specmine.store import Build, Host
from tests.support.fleets import imported, load_all
from tests.support.stored import SECOND

Outcome = Callable[..., tuple[int, str, str]]
_NAMES = ("parse", "read", "write", "send")
_NOW_NS = 1_790_000_000 * SECOND  # of whatever day: imported rows keep their times


def _function(build: str, at: int) -> Function:
    return Function(build_id=build, offset=16 * at, name=_NAMES[at], module="app", in_program=True)


def _push(host: str, build: str, medians: list[float], *, minute: int, blocked: float | None = None) -> Push:
    """Return five minutes of four functions in one lifetime; ``blocked``: which share of their time, if known."""
    lifetime = f"{host}:{minute}:1"
    record = Lifetime(id=lifetime, pid=minute, executable="/bin/app", build_id=build, start_ns=1, processes=1)
    seed = int.from_bytes(f"{host}{minute}".encode(), "little") % 2**32
    rng = np.random.default_rng(seed)
    rows = []
    for at, median in enumerate(medians):
        durations = median * 1e9 * np.exp(rng.normal(0.0, 0.02, 200)) + 400.0
        histogram = Histogram.from_durations(durations.astype(np.int64))
        split = None
        if blocked is not None:
            weights = (blocked * durations).astype(np.int64)
            waits = Histogram.from_pairs([0], [int(weights.sum())])
            on_cpu = Histogram.from_durations(((1.0 - blocked) * durations).astype(np.int64))
            split = Split(waiting_ns=EMPTY, blocked_ns=waits, on_cpu=on_cpu)
        seen = Observation(
            function=_function(build, at).key, lifetime=lifetime, kind=Kind.TIME, start_ns=60 * minute * SECOND + 1,
            end_ns=(60 * minute + 300) * SECOND, histogram=histogram,
            calls=300, watched_ns=SECOND, bias_ns=400.0, split=split,
        )  # fmt: skip
        rows.append(FoldedRow(observation=seen, windows=3))
    itself = Host(boot_id=host, hostname=host, utc_offset_ns=_NOW_NS)
    label = Build(build_id=build, executable="/bin/app", label={"aa": "v1", "bb": "v2"}[build])
    return Push(records=(itself, record, label, *(_function(build, at) for at in range(4))), rows=tuple(rows))


@pytest.fixture
def fleet(url: str, db: Connection) -> str:
    """Return a fleet of nine hosts: four get a new build whose parse is slower, and one host is slow."""
    for number in range(9):
        host = f"h{number}"
        slow = 2.3 if number == 2 else 1.0 + 0.01 * number
        imported(db, host, _push(host, "aa", [slow * each for each in (1e-4, 2e-4, 3e-4, 4e-4)], minute=0))
        build, parse = ("bb", 1.5e-4) if number >= 5 else ("aa", 1e-4)
        imported(db, host, _push(host, build, [slow * each for each in (parse, 2e-4, 3e-4, 4e-4)], minute=60))
    load_all(url)
    return url


def _ever() -> timedelta:
    return timedelta(days=40_000)


def test_medians_are_those_of_the_durations(fleet: str, db: Connection) -> None:
    """By build and host, less the probes' cost; what came before the new build is apart."""
    db.execute("SET search_path = specmine")
    parse = next(each for each in read_levels(db, _ever(), {}).functions if each.name == "parse")
    assert parse.pair is not None
    assert (parse.pair.base, parse.pair.new) == ("aa", "bb")
    assert len(parse.levels) == 9
    assert math.exp(parse.levels["aa", "h2"]) == pytest.approx(2.3e-4, rel=0.01)
    assert math.exp(parse.levels["bb", "h7"]) == pytest.approx(1.07 * 1.5e-4, rel=0.01)
    assert math.exp(parse.before["h7"]) == pytest.approx(1.07e-4, rel=0.01)
    set_state(db, "h7", "quarantined")
    assert ("bb", "h7") not in next(
        each for each in read_levels(db, _ever(), {}).functions if each.name == "parse"
    ).levels
    assert read_levels(db, timedelta(seconds=1), {}).functions == []


def test_the_command_names_the_host_and_the_build(fleet: str, outcome: Outcome) -> None:
    """Exit code 1, sentences for people, the same as JSON."""
    arguments = ["fleet", "levels", "--database", fleet, "--since", "20000d"]
    code, text, _ = outcome(*arguments)
    assert code == 1
    assert "h2 alone is slower, 2.2 times, in 4 of 4 functions: the host, not a build." in text
    assert "parse (app) is slower on all 4 hosts with build v2: 1.49 times" in text
    assert "3 equivalent" in text
    code, text, _ = outcome(*arguments, "--format", "json")
    document = json.loads(text)
    assert (code, document["schema"], document["hosts"]) == (1, "specmine.fleet_levels/1", 9)
    assert [each["method"] for each in document["builds"]] == ["changes"] * 4
    code, text, _ = outcome("fleet", "levels", "--database", fleet, "--since", "1s")
    assert (code, text) == (3, "Nothing was observed.\n")


def test_where_there_is_a_panel_scouts_state_no_level(fleet: str, db: Connection) -> None:
    """They are the hosts under most load; functions without a panel have the levels of all hosts."""
    db.execute(
        "INSERT INTO specmine.duty(host_id, function_id, purpose) SELECT h.host_id, f.function_id,"
        " CASE WHEN h.name < 'h4' THEN 'panel' ELSE 'scout' END FROM specmine.host h, specmine.function f"
        " WHERE f.key = %s",
        (_function("aa", 1).key,),
    )
    found = {each.name: each for each in read_levels(db, timedelta(days=36_500), {}).functions}
    hosts = {name: {host for build, host in each.levels if build == "aa"} for name, each in found.items()}
    assert hosts["read"] == {host for host in hosts["write"] if host < "h4"}
    assert len(hosts["write"]) > len(hosts["read"]) > 0


def test_a_host_that_became_slower_is_compared_with_itself(url: str, db: Connection, outcome: Outcome) -> None:
    """Of six hours its median is still what it was, so it does not stand out; its last half hour says it."""
    for number in range(7):
        for minute in range(0, 360, 30):
            factor = (1.0 + 0.2 * number) * (1.5 if (number, minute) == (3, 330) else 1.0)
            medians = [factor * each for each in (1e-4, 2e-4, 3e-4, 4e-4)]
            imported(db, f"h{number}", _push(f"h{number}", "aa", medians, minute=minute))
    load_all(url)
    levels = read_levels(db, _ever(), {}).functions
    assert [each.name for each in levels] == sorted(_NAMES)
    for each in levels:
        assert len(each.changes) == 7
        assert math.exp(each.changes["aa", "h3"]) == pytest.approx(1.5, rel=0.02)
        assert math.exp(each.changes["aa", "h5"]) == pytest.approx(1.0, rel=0.02)
    arguments = ["fleet", "levels", "--database", url, "--since", "20000d"]
    code, text, _ = outcome(*arguments)
    line = "h3 alone became slower in the last 30 minutes, 1.5 times, in 4 of 4 functions: the host, not a build.\n"
    assert (code, text) == (0, line)


def test_what_the_difference_is_comes_from_the_hosts_own_splits(url: str, db: Connection, outcome: Outcome) -> None:
    """One host is blocked for longer than the others, another runs for longer than before."""
    for number in range(9):
        for minute in (0, 330):
            disk, code = number == 2, (number, minute) == (5, 330)
            factor = 2.5 if disk else 2.0 if code else 1.0
            medians = [factor * each for each in (1e-4, 2e-4, 3e-4, 4e-4)]
            push = _push(f"h{number}", "aa", medians, minute=minute, blocked=0.68 if disk else 0.1 if code else 0.2)
            imported(db, f"h{number}", push)
    for minute in (275, 285):  # in the half hour before
        imported(db, "h5", _push("h5", "aa", [1e-4, 2e-4, 3e-4, 4e-4], minute=minute, blocked=0.2))
    load_all(url)
    _, text, _ = outcome("fleet", "levels", "--database", url, "--since", "20000d", "--format", "json")
    document = json.loads(text)
    (standing,), (changed,) = document["hosts_that_stand_out"], document["hosts_that_changed"]
    assert (standing["host"], changed["host"]) == ("h2", "h5")
    assert standing["time"]["blocked"] == pytest.approx((2.5 * 0.68 - 0.2) / 1.5, abs=0.02)
    assert "of the difference is blocked" in standing["text"]
    assert changed["time"]["running"] == pytest.approx(1.0, abs=0.02)
    assert "of the difference is running" in changed["text"]
