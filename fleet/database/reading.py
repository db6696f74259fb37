"""The fleet as a store that is only read: what commands ask of a host's store, answered for many hosts.

Observations are rows of five minutes, and hours where those are gone. Of a function that hosts describe differently,
the description of most hosts counts. The specification is that of the one host, else the hosts' merged as
``specmine merge`` does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar, cast

from specmine.fleet.codec import decode_histograms
from specmine.fleet.push import HELD
from specmine.model.errors import InputError, NoData
from specmine.model.json_codec import decode
from specmine.model.observation import Kind, Observation
from specmine.store import (
    Document,
    FunctionRecord,
    Host,
    LifetimeSummary,
    Retention,
    Store,
    StoreError,
    Verdict,
    Writes,
)
from specmine.store.codec import encode_histogram
from specmine.store.schema import SCHEMA

from .connecting import FleetError, connected, shown, told
from .hosts import FleetHost, hosts
from .levels import SELECT_ROWS, paths_of, row_of
from .schema import READ, check_version
from .storing import document

T = TypeVar("T")
MOST_MERGED = 64
"""Hosts whose specifications are merged; of more, so many are chosen evenly by name."""
_NEVER_SENT = (FunctionRecord, Verdict)
"""What only a daemon reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Which part of the fleet is meant."""

    labels: tuple[tuple[str, str], ...] = ()
    """Hosts that have all of these."""
    host: str | None = None
    since: timedelta | None = None
    """Only what was observed so lately."""

    def __str__(self) -> str:
        """Return them as people write them."""
        since = f"since {self.since}" if self.since is not None else ""
        return ", ".join(filter(None, (*(f"{key}={value}" for key, value in self.labels), self.host, since)))


class FleetStore(Store):
    """The hosts of a fleet as one store; ``specmine.fleet.place`` opens it."""

    def __init__(self, url: str, filters: Filters) -> None:
        """Connect, and find the hosts. Raises FleetError; NoData if no host fits the filters."""
        self.path = Path(shown(url))
        self._url, self._filters = url, filters
        self._db = connected(url, role=READ, autocommit=False)
        try:
            with told(url):
                check_version(self._db)
                # all commands see one moment
                self._db.rollback()
                self._db.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                self._hosts: list[FleetHost] = hosts(self._db, dict(filters.labels), filters.host)
        except BaseException:
            self._db.close()
            raise
        if not self._hosts:
            self._db.close()
            chosen = f" with {filters}" if str(filters) else ""
            raise NoData(f"the fleet {shown(url)} has no host{chosen}", remedy="see: specmine fleet hosts")

    def read(self, record: type[T], *, newest: int | None = None, **equal: object) -> tuple[T, ...]:
        """Return the records of a type, in the order of their table."""
        if record in _NEVER_SENT:
            return ()
        with told(self._url):
            found = self._read(record, newest)
        return tuple(each for each in found if all(getattr(each, name) == value for name, value in equal.items()))

    def _read(self, record: type[Any], newest: int | None) -> Sequence[Any]:
        if record is Observation:
            return self._observations(newest)
        if record is LifetimeSummary:
            return self._summaries()
        if record is Document:
            return self._documents()
        table = SCHEMA.table(record)
        found = sorted(self._held(record), key=lambda each: tuple(getattr(each, name) for name in table.order))
        return found if newest is None else sorted(found, key=lambda each: getattr(each, table.age))[-newest:]

    def _observations(self, newest: int | None) -> list[Observation]:
        if newest == 0:
            return []
        chosen: list[tuple[Any, Observation]] = []
        # hours whose rows of five minutes are all there are not needed
        first = self._db.execute("SELECT date_trunc('hour', min(ends_at)) AS hour FROM observation").fetchone()
        assert first is not None
        for table, condition in (
            ("host_hour", "(%(first)s::timestamptz IS NULL OR o.ends_at < %(first)s)"),
            ("observation", "true"),
        ):
            fitting = (
                f"{SELECT_ROWS.format(table=table)} WHERE {condition} AND o.host_id = ANY(%(hosts)s)"
                " AND (%(since)s::interval IS NULL OR o.ends_at >= now() - %(since)s::interval)"
            )
            rank = "row_number() OVER (PARTITION BY function_id, kind ORDER BY ends_at DESC)"
            rows = self._db.execute(
                f"SELECT * FROM (SELECT *, {rank} AS rank FROM ({fitting}) AS r) AS n"
                " WHERE %(newest)s::bigint IS NULL OR rank <= %(newest)s",
                {"first": first["hour"], "hosts": self._ids, "since": self._filters.since, "newest": newest},
                binary=True,
            ).fetchall()
            paths = paths_of(self._db, rows)
            chosen += [((r["ends_at"], r["function"], r["lifetime"]), row_of(r, paths).observation) for r in rows]
        chosen.sort(key=lambda each: each[0])
        return _newest_of_each([each for _, each in chosen], newest)

    def _summaries(self) -> list[LifetimeSummary]:
        rows = self._db.execute(
            "SELECT f.key AS function, l.key AS lifetime, s.kind, s.start_utc_ns, s.end_utc_ns, s.calls, s.watched_ns,"
            " s.bias_ns, s.early, s.later FROM summary s JOIN function f USING (function_id)"
            " JOIN lifetime l USING (lifetime_id) WHERE l.host_id = ANY(%s) AND (%s::interval IS NULL"
            " OR s.end_utc_ns >= extract(epoch FROM now() - %s::interval) * 1e9)",
            (self._ids, self._filters.since, self._filters.since),
        )
        found = [_summary(row) for row in rows]
        return sorted(found, key=lambda each: (each.function, each.start_utc_ns, each.lifetime, each.kind.value))

    def _held(self, record: type[T]) -> list[T]:
        if record.__name__ not in HELD:
            raise InputError(f"a fleet holds no {record.__name__}")
        rows = self._db.execute(
            "SELECT host_id, key, document FROM held WHERE what = %s AND host_id = ANY(%s) ORDER BY host_id, key",
            (record.__name__, self._ids),
        ).fetchall()
        names = {each.host_id: each.name for each in self._hosts}
        votes: dict[str, Counter[bytes]] = {}
        for row in rows:
            votes.setdefault(row["key"], Counter())[bytes(row["document"])] += 1
        found: list[Any] = [self._record(record, each.most_common(1)[0][0]) for each in votes.values()]
        if record is Host and len(self._hosts) > 1:
            # whose boot it is decides what it is called, not what it calls itself
            owner = {row["key"]: names[row["host_id"]] for row in rows}
            found = [replace(each, hostname=owner[each.boot_id]) for each in found]
        return found

    @staticmethod
    def _record(record: type[T], data: bytes) -> T:
        try:
            return cast("T", decode(record, document(data)))
        except ValueError as error:
            raise FleetError(f"the fleet holds a damaged {record.__name__}: {error}") from error

    def _documents(self) -> list[Document]:
        rows = self._db.execute(
            "SELECT host_id, document FROM held WHERE what = 'Document' AND key = 'specification'"
            " AND host_id = ANY(%s) AND (%s::interval IS NULL OR updated_at >= now() - %s::interval) ORDER BY host_id",
            (self._ids, self._filters.since, self._filters.since),
        ).fetchall()
        if not rows:
            return []
        step = -(-len(rows) // MOST_MERGED)
        documents = [self._record(Document, row["document"]) for row in rows[::step]]
        if len(documents) == 1:
            return documents
        from specmine.analysis.merge.specifications import merge_specifications  # noqa: PLC0415  it brings half of mining

        told_of = [each.document for each in documents if isinstance(each.document.get("functions"), list)]
        return [Document(name="specification", document=merge_specifications(told_of).document)]

    @property
    def _ids(self) -> list[int]:
        return [each.host_id for each in self._hosts]

    def write(self, writes: Writes, utc_ns: int) -> None:
        """Refuse: a fleet is written by its hosts."""
        raise StoreError("a fleet is only read", remedy="label and acknowledge on the host")

    def absorb(self, other: str | Path) -> None:
        """Refuse: see ``specmine fleet import``."""
        raise StoreError("a fleet is only read", remedy="use: specmine fleet import FILE")

    def thin(self, limits: Retention, now_utc_ns: int) -> tuple[int, int]:
        """Do nothing: the fleet has its own retention."""
        return 0, 0

    def begin_anew(self, why: str) -> str:
        """Refuse."""
        raise StoreError(f"a fleet is only read ({why})")

    def close(self) -> None:
        """End the connection."""
        self._db.close()


def _summary(row: Mapping[str, Any]) -> LifetimeSummary:
    (early,), (later,) = decode_histograms(row["early"], 1), decode_histograms(row["later"], 1)
    values = {name: row[name] for name in
              ("function", "lifetime", "start_utc_ns", "end_utc_ns", "calls", "watched_ns", "bias_ns")}  # fmt: skip
    return LifetimeSummary(
        **values, kind=Kind(row["kind"]), packed_early=encode_histogram(early), packed_later=encode_histogram(later)
    )


def _newest_of_each(observations: list[Observation], newest: int | None) -> list[Observation]:
    if newest is None:
        return observations
    counts: Counter[tuple[str, str]] = Counter()
    kept = []
    for each in reversed(observations):
        counts[each.function, each.kind.value] += 1
        if counts[each.function, each.kind.value] <= newest:
            kept.append(each)
    return kept[::-1]
