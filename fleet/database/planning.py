"""The planner: reads what is known, lets ``mining.fleet.duties`` decide, writes what each host is told. Once a minute.

One plans at a time. What it decides depends on the database alone, so another one goes on where it ended.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from specmine.daemon.sharing.document import MOST_DUTIES, MOST_LEFT
from specmine.fleet.codec import deflated
from specmine.mining.fleet.duties import (
    NEED_CALLS,
    SPREAD,
    Assignment,
    FleetFunction,
    FleetHost,
    assignments,
    is_enough,
)
from specmine.model.function import Function
from specmine.model.json_codec import decode, encode

from .connecting import Connection
from .sharing import hosts_with_changes
from .storing import document

HEARD = "15 minutes"
"""A host that was not heard of for so long is asked for nothing."""
MISSED_AFTER = "15 minutes"
"""Asked for so long without a row of it: another host is asked, ..."""
MISSED_FOR = "1 hour"
"""... and this one again after so long."""
AGAIN = "1 day"
"""What is stated is mined anew after so long, where there is news."""
ENOUGH = 4
"""So many times the calls that are needed, and still no statement: hosts differ, and each learns by itself."""
MOST_FUNCTIONS = 5_000
"""Of one host: more than any daemon follows."""
_WEEK_S = 7 * 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """What a plan came to."""

    hosts: int = 0
    functions: int = 0
    known: int = 0
    duties: Mapping[str, int] = field(default_factory=dict)
    """By purpose."""
    jobs: int = 0


@dataclass(slots=True)
class Planner:
    """Plans over one connection; it remembers names of functions, which never change."""

    panel: int = 30
    _names: dict[str, Function] = field(default_factory=dict)

    def plan(self, db: Connection) -> Planned:
        """Renew what each host is told, and the functions to be mined."""
        with db.transaction():
            row = db.execute("SELECT now() AS now").fetchone()
            assert row is not None
            _sight(db)
            _note_missed(db)
            hosts = _hosts(db)
            running = self._running(db, list(hosts))
            numbers = {each["key"]: each["function_id"] for each in running}
            predecessors = self._predecessors(running)
            _inherit(db, predecessors, numbers)
            functions = self._functions(db, hosts, running, predecessors)
            jobs = _want_mined(db, functions, numbers)
            week = int(row["now"].timestamp() // _WEEK_S)
            found = assignments(list(hosts.values()), functions, week=week, panel=self.panel)
            _write(db, {name: number for number, name in _ids(hosts).items()}, found, numbers, row["now"])
        purposes = Counter(duty.purpose.value for each in found.values() for duty in each.duties)
        return Planned(
            hosts=len(hosts), functions=len(functions), known=sum(each.known for each in functions),
            duties=dict(sorted(purposes.items())), jobs=jobs,
        )  # fmt: skip

    def _running(self, db: Connection, ids: list[int]) -> list[dict[str, Any]]:
        """Return the functions that hosts told of, each with those hosts."""
        running = db.execute(
            "SELECT f.function_id, f.key, array_agg(r.host_id) AS hosts FROM (SELECT host_id, key,"
            " row_number() OVER (PARTITION BY host_id ORDER BY key) AS place FROM held"
            " WHERE what = 'Function' AND host_id = ANY(%s)) AS r JOIN function f ON f.key = r.key"
            " WHERE place <= %s GROUP BY f.function_id, f.key ORDER BY f.key",
            (ids, MOST_FUNCTIONS),
        ).fetchall()
        self._learn_names(db, [row["key"] for row in running])
        return running

    def _functions(
        self,
        db: Connection,
        hosts: Mapping[int, FleetHost],
        running: Sequence[Mapping[str, Any]],
        predecessors: Mapping[str, str],
    ) -> list[FleetFunction]:
        models = {row["function_id"]: row for row in db.execute("SELECT function_id, state, found FROM model")}
        sightings: dict[int, list[Mapping[str, Any]]] = {}
        for seen_row in db.execute(
            "SELECT host_id, function_id, timed, timed_by_path, calls, watched_ns FROM sighting"
            " WHERE host_id = ANY(%s)",
            (list(hosts),),
        ):
            sightings.setdefault(seen_row["function_id"], []).append(seen_row)
        found, changed = [], hosts_with_changes(db, hosts)
        for row in running:
            number, model = row["function_id"], models.get(row["function_id"])
            state, came_to = (model["state"], model["found"]) if model is not None else ("", "")
            column = "timed_by_path" if came_to == "paths" else "timed"
            seen = sightings.get(number, [])
            calls = {hosts[each["host_id"]].name: each[column] for each in seen}
            rates = {
                hosts[each["host_id"]].name: each["calls"] / (each["watched_ns"] * 1e-9)
                for each in seen if each["watched_ns"] > 0
            }  # fmt: skip
            part = NEED_CALLS / max(1, min(SPREAD, len(row["hosts"])))
            # each host counts for its part alone, so one that boasts ends nothing
            given = sum(min(each, ENOUGH * part) for each in calls.values())
            found.append(
                FleetFunction(
                    key=row["key"],
                    build_id=self._names[row["key"]].build_id if row["key"] in self._names else "",
                    hosts=frozenset(hosts[each].name for each in row["hosts"]),
                    known=state in ("stated", "inherited"),
                    stated=state == "stated" or (came_to == "unstable" and given >= ENOUGH * NEED_CALLS),
                    calls=calls, rates=rates, predecessor=predecessors.get(row["key"], ""),
                    changed=frozenset(hosts[each].name for each in changed.get(row["key"], ())),
                )
            )  # fmt: skip
        return found

    def _learn_names(self, db: Connection, keys: Sequence[str]) -> None:
        new = [key for key in keys if key not in self._names]
        rows = db.execute(
            "SELECT key, document FROM held WHERE what = 'Function' AND key = ANY(%s) ORDER BY key, host_id", (new,)
        )
        told: dict[str, Counter[bytes]] = {}
        for row in rows:
            told.setdefault(row["key"], Counter())[bytes(row["document"])] += 1
        for key, each in told.items():  # where hosts describe it differently, the description of most of them counts
            self._names[key] = decode(Function, document(max(sorted(each), key=lambda text: each[text])))

    def _predecessors(self, running: Sequence[Mapping[str, Any]]) -> dict[str, str]:
        """Return the function of the same name in the build that most hosts run, of those in other builds."""
        by_name: dict[tuple[str, str], list[tuple[int, str]]] = {}
        for row in running:
            name = self._names.get(row["key"])
            if name is not None and name.in_program:
                by_name.setdefault((name.name, name.module), []).append((len(row["hosts"]), row["key"]))
        found: dict[str, str] = {}
        for builds in by_name.values():
            most = max(builds)[1]
            found |= {key: most for _, key in builds if key != most}
        return found


def _ids(hosts: Mapping[int, FleetHost]) -> dict[int, str]:
    return {number: each.name for number, each in hosts.items()}


def _sight(db: Connection) -> None:
    """Add the rows that came since the last plan to what is known of each host and function."""
    db.execute(
        "INSERT INTO function(key) SELECT DISTINCT r.key FROM held r WHERE r.what = 'Function'"
        " AND NOT EXISTS (SELECT 1 FROM function f WHERE f.key = r.key) ON CONFLICT DO NOTHING"
    )
    row = db.execute("SELECT value FROM meta WHERE key = 'sighted_load'").fetchone()
    last = int(row["value"]) if row is not None else 0
    row = db.execute("SELECT max(load_id) AS newest FROM observation WHERE load_id > %s", (last,)).fetchone()
    newest = row["newest"] if row is not None else None
    if newest is None:
        return
    db.execute(
        "INSERT INTO sighting AS s SELECT host_id, function_id, sum(timed),"
        " coalesce(sum(timed) FILTER (WHERE kind = 'path'), 0), sum(calls), sum(watched_ns), now()"
        " FROM observation WHERE load_id > %s AND load_id <= %s GROUP BY host_id, function_id"
        " ON CONFLICT (host_id, function_id) DO UPDATE SET timed = least(s.timed + excluded.timed, 1::bigint << 60),"
        " timed_by_path = least(s.timed_by_path + excluded.timed_by_path, 1::bigint << 60),"
        " calls = least(s.calls + excluded.calls, 1::bigint << 60),"
        " watched_ns = least(s.watched_ns + excluded.watched_ns, 1::bigint << 60), newest = excluded.newest",
        (last, newest),
    )
    db.execute(
        "INSERT INTO meta(key, value) VALUES ('sighted_load', %s)"
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (str(newest),),
    )


def _note_missed(db: Connection) -> None:
    """Note which hosts were asked for something three times running and sent no row of it."""
    db.execute(
        f"UPDATE duty d SET missed_until = now() + interval '{MISSED_FOR}' FROM host h WHERE h.host_id = d.host_id"
        f" AND d.missed_until IS NULL AND d.since < now() - interval '{MISSED_AFTER}'"
        f" AND h.seen_at > now() - interval '{HEARD}' AND NOT EXISTS (SELECT 1 FROM sighting s"
        " WHERE s.host_id = d.host_id AND s.function_id = d.function_id AND s.newest >= d.since)"
    )
    db.execute("DELETE FROM duty WHERE missed_until < now()")


def _hosts(db: Connection) -> dict[int, FleetHost]:
    rows = db.execute(
        "SELECT h.host_id, h.name, coalesce(h.labels->>'role', '') AS stratum, coalesce(array_agg(f.key)"
        " FILTER (WHERE f.key IS NOT NULL), '{}') AS missed FROM host h LEFT JOIN duty d ON d.host_id = h.host_id"
        " AND d.missed_until > now() LEFT JOIN function f USING (function_id)"
        f" WHERE h.state = 'active' AND h.seen_at > now() - interval '{HEARD}' GROUP BY h.host_id ORDER BY h.name"
    )
    return {
        row["host_id"]: FleetHost(name=row["name"], stratum=row["stratum"], missed=frozenset(row["missed"]))
        for row in rows
    }


def _want_mined(db: Connection, functions: Sequence[FleetFunction], numbers: Mapping[str, int]) -> int:
    """Let functions be mined of which there is enough that is new; return how many."""
    wanted = [numbers[each.key] for each in functions if is_enough(each)]
    rows = db.execute(
        "INSERT INTO job(function_id, priority) SELECT w.id, coalesce((SELECT sum(s.timed) FROM sighting s"
        " WHERE s.function_id = w.id), 0) FROM unnest(%s::int[]) AS w(id) LEFT JOIN model m ON m.function_id = w.id"
        " WHERE m.function_id IS NULL OR (EXISTS (SELECT 1 FROM sighting s WHERE s.function_id = w.id"
        f" AND s.newest > m.made_at) AND (m.found <> 'stated' OR m.made_at < now() - interval '{AGAIN}'))"
        " ON CONFLICT DO NOTHING RETURNING function_id",
        (wanted,),
    ).fetchall()
    return len(rows)


def _inherit(db: Connection, predecessors: Mapping[str, str], numbers: Mapping[str, int]) -> None:
    """Begin the functions of a new build with what is stated of them in the build that most hosts run."""
    for key, before in predecessors.items():
        row = db.execute(
            "SELECT document, hosts, calls FROM model WHERE function_id = %s AND state = 'stated' AND NOT EXISTS"
            " (SELECT 1 FROM model WHERE function_id = %s AND state <> 'none')",
            (numbers[before], numbers[key]),
        ).fetchone()
        if row is not None:
            text = json.dumps({**document(row["document"]), "function": key}, separators=(",", ":"))
            db.execute(
                "INSERT INTO model(function_id, state, found, hosts, calls, document)"
                " VALUES (%s, 'inherited', 'few', %s, %s, %s)"
                " ON CONFLICT (function_id) DO UPDATE SET state = excluded.state, hosts = excluded.hosts,"
                " calls = excluded.calls, document = excluded.document, number = nextval('model_number')",
                (numbers[key], row["hosts"], row["calls"], deflated(text.encode("ascii"))),
            )


def _write(
    db: Connection,
    ids: Mapping[str, int],
    found: Mapping[str, Assignment],
    numbers: Mapping[str, int],
    now: datetime,
) -> None:
    bounded = {
        name: replace(each, duties=each.duties[:MOST_DUTIES], left=each.left[:MOST_LEFT])
        for name, each in found.items()
    }
    with db.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO assignment(host_id, made_at, document) VALUES (%s, %s, %s) ON CONFLICT (host_id) DO UPDATE"
            " SET made_at = excluded.made_at, document = excluded.document",
            [(ids[name], now, assignment_bytes(each)) for name, each in bounded.items()],
        )
    db.execute("DELETE FROM assignment WHERE host_id <> ALL(%s)", ([ids[name] for name in bounded],))
    rows = [
        (ids[name], numbers[duty.function], duty.purpose.value)
        for name, each in bounded.items()
        for duty in each.duties
    ]
    columns = [list(values) for values in zip(*rows, strict=True)] or [[], [], []]
    db.execute(
        "WITH told AS (SELECT * FROM unnest(%s::int[], %s::int[], %s::text[]) AS t(host_id, function_id, purpose)),"
        " gone AS (DELETE FROM duty d WHERE d.missed_until IS NULL AND NOT EXISTS (SELECT 1 FROM told t"
        " WHERE t.host_id = d.host_id AND t.function_id = d.function_id))"
        " INSERT INTO duty AS d(host_id, function_id, purpose) SELECT * FROM told"
        " ON CONFLICT (host_id, function_id) DO UPDATE SET since = CASE WHEN d.purpose = excluded.purpose THEN d.since"
        " ELSE now() END, purpose = excluded.purpose WHERE d.purpose <> excluded.purpose",
        columns,
    )


def assignment_bytes(assignment: Assignment) -> bytes:
    """Return what a host is told, as compressed JSON."""
    return deflated(json.dumps(encode(assignment), separators=(",", ":"), sort_keys=True).encode("ascii"))
