"""Rows for other tools say what the fleet holds."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from specmine.fleet.database.connecting import Connection
from specmine.fleet.database.exporting import rows_of
from specmine.fleet.forwarding.main import forward
from specmine.model.observation import Observation
from tests.support.command_line import Outcome
from tests.support.fleets import enrolled, load_all, place
from tests.support.postgres import Postgres


def test_rows_have_names_and_quantiles(postgres: Postgres, url: str, folder: Path, db: Connection) -> None:
    """Of each level; medians are those of the histograms less the probes' cost."""
    host = enrolled(postgres, url, folder, "h1")
    host.observe(range(20))
    forward(host.config)
    load_all(url)
    db.execute("SET ROLE specmine_read")
    with place(url).opened() as store:
        seen = {each.calls: each for each in store.read(Observation)}
    rows = list(rows_of(db, "observation", None))
    assert rows
    for row in rows:
        one = seen[row["calls"]]
        assert (row["function"], row["module"], row["host"], row["build_id"]) == ("z", "app", "h1", "ab")
        assert row["p50_seconds"] == pytest.approx((one.histogram.quantile(0.5) - one.bias_ns) * 1e-9)
        assert sum(row["counts"]) == one.timed == row["timed"]
    (hour,) = rows_of(db, "fleet_hour", None)
    assert (hour["hosts"], hour["calls"]) == (1, sum(row["calls"] for row in rows))


def test_without_pyarrow_it_says_so(url: str, folder: Path, outcome: Callable[..., Outcome]) -> None:
    """Exit code 4 and what to install."""
    if find_spec("pyarrow") is not None:
        pytest.skip("pyarrow is there")
    code, _, err = outcome("fleet", "export", "--database", url, "--parquet", folder / "out")
    assert code == 4
    assert "specmine[parquet]" in err


def test_the_files_hold_the_rows(
    postgres: Postgres, url: str, folder: Path, db: Connection, outcome: Callable[..., Outcome]
) -> None:
    """Read back by pyarrow itself, where it is installed: every row, its calls and its median."""
    parquet = pytest.importorskip("pyarrow.parquet")
    host = enrolled(postgres, url, folder, "h1")
    host.observe(range(3))
    forward(host.config)
    load_all(url)
    assert outcome("fleet", "export", "--database", url, "--parquet", folder / "out")[0] == 0
    found = parquet.read_table(folder / "out" / "observation.parquet").to_pylist()
    db.execute("SET search_path = specmine")
    assert found == list(rows_of(db, "observation", None))
    assert found[0]["p50_seconds"] > 0
