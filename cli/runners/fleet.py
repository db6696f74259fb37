"""What ``specmine fleet`` does."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import click

from specmine.cli.base.exit_codes import FINE, NO_DATA, VIOLATED
from specmine.cli.base.output import emit, write_stderr
from specmine.cli.text.fleet import duties_table, hosts_table, levels_text, statements_table, status_text
from specmine.daemon.documents.json_text import json_text
from specmine.fleet.place import need_psycopg
from specmine.model.errors import InputError
from specmine.model.text import plural
from specmine.model.units import parse_duration, parse_size

_CONFIGURATION = """\
# To be copied into the configuration of specmined, for specmined-forward.
fleet:
  connect: "{connect}"
  role: "{role}"
  certificate: /etc/specmine/fleet/host.crt
  private_key: /etc/specmine/fleet/host.key
  authority: /etc/specmine/fleet/ca.crt
"""


def age(text: str | None) -> timedelta | None:
    """Return an age written as 48h or 14d; BadParameter for anything else."""
    if text is None:
        return None
    try:
        return timedelta(microseconds=parse_duration(text) / 1e3)
    except (ValueError, OverflowError) as error:
        raise click.BadParameter(str(error)) from error


def run_init(url: str, authority: Path) -> int:
    """Make the fleet, and print what PostgreSQL's files need."""
    need_psycopg()
    from specmine.fleet.certificates import make_authority  # noqa: PLC0415
    from specmine.fleet.database.connecting import database_name  # noqa: PLC0415
    from specmine.fleet.database.schema import access_rules, initialize  # noqa: PLC0415

    version = initialize(url, tell=lambda line: write_stderr(f"specmine: {line}"))
    certificate = make_authority(authority)
    rules = access_rules(database_name(url), certificate.absolute())
    lines = [f"The fleet has schema {version}, and its authority is {certificate}.", "PostgreSQL needs:"]
    for file, text in rules.items():
        lines += ["", f"# {file}", text]
    lines += [
        "",
        f"PostgreSQL runs as another user: copy ca.crt and ca.crl of {certificate.parent} to where it can read them,",
        "such as its data folder, and name the copies. After fleet revoke, copy ca.crl again.",
    ]
    emit("\n".join(lines) + "\n")
    return FINE


def run_enroll(url: str, host: str, labels: tuple[str, ...], authority: Path, output: Path, csr: Path | None) -> int:
    """Enrol a host, and write its folder."""
    need_psycopg()
    from specmine.fleet.certificates import issue  # noqa: PLC0415
    from specmine.fleet.database.connecting import address_of  # noqa: PLC0415
    from specmine.fleet.database.hosts import enroll, labels_of, role_of  # noqa: PLC0415

    if not (authority / "ca.key").exists():
        raise InputError(f"there is no authority in {authority}", remedy="name it with --authority, or run fleet init")
    chosen, role = labels_of(labels), role_of(host)
    with _database(url) as db:
        enroll(db, host, chosen)
    issue(authority, role, output, request=csr)
    (output / "fleet.yaml").write_text(_CONFIGURATION.format(connect=address_of(url), role=role), encoding="utf-8")
    emit(f"{host} may send as {role}: copy {output}/ to /etc/specmine/fleet there, see {output}/fleet.yaml\n")
    return FINE


def run_serve(url: str, *, once: bool, ages: tuple[str, str, str], limit: str, metrics: Path | None, roles: str) -> int:
    """Load, plan and mine until a signal ends it."""
    need_psycopg()
    from specmine.fleet.database.centre.serving import ROLES, serve  # noqa: PLC0415
    from specmine.fleet.database.levels import FleetRetention  # noqa: PLC0415

    minutes, hours, fleet = (age(each) for each in ages)
    assert minutes is not None
    assert hours is not None
    assert fleet is not None
    try:
        limit_bytes = parse_size(limit)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--limit") from error
    chosen = [each.strip() for each in roles.split(",")]
    if not set(chosen) <= set(ROLES) or not chosen:
        raise click.BadParameter(f"roles are {', '.join(ROLES)}", param_hint="--roles")
    retention = FleetRetention(observations=minutes, host_hours=hours, fleet_hours=fleet, limit_bytes=limit_bytes)
    ended: list[int] = []
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda number, _: ended.append(number))
    served = serve(url, retention, once=once, tell=lambda line: write_stderr(f"specmine: {line}"),
                   stopped=lambda: bool(ended), metrics=metrics, roles=chosen)  # fmt: skip
    write_stderr(
        f"specmine: loaded {served.pushes} pushes with {served.rows} rows, {served.refused} refused;"
        f" folded {served.hours} hours, dropped {served.dropped} partitions; planned {served.plans} times,"
        f" mined {served.mined} functions"
    )
    return FINE


def run_status(url: str, form: str) -> int:
    """Print ``specmine.fleet_status/1``."""
    need_psycopg()
    from specmine.fleet.database.centre.status import status_of  # noqa: PLC0415

    with _database(url) as db:
        document = status_of(db)
    emit(json_text(document) if form == "json" else status_text(document))
    return FINE


