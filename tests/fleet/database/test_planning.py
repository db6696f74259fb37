"""Planner and analyst: who is told what, what is mined from many hosts, and what a host's lie cannot move."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from specmine.daemon.sharing.document import FILE, read_received, read_statement, received_text
from specmine.fleet.codec import inflated
from specmine.fleet.database.analysing import analyse, claim
from specmine.fleet.database.connecting import Connection, connected
from specmine.fleet.database.planning import Planner
from specmine.fleet.database.schema import MINE, initialize, migrations
from specmine.fleet.folding import FoldedRow
from specmine.fleet.forwarding.receiving import receive
from specmine.fleet.push import Push
from specmine.mining.fleet.duties import CHANGED_TIMES, PANEL_CALLS
from specmine.mining.fleet.duty import Purpose
from specmine.model.batch import Lifetime
from specmine.model.call_path import CallPath, Frame
from specmine.model.function import Function
from specmine.model.histogram import Histogram
from specmine.model.observation import Kind, Observation, PathHistogram
from specmine.model.violation import Direction, Violation, What
from specmine.store import Host
from specmine.store.tables.violations import stored
from tests.support.fleets import EnrolledHost, enrolled, imported, load_all
from tests.support.postgres import Postgres
from tests.support.product import specmine

_Z = Function(build_id="ab", offset=16, name="z", module="app", in_program=True)
_HOSTS = [f"h{number}" for number in range(10)]
SECOND = 10**9


def _row(
    name: str, function: Function, rng: np.random.Generator, *, calls: int = 400, factor: float = 1.0
) -> FoldedRow:
    """Return five minutes of the first paper's example: fast over b->c, mixed elsewhere."""
    fast = rng.random(calls) < np.where(np.arange(calls) % 2 == 0, 1.0, 0.6)
    durations = np.where(fast, 20_000.0, 200_000.0) * factor * np.exp(0.1 * rng.standard_normal(calls))
    histograms = [Histogram.from_durations(durations[at::2].astype(np.int64)) for at in (0, 1)]
    paths = tuple(
        PathHistogram(path=CallPath(tuple(Frame(each, "app") for each in names)), histogram=histogram)
        for names, histogram in zip((("main", "b", "c", "z"), ("main", "a", "c", "z")), histograms, strict=True)
    )
    seen = Observation(
        function=function.key, lifetime=f"boot-{name}:1:1", kind=Kind.PATH, start_ns=SECOND, end_ns=301 * SECOND,
        histogram=Histogram.sum(histograms), calls=calls, watched_ns=SECOND, paths=paths,
    )  # fmt: skip
    return FoldedRow(observation=seen, windows=1)


def _send(db: Connection, name: str, function: Function = _Z, rows: tuple[FoldedRow, ...] = ()) -> None:
    life = Lifetime(
        id=f"boot-{name}:1:1", pid=1, executable="/bin/app", build_id=function.build_id, start_ns=1, processes=1
    )
    host = Host(boot_id=f"boot-{name}", hostname=name, utc_offset_ns=0)
    imported(db, name, Push(records=(host, life, function), rows=rows))


def _fleet(db: Connection, url: str, function: Function = _Z, hosts: list[str] = _HOSTS, seed: int = 1) -> None:
    rng = np.random.default_rng(seed)
    for name in hosts:
        factor = float(np.exp(0.1 * rng.standard_normal()))
        _send(db, name, function, (_row(name, function, rng, factor=factor),))
    load_all(url)
    db.execute("UPDATE specmine.host SET seen_at = now()")


@pytest.fixture
def mine(url: str) -> Any:
    """Return a connection with the rights of planner and analysts."""
    with connected(url, role=MINE, autocommit=True) as connection:
        yield connection


def _model(db: Connection, function: Function) -> dict[str, Any]:
    row = db.execute(
        "SELECT m.state, m.document FROM specmine.model m JOIN specmine.function f USING (function_id)"
        " WHERE f.key = %s",
        (function.key,),
    ).fetchone()
    assert row is not None
    return row


def _told(db: Connection) -> dict[str, dict[str, Any]]:
    rows = db.execute("SELECT h.name, a.document FROM specmine.assignment a JOIN specmine.host h USING (host_id)")
    return {row["name"]: json.loads(inflated(bytes(row["document"]))) for row in rows}


