"""What is stored as rows, and back again."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping

from specmine.model.batch import Lifetime
from specmine.model.function import Function
from specmine.model.observation import Kind, Observation

from .codec import decode_counts, decode_paths, decode_split, encode_counts, encode_paths, encode_split
from .host_environments import load_marks, load_vectors
from .records import Build, Contents, Host, JsonObject, Verdict, boot_of


def canonical(value: object) -> str:
    """Write a JSON value in the one way in which equal values are equal texts."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def put_host(db: sqlite3.Connection, host: Host) -> None:
    """Insert or replace a boot of a host."""
    row = (host.boot_id, host.hostname, host.utc_offset_ns, canonical(dict(host.facts)))
    db.execute("INSERT OR REPLACE INTO hosts VALUES(?, ?, ?, ?)", row)


def put_functions(db: sqlite3.Connection, functions: Iterable[Function]) -> None:
    """Insert or replace descriptions of functions."""
    db.executemany(
        "INSERT INTO functions VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT(key) DO UPDATE SET name = excluded.name, module = excluded.module,"
        " aliases = excluded.aliases, mangled = excluded.mangled,"
        " in_program = excluded.in_program, stepped = excluded.stepped,"
        " code = iif(excluded.code = '', code, excluded.code)",  # its code is known later than its name
        (
            (
                each.key,
                each.build_id,
                each.offset,
                each.name,
                each.module,
                canonical(list(each.aliases)),
                each.mangled,
                int(each.in_program),
                int(each.stepped),
                each.code,
            )
            for each in functions
        ),
    )


def put_lifetimes(db: sqlite3.Connection, lifetimes: Iterable[Lifetime]) -> None:
    """Insert or replace lifetimes; a build seen for the first time comes with them."""
    for each in lifetimes:
        boot_id = boot_of(each.id)
        row = (each.id, boot_id, each.pid, each.executable, each.build_id, each.start_ns, each.processes)
        db.execute("INSERT OR REPLACE INTO lifetimes VALUES(?, ?, ?, ?, ?, ?, ?)", row)
        db.execute("INSERT OR IGNORE INTO builds VALUES(?, ?, NULL)", (each.build_id, each.executable))


def put_observations(db: sqlite3.Connection, observations: Iterable[Observation], *, merges: int = 0) -> None:
    """Append observations that went through ``merges`` rounds of merging."""
    offsets: dict[str, int] = dict(db.execute("SELECT boot_id, utc_offset_ns FROM hosts"))
    for each in observations:
        boot_id = boot_of(each.lifetime)
        row = (
            each.function,
            each.lifetime,
            each.kind.value,
            boot_id,
            each.start_ns,
            each.end_ns,
            each.end_ns + offsets.get(boot_id, 0),
            each.calls,
            each.watched_ns,
            each.inner,
            each.censored,
            each.bias_ns,
            merges,
            encode_counts(each.counts),
            encode_paths(each.paths) if each.paths else None,
            encode_split(each.split) if each.split is not None else None,
            each.uncertainty_ns,
        )
        db.execute(f"INSERT INTO observations VALUES(NULL{', ?' * len(row)})", row)


def put_states(db: sqlite3.Connection, states: Mapping[str, JsonObject], utc_ns: int) -> None:
    """Replace what the controller knows about functions."""
    rows = ((function, canonical(state), utc_ns) for function, state in states.items())
    db.executemany("INSERT OR REPLACE INTO states VALUES(?, ?, ?)", rows)


def put_verdicts(db: sqlite3.Connection, verdicts: Iterable[Verdict]) -> None:
    """Append verdicts; one that repeats the last about the same subject is left out."""
    for each in verdicts:
        last = db.execute(
            "SELECT verdict FROM verdicts WHERE function = ? AND subject = ? ORDER BY id DESC LIMIT 1",
            (each.function, each.subject),
        ).fetchone()
        if last is None or last[0] != each.verdict:
            row = (each.function, each.subject, each.verdict, each.utc_ns, canonical(dict(each.evidence)))
            db.execute("INSERT INTO verdicts VALUES(NULL, ?, ?, ?, ?, ?)", row)


def put_document(db: sqlite3.Connection, name: str, document: JsonObject, utc_ns: int) -> None:
    """Replace a whole document, such as the specification as it was last published."""
    db.execute("INSERT OR REPLACE INTO documents VALUES(?, ?, ?)", (name, canonical(document), utc_ns))


