"""The tables, and the way from each older version of them to the present one."""

from __future__ import annotations

from . import host_environments

VERSION = 7
APPLICATION_ID = 0x73706D6E  # "spmn", at a fixed place of the file's header

_SUMMARIES = """
CREATE TABLE summaries(
    function TEXT NOT NULL, lifetime TEXT NOT NULL, kind TEXT NOT NULL, start_utc_ns INTEGER NOT NULL,
    end_utc_ns INTEGER NOT NULL, calls INTEGER NOT NULL, watched_ns INTEGER NOT NULL, bias_ns REAL NOT NULL,
    early BLOB NOT NULL, later BLOB NOT NULL, PRIMARY KEY(function, lifetime, kind)
) WITHOUT ROWID;
CREATE INDEX summaries_by_age ON summaries(end_utc_ns);
"""

_CODE = """
ALTER TABLE functions ADD COLUMN code TEXT NOT NULL DEFAULT '';
-- where sampling saw the time of a program's build go, since it was first seen; function '': all of it
CREATE TABLE sampled(
    build_id TEXT NOT NULL, function TEXT NOT NULL, samples INTEGER NOT NULL, cpu_ns REAL NOT NULL,
    wait_ns REAL NOT NULL, inclusive_ns REAL NOT NULL, callers TEXT NOT NULL, PRIMARY KEY(build_id, function)
) WITHOUT ROWID;
"""

_SINGLES = """
CREATE TABLE singles(
    function TEXT NOT NULL, lifetime TEXT NOT NULL, calls INTEGER NOT NULL, updated_utc_ns INTEGER NOT NULL,
    first BLOB NOT NULL, kept BLOB NOT NULL, PRIMARY KEY(function, lifetime)
) WITHOUT ROWID;
"""

# what calls did of their time; null where that is not known
_SPLITS = "ALTER TABLE observations ADD COLUMN split BLOB;\n"

_UNCERTAINTY = "ALTER TABLE observations ADD COLUMN uncertainty_ns REAL NOT NULL DEFAULT 0;\n"

TABLES = (
    """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
-- one row a boot of a host: monotonic times mean something only together with it
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
    + _SUMMARIES
    + _CODE
    + host_environments.TABLES
    + _SINGLES
    + _SPLITS
    + _UNCERTAINTY
)

MIGRATIONS: dict[int, str] = {
    1: _SUMMARIES,
    2: _CODE,
    3: host_environments.TABLES,
    4: _SINGLES,
    5: _SPLITS,
    # the least that calibration ever told
    6: _UNCERTAINTY + "UPDATE observations SET uncertainty_ns = 0.12 * bias_ns;\n",
}
"""From a version to the next: the SQL that leads there."""
