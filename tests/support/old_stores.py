"""Stores as earlier versions of the schema wrote them. The SQL is theirs and never changes."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from specmine.store.codec import encode_durations, encode_histogram, encode_paths, encode_split
from tests.support.stored import FUNCTION, HOST, LIFETIME, UTC, observation

_FIRST = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE hosts(
    boot_id TEXT PRIMARY KEY, hostname TEXT NOT NULL, utc_offset_ns INTEGER NOT NULL, facts TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE builds(build_id TEXT PRIMARY KEY, executable TEXT NOT NULL, label TEXT) WITHOUT ROWID;
CREATE TABLE lifetimes(
    id TEXT PRIMARY KEY, boot_id TEXT NOT NULL, pid INTEGER NOT NULL, executable TEXT NOT NULL,
    build_id TEXT NOT NULL, start_ns INTEGER NOT NULL, processes INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE functions(
    key TEXT PRIMARY KEY, build_id TEXT NOT NULL, offset INTEGER NOT NULL, name TEXT NOT NULL,
    module TEXT NOT NULL, aliases TEXT NOT NULL, mangled TEXT NOT NULL, in_program INTEGER NOT NULL,
    stepped INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE observations(
    id INTEGER PRIMARY KEY, function TEXT NOT NULL, lifetime TEXT NOT NULL, kind TEXT NOT NULL,
    boot_id TEXT NOT NULL, start_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL, end_utc_ns INTEGER NOT NULL,
    calls INTEGER NOT NULL, watched_ns INTEGER NOT NULL, inner INTEGER NOT NULL, censored INTEGER NOT NULL,
    bias_ns REAL NOT NULL, merges INTEGER NOT NULL, counts BLOB NOT NULL, paths BLOB
);
CREATE INDEX observations_of_function ON observations(function, kind, end_utc_ns);
CREATE INDEX observations_by_age ON observations(merges, end_utc_ns);
CREATE TABLE states(
    function TEXT PRIMARY KEY, state TEXT NOT NULL, updated_utc_ns INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE verdicts(
    id INTEGER PRIMARY KEY, function TEXT NOT NULL, subject TEXT NOT NULL, verdict TEXT NOT NULL,
    utc_ns INTEGER NOT NULL, evidence TEXT NOT NULL
);
CREATE INDEX verdicts_of_function ON verdicts(function, subject, id);
CREATE TABLE documents(
    name TEXT PRIMARY KEY, document TEXT NOT NULL, updated_utc_ns INTEGER NOT NULL
) WITHOUT ROWID;
"""

_LATER = {
    2: """
CREATE TABLE summaries(
    function TEXT NOT NULL, lifetime TEXT NOT NULL, kind TEXT NOT NULL, start_utc_ns INTEGER NOT NULL,
    end_utc_ns INTEGER NOT NULL, calls INTEGER NOT NULL, watched_ns INTEGER NOT NULL, bias_ns REAL NOT NULL,
    early BLOB NOT NULL, later BLOB NOT NULL, PRIMARY KEY(function, lifetime, kind)
) WITHOUT ROWID;
CREATE INDEX summaries_by_age ON summaries(end_utc_ns);
""",
    3: """
ALTER TABLE functions ADD COLUMN code TEXT NOT NULL DEFAULT '';
CREATE TABLE sampled(
    build_id TEXT NOT NULL, function TEXT NOT NULL, samples INTEGER NOT NULL, cpu_ns REAL NOT NULL,
    wait_ns REAL NOT NULL, inclusive_ns REAL NOT NULL, callers TEXT NOT NULL, PRIMARY KEY(build_id, function)
) WITHOUT ROWID;
""",
    4: """
CREATE TABLE environments(
    boot_id TEXT NOT NULL, since_utc_ns INTEGER NOT NULL, document TEXT NOT NULL, PRIMARY KEY(boot_id, since_utc_ns)
) WITHOUT ROWID;
CREATE TABLE marks(
    boot_id TEXT NOT NULL, start_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL, name TEXT NOT NULL, cpus TEXT NOT NULL,
    PRIMARY KEY(boot_id, start_ns, name)
) WITHOUT ROWID;
""",
    5: """
CREATE TABLE singles(
    function TEXT NOT NULL, lifetime TEXT NOT NULL, calls INTEGER NOT NULL, updated_utc_ns INTEGER NOT NULL,
    first BLOB NOT NULL, kept BLOB NOT NULL, PRIMARY KEY(function, lifetime)
) WITHOUT ROWID;
""",
    6: "ALTER TABLE observations ADD COLUMN split BLOB;",
    7: "ALTER TABLE observations ADD COLUMN uncertainty_ns REAL NOT NULL DEFAULT 0;",
}


