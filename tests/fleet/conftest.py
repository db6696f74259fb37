"""One PostgreSQL for all tests of the fleet, and a database of its own for each test."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from specmine.fleet.database.connecting import Connection, connected
from specmine.fleet.database.schema import initialize
from tests.support.command_line import outcome, plain_terminal
from tests.support.postgres import Postgres, binaries, running

__all__ = ["outcome", "plain_terminal"]


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """Return a running server whose database ``fleet1`` is an empty fleet."""
    if binaries() is None:
        end = pytest.fail if os.environ.get("CI", "0").lower() not in ("", "0", "false") else pytest.skip
        end("there is no PostgreSQL here: install the package postgresql")
    # not pytest's folder: PostgreSQL runs as somebody else, who must reach it
    with tempfile.TemporaryDirectory(prefix="specmine-postgres-") as folder:
        Path(folder).chmod(0o755)
        with running(Path(folder) / "server") as server:
            server.new_database()
            initialize(server.url("fleet1"))
            yield server


@pytest.fixture
def url(postgres: Postgres) -> str:
    """Return the administrator's URL of an empty fleet."""
    made = postgres.url(postgres.new_database("fleet1"))
    initialize(made)  # rights on the database itself are not those of its template
    return made


@pytest.fixture
def db(url: str) -> Iterator[Connection]:
    """Return the administrator's connection to it."""
    with connected(url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder for files of the test."""
    return tmp_path