def run_hosts(url: str, labels: tuple[str, ...], form: str) -> int:
    """Print ``specmine.fleet_hosts/1``."""
    need_psycopg()
    from specmine.fleet.database.hosts import hosts, labels_of  # noqa: PLC0415

    with _database(url) as db:
        found = hosts(db, labels_of(labels))
    entries: list[dict[str, Any]] = [
        {
            "host": each.name,
            "role": each.role,
            "labels": dict(each.labels),
            "state": each.state,
            "enrolled_at": each.enrolled_at.isoformat(),
            "seen_at": each.seen_at.isoformat() if each.seen_at is not None else None,
            "version": each.version,
            "hour_bytes": each.bytes,
            "hour_refused": each.refused,
        }
        for each in found
    ]
    emit(json_text({"schema": "specmine.fleet_hosts/1", "hosts": entries}) if form == "json" else hosts_table(entries))
    return FINE


def run_levels(url: str, labels: tuple[str, ...], since: str, *, level: float, everything: bool, form: str) -> int:
    """Print ``specmine.fleet_levels/1``; return 1 if a build is slower, 3 if nothing was observed."""
    need_psycopg()
    from specmine.fleet.database.centre.levels_document import levels_document  # noqa: PLC0415
    from specmine.fleet.database.hosts import labels_of  # noqa: PLC0415

    newest = age(since)
    assert newest is not None
    with _database(url) as db:
        document = levels_document(db, newest, labels_of(labels), level=level)
    emit(json_text(document) if form == "json" else levels_text(document, everything=everything))
    if any(each["verdict"] == "worse" for each in document["builds"]):
        return VIOLATED
    return FINE if document["functions"] else NO_DATA


def run_duties(url: str, host: str | None, form: str) -> int:
    """Print ``specmine.fleet_duties/1``."""
    need_psycopg()
    from specmine.fleet.database.hosts import host_named  # noqa: PLC0415
    from specmine.fleet.database.sharing import duty_entries  # noqa: PLC0415

    with _database(url) as db:
        if host is not None:
            host_named(db, host)
        entries = duty_entries(db, host)
    document = {"schema": "specmine.fleet_duties/1", "duties": entries}
    emit(json_text(document) if form == "json" else duties_table(entries))
    return FINE


def run_statements(url: str, form: str) -> int:
    """Print ``specmine.fleet_statements/1``; return 3 if nothing is stated."""
    need_psycopg()
    from specmine.fleet.database.sharing import statement_entries  # noqa: PLC0415

    with _database(url) as db:
        entries = statement_entries(db)
    document = {"schema": "specmine.fleet_statements/1", "statements": entries}
    emit(json_text(document) if form == "json" else statements_table(entries))
    return FINE if any(each["state"] != "none" for each in entries) else NO_DATA


def run_quarantine(url: str, host: str, *, end: bool) -> int:
    """Let a host send, or not."""
    need_psycopg()
    from specmine.fleet.database.hosts import set_state  # noqa: PLC0415

    with _database(url) as db:
        set_state(db, host, "active" if end else "quarantined")
    return FINE


def run_revoke(url: str, host: str, authority: Path, *, but_newest: bool) -> int:
    """Revoke certificates of a host."""
    need_psycopg()
    from specmine.fleet.certificates import revoke  # noqa: PLC0415
    from specmine.fleet.database.hosts import end_sessions, role_of  # noqa: PLC0415

    number = revoke(authority, role_of(host), but_newest=but_newest)
    with _database(url) as db:
        end_sessions(db, role_of(host))
    emit(f"{plural(number, 'certificate')} of {host} revoked in {authority}/ca.crl: copy it to where PostgreSQL"
         " reads it, then call SELECT pg_reload_conf()\n")  # fmt: skip
    return FINE


def run_forget(url: str, host: str) -> int:
    """Remove a host."""
    need_psycopg()
    from specmine.fleet.database.hosts import forget  # noqa: PLC0415

    with _database(url) as db:
        forget(db, host)
    return FINE


def run_import(url: str, store: Path, host: str | None) -> int:
    """Let a store's content wait in the inbox."""
    need_psycopg()
    from specmine.fleet.database.importing import import_store  # noqa: PLC0415
    from specmine.store import Host, read_store  # noqa: PLC0415

    with read_store(store) as opened:
        names = [each.hostname for each in opened.read(Host)]
    name = host or (names[-1] if names else "")
    with _database(url) as db:
        number = import_store(db, store, name)
    emit(f"{number} pushes of {name} wait for specmine fleet serve\n")
    return FINE


def run_export(url: str, folder: Path, since: str | None) -> int:
    """Write Parquet files."""
    need_psycopg()
    from specmine.fleet.database.exporting import export_parquet  # noqa: PLC0415

    with _database(url) as db:
        numbers = export_parquet(db, folder, age(since))
    emit("".join(f"{folder}/{level}.parquet: {number} rows\n" for level, number in numbers.items()))
    return FINE


@contextmanager
def _database(url: str) -> Iterator[Any]:
    from specmine.fleet.database.connecting import connected, told  # noqa: PLC0415
    from specmine.fleet.database.schema import check_version  # noqa: PLC0415

    with told(url), connected(url, autocommit=True) as db:
        check_version(db)
        yield db