def test_from_rows_of_many_hosts_to_a_statement_that_a_host_gets(
    postgres: Postgres, url: str, folder: Path, db: Connection, mine: Connection
) -> None:
    """Planned, mined, planned again; a host with its certificate gets its duties and the statement into its file."""
    _fleet(db, url)
    assert Planner().plan(mine).jobs == 1
    assert analyse(mine)
    assert not analyse(mine)
    planned = Planner().plan(mine)
    assert (planned.hosts, planned.known, planned.duties) == (10, 1, {"panel": 10})
    host = enrolled(postgres, url, folder, "h3")
    with host.connection() as connection:
        received = receive(folder, connection, "boot-h3", lambda: 77)
        assert received is not None
        assert [(each.function, each.purpose) for each in received.duties] == [(_Z.key, Purpose.PANEL)]
        again = receive(folder, connection, "boot-h3", lambda: 78)
    written = read_received((folder / FILE).read_bytes())
    assert (written.told_ns, written.boot_id, written.number) == (78, "boot-h3", received.number)
    assert again is not None
    (stated,) = written.statements
    assert stated.hosts == 10
    assert stated.result is not None
    assert sorted(each.expression for each in stated.result.behaviours) == ["a->c", "not a->c"]
    shown = json.loads(specmine("fleet", "statements", "--database", url, "--format", "json").stdout)["statements"]
    assert [(each["function"], each["state"], each["classes"]) for each in shown] == [("z", "stated", 2)]
    duties = json.loads(specmine("fleet", "duties", "h3", "--database", url, "--format", "json").stdout)["duties"]
    assert [(each["function"], each["purpose"], each["missed"]) for each in duties] == [("z", "panel", False)]
    assert "1 function stated" in specmine("fleet", "status", "--database", url).stdout


def test_a_new_build_begins_with_the_statement_of_the_old_one(url: str, db: Connection, mine: Connection) -> None:
    """On the first host that runs it; until its own rows say something."""
    _fleet(db, url)
    Planner().plan(mine)
    analyse(mine)
    new = replace(_Z, build_id="cd", offset=32)
    _send(db, "h1", new)
    load_all(url)
    planned = Planner().plan(mine)
    assert planned.known == 2
    row = _model(db, new)
    statement = read_statement(inflated(bytes(row["document"])))
    assert (row["state"], statement.function, statement.build_id) == ("inherited", new.key, "ab")
    assert {each["purpose"] for each in _told(db)["h1"]["duties"] if each["function"] == new.key} <= {"canary", "scout"}


def test_two_analysts_never_mine_the_same(url: str, db: Connection, mine: Connection) -> None:
    """A claim holds until its lease ends; then another one takes it."""
    _fleet(db, url)
    Planner().plan(mine)
    with connected(url, role=MINE, autocommit=True) as other:
        assert len(claim(mine)) == 1
        assert claim(other) == []
        db.execute("UPDATE specmine.job SET leased_until = now() - interval '1 s'")
        assert len(claim(other)) == 1


def test_a_claim_takes_no_more_than_it_asks_for_by_any_plan(url: str, db: Connection, mine: Connection) -> None:
    """Where statistics say there is one job, the server ran a subquery of the update for each, and leased them all."""
    for number in range(1, 9):
        _fleet(db, url, replace(_Z, name=f"z{number}", offset=16 * number), _HOSTS[:2])
    db.execute("INSERT INTO specmine.job (function_id) SELECT min(function_id) FROM specmine.function")
    db.execute("ANALYZE specmine.job")
    db.execute(
        "INSERT INTO specmine.job (function_id) SELECT function_id FROM specmine.function ON CONFLICT DO NOTHING"
    )
    assert [len(claim(mine)) for _ in range(4)] == [1, 1, 1, 1]
    assert len(claim(mine, 3)) == 3


def test_who_delivers_nothing_is_left_out_for_a_while(url: str, db: Connection, mine: Connection) -> None:
    """Another host is asked; an hour later this one again."""
    for name in _HOSTS:
        _send(db, name)
    load_all(url)
    db.execute("UPDATE specmine.host SET seen_at = now()")
    Planner().plan(mine)
    asked = {name for name, each in _told(db).items() if each.get("duties")}
    assert len(asked) == 10
    silent = min(asked)
    db.execute("UPDATE specmine.duty SET since = now() - interval '20 minutes'")
    for name in asked - {silent}:
        _send(db, name, rows=(_row(name, _Z, np.random.default_rng(2), calls=50),))
    load_all(url)
    Planner().plan(mine)
    after = {name for name, each in _told(db).items() if each.get("duties")}
    assert silent not in after
    assert len(after) == 9
    db.execute("UPDATE specmine.duty SET missed_until = now() - interval '1 s' WHERE missed_until IS NOT NULL")
    Planner().plan(mine)
    assert db.execute("SELECT 1 FROM specmine.duty WHERE missed_until IS NOT NULL").fetchone() is None


def _lie_about_function(db: Connection) -> None:
    _send(db, "h0", replace(_Z, name="evil", module="x"))


def _lie_about_rows(db: Connection) -> None:
    rng = np.random.default_rng(5)
    rows = tuple(_row("h0", _Z, rng, calls=100_000, factor=30.0) for _ in range(20))
    _send(db, "h0", rows=rows)


