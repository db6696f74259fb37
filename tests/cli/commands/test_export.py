"""export: the specification of a store as a file."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path

from tests.support.paths import SUPPORT

DATA = SUPPORT / "data" / "cli"
Outcome = Callable[..., tuple[int, str, str]]


def test_export_to_a_file(store: Path, tmp_path: Path, outcome: Outcome) -> None:
    """An export to a file says nothing and has the same content."""
    target = tmp_path / "spec.csv"
    assert outcome("export", "--format", "csv", "--store", store, "--output", target) == (0, "", "")
    assert target.read_bytes().decode() == (DATA / "export.txt").read_bytes().decode()
    assert outcome("export", "--store", store, "--output", tmp_path / "no" / "f")[0] == 2


def test_shares_in_csv_add_up(store: Path, outcome: Outcome) -> None:
    """The classes of one behaviour share all of its calls, and their bounds join."""
    rows = list(csv.DictReader(io.StringIO(outcome("export", "--format", "csv", "--store", store)[1], newline="")))
    behaviours = {(row["function"], row["behaviour"]) for row in rows}
    for key in behaviours:
        chosen = [row for row in rows if (row["function"], row["behaviour"]) == key]
        assert abs(sum(float(row["share"]) for row in chosen) - 1) < 1e-6
        assert [row["upper_seconds"] for row in chosen[:-1]] == [row["lower_seconds"] for row in chosen[1:]]
        assert chosen[-1]["upper_seconds"] == ""
