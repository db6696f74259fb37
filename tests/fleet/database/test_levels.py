"""Hours say the same as the rows that they are made of, and what is old goes."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

from specmine.fleet.codec import decode_histograms
from specmine.fleet.database.connecting import Connection
from specmine.fleet.database.hours import fold_hours
from specmine.fleet.database.levels import FleetRetention, drop_old
from specmine.fleet.forwarding.main import forward
from specmine.model.histogram import Histogram
from specmine.model.observation import Observation
from tests.support.fleets import FOR_EVER, digest, enrolled, load_all, place
from tests.support.postgres import Postgres
from tests.support.stored import observation


def _now(db: Connection) -> datetime:
    found: datetime = db.execute("SELECT now() AS now").fetchone()["now"]  # type: ignore[index]
    return found


def _fleet(db: Connection) -> dict[str, tuple[int, int, Histogram]]:
    rows = db.execute("SELECT kind, sum(calls)::bigint AS calls, max(hosts) AS hosts, array_agg(counts) AS counts"
                      " FROM specmine.fleet_hour GROUP BY kind")  # fmt: skip
    return {
        row["kind"]: (
            row["calls"], row["hosts"], Histogram.sum(decode_histograms(each, 1)[0] for each in row["counts"]),
        )
        for row in rows
    }  # fmt: skip


def test_hours_are_what_the_rows_were(postgres: Postgres, url: str, folder: Path, db: Connection) -> None:
    """Of a lifetime and of the fleet, bucket by bucket; rows that come late are added once."""
    pair = [enrolled(postgres, url, folder, name) for name in ("h1", "h2")]
    windows = list(range(0, 7000, 90))
    for host in pair:
        host.observe(windows[:50])
        forward(host.config)
    assert load_all(url).hours >= 1
    with place(url).opened() as store:
        early = digest(store.read(Observation))
    later = _now(db) + timedelta(hours=4)
    db.execute("SET ROLE specmine_load")
    assert fold_hours(db, later) == 0
    one = Histogram.sum(observation(second, names=("b", "?")).histogram for second in windows[:50])
    calls, hosts, histogram = _fleet(db)["path"]
    assert (hosts, calls) == (2, 2 * 50 * 240)
    assert np.array_equal(histogram.dense, 2 * one.dense)
    pair[0].observe(windows[50:])
    forward(pair[0].config)
    assert load_all(url).hours >= 1
    whole = Histogram.sum(observation(second, names=("b", "?")).histogram for second in windows)
    assert np.array_equal(_fleet(db)["path"][2].dense, one.dense + whole.dense)
    # the finest level goes: then the hours answer, and say the same
    with place(url).opened() as store:
        rows = digest(store.read(Observation))
    assert rows != early
    drop_old(db, replace(FOR_EVER, observations=timedelta(0)), _now(db) + timedelta(days=3))
    with place(url).opened() as store:
        assert digest(store.read(Observation)) == rows


def test_beyond_the_limit_the_oldest_rows_go_first(postgres: Postgres, url: str, folder: Path, db: Connection) -> None:
    """Partitions of the finest level first, never the one that is written to."""
    host = enrolled(postgres, url, folder, "h1")
    host.observe(range(5))
    forward(host.config)
    load_all(url)
    db.execute("SET ROLE specmine_load")
    now = _now(db)
    for days in (1, 2, 9):
        db.execute("SELECT ensure_partition('observation', %s)", (now - timedelta(days=days),))
    db.execute("SELECT ensure_partition('host_hour', %s)", (now - timedelta(days=9),))
    db.execute("SELECT ensure_partition('host_hour', %s)", (now,))
    ages = FleetRetention(observations=timedelta(days=5), host_hours=timedelta(days=30), limit_bytes=1)
    gone = drop_old(db, ages, now)
    level = [name.rpartition("_")[0] for name in gone]
    assert level == sorted(level, key=("observation", "host_hour").index)
    left = [row["level"] for row in db.execute("SELECT level FROM partitions()")]
    assert sorted(left) == ["host_hour", "observation"]
