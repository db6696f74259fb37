"""From a host's store to the fleet, over TLS, through every SIGKILL."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from specmine.fleet.database.schema import initialize
from specmine.fleet.forwarding.contact import Contact
from specmine.fleet.forwarding.main import main
from specmine.store import open_store
from tests.support.fleet_killing import KilledFleet
from tests.support.postgres import Postgres, binaries, running


@pytest.fixture
def synced(postgres: Postgres) -> Iterator[Postgres]:
    """Return a server that writes to disk as in use, so that it may be killed."""
    assert binaries() is not None
    with running(postgres.folder.parent / "synced", fsync=True) as server:
        yield server


def test_kills_lose_nothing_and_repeat_nothing(synced: Postgres, folder: Path) -> None:
    """Database, loader, forwarder, planner, analyst killed amid traffic: what arrived is what was observed, by hash."""
    url = synced.url(synced.new_database())
    initialize(url)
    fleet = KilledFleet(postgres=synced, url=url, folder=folder, seed=4)
    observed, arrived = fleet.run(hosts=2, kills=5)
    assert set(fleet.kills) == {"database", "loader", "forwarder", "planner", "analyst"}
    assert len(observed) == 2
    assert arrived == observed
    assert fleet.planned()


def test_errors_are_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A fleet that is off, a database that is not there."""
    config = folder / "c.yaml"
    config.write_text("verify_every: 60s\n")
    assert main(["--config", str(config)]) == 2
    assert "fleet.connect is off" in capsys.readouterr().err
    config.write_text(
        f"store: {{path: {folder}/none.db}}\nfleet: {{connect: 'host=nowhere.invalid', spool_folder: {folder}}}\n"
    )
    assert main(["--config", str(config)]) == 3
    assert capsys.readouterr().err.count("\n") == 1


def test_nothing_of_the_fleet_is_imported_without_it() -> None:
    """Neither by the daemon nor by a command that reads a store."""
    script = (
        "import sys\n"
        "import specmine.daemon.service, specmine.cli.commands.functions, specmine.cli.base.sources\n"
        "from specmine.cli.main import run\n"
        "run(['fleet', '--help']); run(['functions', '--store', '/nonexistent'])\n"
        "found = [name for name in sys.modules if name.partition('.')[0] == 'psycopg' or name == 'specmine.fleet']\n"
        "assert not found, found\n"
    )
    done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_damaged_outbox_is_set_aside_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line, and the next run has a sound one."""
    config, spool, store = folder / "c.yaml", folder / "spool", folder / "s.db"
    spool.mkdir()
    (spool / "outbox.db").write_bytes(b"SQLite format 3\0" + b"\xff" * 8_000)
    open_store(store).close()
    config.write_text(f"store: {{path: {store}}}\nfleet: {{connect: 'host=nowhere.invalid', spool_folder: {spool}}}\n")
    main(["--config", str(config)])
    first = capsys.readouterr().err
    assert "outbox.db is damaged" in first and f"set aside as {spool}/outbox.db.corrupt-1" in first
    main(["--config", str(config)])
    assert "damaged" not in capsys.readouterr().err


@pytest.mark.parametrize(("learning", "options", "contacts"), [
    ([True, True, False], ["--while-learning"], 3), ([True], [], 1), ([False], ["--while-learning"], 1),
    ([True] * 40, ["--while-learning"], 15),
])  # fmt: skip
def test_who_learns_is_back_in_a_minute(
    learning: list[bool], options: list[str], contacts: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For as long as it learns for the fleet, but not for ever, and only where asked to."""
    rests: list[float] = []
    config = folder / "c.yaml"
    config.write_text("fleet: {connect: 'host=nowhere.invalid'}\n")
    left = iter(learning)
    monkeypatch.setattr(
        "specmine.fleet.forwarding.main.forward",
        lambda _: Contact(sent=0, waiting=0, streams_begun=0, learning=next(left)),
    )
    monkeypatch.setattr("specmine.fleet.forwarding.main.time.sleep", rests.append)
    assert main(["--config", str(config), *options]) == 0
    assert len(rests) == contacts - 1
    assert set(rests) <= {60.0}
