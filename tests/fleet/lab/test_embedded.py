"""The ledger in a store opens it for each question, and looks for damage once."""

from __future__ import annotations

from pathlib import Path

import pytest

from specmine.fleet.lab.embedded import StoreLedger
from specmine.store import StoreError
from specmine.store.sqlite_file import opened
from tests.support.labs import StoreLab, benchmark, result


def test_a_store_is_looked_through_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for each run and beat; another file in its place is looked through as well."""
    lab, checks = StoreLab(tmp_path / "store.db"), []

    def noted(*arguments: object, check: bool = True) -> object:
        checks.append(check)
        return opened(*arguments, check=check)  # type: ignore[arg-type]

    lab.plan(benchmark())
    monkeypatch.setattr("specmine.store.sqlite.opened", noted)
    ledger = lab.host("lab-1")
    for _ in range(2):
        claim = ledger.claim("b")
        assert claim is not None
        assert ledger.beat("b", claim) and ledger.finish("b", claim, result())
    assert checks == [True, *[False] * 5]
    copy = tmp_path / "copy"
    copy.write_bytes(lab.path.read_bytes())
    copy.rename(lab.path)
    assert ledger.claim("b") is not None
    assert checks[6:] == [True]


def test_a_damaged_store_is_an_error(tmp_path: Path) -> None:
    """It is found before anything is written."""
    path = tmp_path / "store.db"
    path.write_bytes(b"no database " * 1000)
    with pytest.raises(StoreError, match="damaged"):
        StoreLedger(path=path, host="h").hello("b", {})
