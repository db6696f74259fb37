"""A fleet as one document: hosts, levels, and what is open on which host."""

from __future__ import annotations

from pathlib import Path

from specmine.fleet.database.connecting import Connection
from specmine.fleet.overview import overview_of
from tests.support.fleets import enrolled, load_all
from tests.support.postgres import Postgres


def test_a_fleet_is_one_document(postgres: Postgres, url: str, tmp_path: Path, db: Connection) -> None:
    """Also an empty one; hosts that never sent are there."""
    assert overview_of(url)["hosts"] == []
    enrolled(postgres, url, tmp_path, "h1", role="web")
    load_all(url)
    found = overview_of(url)
    assert [(each["host"], each["labels"], each["seen_at"]) for each in found["hosts"]] == [
        ("h1", {"role": "web"}, None)
    ]
    assert found["status"]["hosts"] == {"never seen": 1}
    assert (found["violations"], found["levels"]["functions"]) == ([], [])