def label(db: sqlite3.Connection, build_id: str, name: str) -> bool:
    """Give a build a label; False if the store does not know the build."""
    return db.execute("UPDATE builds SET label = ? WHERE build_id = ?", (name, build_id)).rowcount > 0


def load(db: sqlite3.Connection, *, newest: int) -> Contents:
    """Read what the store holds, of observations the newest of each function and kind."""
    hosts = tuple(
        Host(boot_id=boot, hostname=name, utc_offset_ns=offset, facts=json.loads(facts))
        for boot, name, offset, facts in db.execute("SELECT * FROM hosts ORDER BY utc_offset_ns, boot_id")
    )
    return Contents(
        hosts=hosts,
        builds=load_builds(db),
        lifetimes=tuple(map(_lifetime, db.execute("SELECT * FROM lifetimes ORDER BY start_ns, id"))),
        functions=tuple(map(_function, db.execute("SELECT * FROM functions ORDER BY key"))),
        observations=tuple(
            observation_of(row)
            for row in db.execute(
                "SELECT * FROM (SELECT *, row_number() OVER"
                " (PARTITION BY function, kind ORDER BY end_utc_ns DESC, id DESC) AS age FROM observations)"
                " WHERE age <= ? ORDER BY end_utc_ns, id",
                (newest,),
            )
        ),
        states=_objects(db, "SELECT function, state FROM states ORDER BY function"),
        documents=_objects(db, "SELECT name, document FROM documents ORDER BY name"),
        environments=load_vectors(db),
        marks=load_marks(db),
    )


def load_builds(db: sqlite3.Connection) -> tuple[Build, ...]:
    """Return the builds seen, with their labels."""
    rows = db.execute("SELECT build_id, executable, label FROM builds ORDER BY build_id")
    return tuple(Build(build_id=build_id, executable=exe, label=name) for build_id, exe, name in rows)


def load_document(db: sqlite3.Connection, name: str) -> JsonObject | None:
    """Return a document as it was last put, None if it never was."""
    row = db.execute("SELECT document FROM documents WHERE name = ?", (name,)).fetchone()
    return None if row is None else json.loads(row[0])


def load_verdicts(db: sqlite3.Connection, function: str) -> tuple[Verdict, ...]:
    """Return the history of verdicts about a function, oldest first."""
    rows = db.execute(
        "SELECT subject, verdict, utc_ns, evidence FROM verdicts WHERE function = ? ORDER BY id", (function,)
    )
    return tuple(
        Verdict(function=function, subject=subject, verdict=said, utc_ns=utc_ns, evidence=json.loads(proof))
        for subject, said, utc_ns, proof in rows
    )


def observation_of(row: sqlite3.Row) -> Observation:
    """Return the observation of a row; ValueError if it is damaged."""
    return Observation(
        function=row["function"],
        lifetime=row["lifetime"],
        kind=Kind(row["kind"]),
        start_ns=row["start_ns"],
        end_ns=row["end_ns"],
        counts=decode_counts(row["counts"]),
        calls=row["calls"],
        watched_ns=row["watched_ns"],
        inner=row["inner"],
        censored=row["censored"],
        bias_ns=row["bias_ns"],
        uncertainty_ns=row["uncertainty_ns"],
        paths=decode_paths(row["paths"]) if row["paths"] is not None else (),
        split=decode_split(row["split"]) if row["split"] is not None else None,
    )


def _function(row: sqlite3.Row) -> Function:
    return Function(
        build_id=row["build_id"],
        offset=row["offset"],
        name=row["name"],
        module=row["module"],
        aliases=tuple(json.loads(row["aliases"])),
        mangled=row["mangled"],
        in_program=bool(row["in_program"]),
        stepped=bool(row["stepped"]),
        code=row["code"],
    )


def _lifetime(row: sqlite3.Row) -> Lifetime:
    return Lifetime(
        id=row["id"],
        pid=row["pid"],
        executable=row["executable"],
        build_id=row["build_id"],
        start_ns=row["start_ns"],
        processes=row["processes"],
    )


def _objects(db: sqlite3.Connection, query: str) -> dict[str, JsonObject]:
    return {name: json.loads(text) for name, text in db.execute(query)}