def _lie_about_other_functions(db: Connection) -> None:
    rows = []
    for number in range(40):
        function = replace(_Z, offset=1000 + number, name=f"lie{number}")
        _send(db, "h0", function, (_row("h0", function, np.random.default_rng(number), calls=5000),))
        rows.append(function)


def _tell_of_changes(db: Connection, name: str, number: int = 1) -> None:
    for at in range(number):
        violation = Violation(
            function=_Z.key, what=What.LEVEL, direction=Direction.SLOWER, factor=2.0, factor_low=1.9, factor_high=2.1,
            found_ns=SECOND, id=f"{name}{at}",
        )  # fmt: skip
        imported(db, name, Push(records=(stored(violation, 0),)))


def _lie_about_changes(db: Connection) -> None:
    _tell_of_changes(db, "h0", 100)


_LIES: dict[str, Callable[[Connection], None]] = {
    "about a function's name": _lie_about_function,
    "about durations, again and again": _lie_about_rows,
    "about functions that nobody has": _lie_about_other_functions,
    "about changes": _lie_about_changes,
}


@pytest.mark.parametrize("lie", list(_LIES))
def test_a_stolen_certificate_steers_nobody_else(lie: str, url: str, db: Connection, mine: Connection) -> None:
    """Whatever one host sends: what is stated, and what others are asked for, is as without it."""
    _fleet(db, url)
    Planner().plan(mine)
    analyse(mine)
    Planner().plan(mine)
    told, stated = _told(db), db.execute("SELECT document FROM specmine.model").fetchone()
    _LIES[lie](db)
    load_all(url)
    db.execute("UPDATE specmine.model SET made_at = now() - interval '2 days'")
    for _ in range(2):
        Planner().plan(mine)
        while analyse(mine):
            pass
    after = _told(db)
    assert stated is not None
    for name in _HOSTS[1:]:
        assert after[name] == told[name]
    row = _model(db, _Z)
    before, now = (read_statement(inflated(bytes(each["document"]))) for each in (stated, row))
    assert now.result is not None
    assert before.result is not None
    assert [each.expression for each in now.result.behaviours] == [each.expression for each in before.result.behaviours]
    assert now.median_ns == pytest.approx(before.median_ns, rel=0.1)
    assert len(now.learned.borders) == len(before.learned.borders)


def test_what_changed_on_two_hosts_is_asked_of_all(url: str, db: Connection, mine: Connection) -> None:
    """The panel is asked for more calls while the violations are open."""
    _fleet(db, url)
    Planner().plan(mine)
    analyse(mine)
    for name in ("h1", "h2"):
        _tell_of_changes(db, name)
    load_all(url)
    for changed in (True, False):
        Planner().plan(mine)
        calls = {duty["calls"] for each in _told(db).values() for duty in each["duties"]}
        assert calls == {PANEL_CALLS * (CHANGED_TIMES if changed else 1)}
        db.execute("UPDATE specmine.held SET updated_at = now() - interval '2 hours' WHERE what = 'StoredViolation'")


def test_a_host_learns_only_of_functions_that_it_told_of(
    postgres: Postgres, url: str, folder: Path, db: Connection, mine: Connection
) -> None:
    """Neither duties nor statements of others."""
    _fleet(db, url)
    Planner().plan(mine)
    analyse(mine)
    stranger: EnrolledHost = enrolled(postgres, url, folder, "stranger")
    db.execute("UPDATE specmine.host SET seen_at = now()")
    Planner().plan(mine)
    with stranger.connection() as connection:
        assert connection.statements(0) == []
        told = connection.duties()
    assert told is not None
    assert json.loads(inflated(told.document)) == {}


def test_an_older_fleet_knows_no_duties(postgres: Postgres, folder: Path) -> None:
    """A newer host goes on sending, and observes all by itself."""
    older = postgres.url(postgres.new_database())
    initialize(older, steps=migrations()[:3])
    host = enrolled(postgres, older, folder, "h1")
    with host.connection() as connection:
        assert receive(folder, connection, "boot-h1", lambda: 7) is None
        assert connection.push("00000000-0000-0000-0000-000000000001", 1, b"x", "boot", 1).accepted == 1
    assert not (folder / FILE).exists()


def test_a_restored_database_is_asked_anew(
    postgres: Postgres, url: str, folder: Path, db: Connection, mine: Connection
) -> None:
    """Numbers that went back mean that statements may have too: all are taken again."""
    _fleet(db, url)
    Planner().plan(mine)
    analyse(mine)
    Planner().plan(mine)
    host = enrolled(postgres, url, folder, "h3")
    with host.connection() as connection:
        first = receive(folder, connection, "boot-h3", lambda: 7)
        assert first is not None
        later = replace(first, number=first.number + 100, statements=())
        (folder / FILE).write_text(received_text(later), encoding="ascii")
        again = receive(folder, connection, "boot-h3", lambda: 8)
    assert again is not None
    assert again.number == first.number
    assert [each.function for each in again.statements] == [_Z.key]