def write_old_store(path: Path, version: int) -> None:
    """Write a store of an earlier version, with a row in each of its tables."""
    window = observation(1)
    with sqlite3.connect(path) as db:
        db.executescript(_FIRST + "".join(sql for number, sql in _LATER.items() if number <= version))
        db.execute("PRAGMA application_id = 0x73706D6E")
        db.execute("INSERT INTO meta VALUES('schema_version', ?)", (str(version),))
        db.execute("INSERT INTO hosts VALUES(?, ?, ?, ?)", (HOST.boot_id, HOST.hostname, UTC, '{"kernel":"6.18"}'))
        db.execute("INSERT INTO builds VALUES('ab', '/bin/app', 'v1')")
        db.execute(
            "INSERT INTO lifetimes VALUES(?, 'boot', ?, '/bin/app', 'ab', ?, ?)",
            (LIFETIME.id, LIFETIME.pid, LIFETIME.start_ns, LIFETIME.processes),
        )
        code = ("",) if version >= 3 else ()
        row = (FUNCTION.key, "ab", FUNCTION.offset, FUNCTION.name, FUNCTION.module, '["zz"]', "_z", 1, 1, *code)
        db.execute(f"INSERT INTO functions VALUES({', '.join('?' * len(row))})", row)
        assert window.split is not None
        paths = window.paths if version >= 6 else ()
        split = (encode_split(window.split),) if version >= 6 else ()
        uncertainty = (window.uncertainty_ns,) if version >= 7 else ()
        observed = (
            None, window.function, window.lifetime, window.kind.value, "boot", window.start_ns, window.end_ns,
            window.end_ns + UTC, window.calls, window.watched_ns, window.inner, window.censored, window.bias_ns, 0,
            encode_histogram(window.histogram), encode_paths(paths), *split, *uncertainty,
        )  # fmt: skip
        db.execute(f"INSERT INTO observations VALUES({', '.join('?' * len(observed))})", observed)
        db.execute("INSERT INTO states VALUES(?, ?, 1)", (FUNCTION.key, '{"state":"single"}'))
        db.execute("INSERT INTO verdicts VALUES(NULL, 'f', 'a', 'holds', 5, '{}')")
        db.execute("INSERT INTO documents VALUES('specification', '{}', 1)")
        if version >= 2:
            counts = encode_histogram(window.histogram)
            db.execute(
                "INSERT INTO summaries VALUES('f', 'boot:7:99', 'time', 1, 2, 3, 4, 5.0, ?, ?)", (counts, counts)
            )
        if version >= 3:
            db.execute("INSERT INTO sampled VALUES('ab', 'f', 1, 2.0, 3.0, 4.0, '{\"g\":1.0}')")
        if version >= 4:
            db.execute("INSERT INTO environments VALUES('boot', 1, '{}')")
            db.execute("INSERT INTO marks VALUES('boot', 1, 2, 'noise', '[1]')")
        if version >= 5:
            first, sample = encode_durations((30, 10)), encode_durations((20,))
            db.execute("INSERT INTO singles VALUES('f', 'boot:7:99', 3, 1, ?, ?)", (first, sample))
    db.close()
