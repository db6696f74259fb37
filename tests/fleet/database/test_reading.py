"""What a store shows, a fleet that holds it shows too: the same JSON from every command."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from specmine.fleet.database.connecting import connected
from specmine.fleet.database.importing import import_store
from specmine.fleet.forwarding.main import forward
from specmine.model.batch import Lifetime
from specmine.model.errors import InputError
from specmine.model.histogram import Histogram
from specmine.model.observation import Kind, Observation
from specmine.store import Build, Document, LifetimeSummary, Writes, open_store
from tests.support.command_line import DATA
from tests.support.fleets import digest, enrolled, load_all, place
from tests.support.postgres import Postgres
from tests.support.stored import FUNCTION, HOST, SECOND, UTC, observation

Outcome = Callable[..., tuple[int, str, str]]


def _window(lifetime: str, second: int, scale: float, rng: np.random.Generator) -> Observation:
    durations = (np.exp(rng.normal(10, 0.2, 300)) * scale).astype(np.int64)
    return Observation(
        function=FUNCTION.key, lifetime=lifetime, kind=Kind.TIME,
        start_ns=second * SECOND, end_ns=(second + 10) * SECOND,
        histogram=Histogram.from_durations(durations), calls=300, watched_ns=SECOND, bias_ns=900.0,
    )  # fmt: skip


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store with two builds, one slower, and a specification."""
    path = tmp_path_factory.mktemp("store") / "monday.db"
    rng = np.random.default_rng(5)
    records: list[Any] = [HOST, FUNCTION]
    for build, scale in (("ab", 1.0), ("cd", 1.3)):
        for number in range(8):
            lifetime = Lifetime(id=f"boot:{number}:{build}", pid=number + 2, executable="/bin/app", build_id=build,
                                start_ns=SECOND * number, processes=1)  # fmt: skip
            spread = float(np.exp(rng.normal(0, 0.02)))
            records += [lifetime, *(_window(lifetime.id, 20 + 10 * k, scale * spread, rng) for k in range(5))]
    records += [replace(observation(500, names=("b", "c", "?")), lifetime="boot:1:ab")]
    records += [Build(build_id="ab", label="v1"), Build(build_id="cd", label="v2")]
    specification = json.loads((DATA / "app.json").read_text())
    with open_store(path) as store:
        store.write(Writes((*records, Document(name="specification", document=specification))), UTC)
    return path


@pytest.fixture
def fleet(url: str, filled: Path) -> str:
    """Return the URL of a fleet that holds the store."""
    with connected(url, autocommit=True) as db:
        assert import_store(db, filled, "here") >= 3
        assert import_store(db, filled, "here") == 0
        with pytest.raises(InputError, match="in the fleet already"):
            import_store(db, _copy(filled), "there")
    load_all(url)
    return url


def _copy(path: Path) -> Path:
    copy = path.with_name("copy.db")
    copy.write_bytes(path.read_bytes())
    with open_store(copy) as store:
        store.write(Writes((Build(build_id="ef"),)), UTC)
    return copy


_COMMANDS: tuple[tuple[str, ...], ...] = (
    ("functions", "--all"),
    ("show", "a"),
    ("assertions",),
    ("violations", "--all"),
    ("export",),
    ("compare", "v1", "v2"),
    ("compare", "v1", "v2", "--self-test"),
    ("status",),
    ("report",),
    ("check", "--formula", "z@base <= z@new", "--base", "v1", "--new", "v2"),
)


def test_every_command_prints_the_same(fleet: str, filled: Path, outcome: Outcome) -> None:
    """Byte for byte, but for the name of the source."""
    for name, *more in _COMMANDS:
        from_store = {
            "report": [name, filled, *more], "check": [name, "--against", filled, *more],
        }.get(name, [name, *more, "--store", filled])  # fmt: skip
        code, out, err = outcome(*from_store, "--format", "json")
        again = outcome(name, *more, "--fleet", fleet, "--format", "json")
        shown = str(place(fleet))
        assert json.loads(out), (name, err)
        assert (again[0], again[1].replace(shown, str(filled))) == (code, out), (name, again[2])


def test_windows_and_summaries_are_the_same(fleet: str, filled: Path) -> None:
    """Bucket by bucket, and in the same order."""
    with place(fleet).opened() as far, open_store(filled, read_only=True) as near:
        assert digest(far.read(Observation)) == digest(near.read(Observation))
        assert [each.end_ns for each in far.read(Observation)] == [each.end_ns for each in near.read(Observation)]
        assert [each.function for each in far.read(Observation, newest=3)] == [
            each.function for each in near.read(Observation, newest=3)
        ]
        for one, other in zip(far.read(LifetimeSummary), near.read(LifetimeSummary), strict=True):
            assert (one.lifetime, one.early, one.later, one.bias_ns) == (
                other.lifetime, other.early, other.later, other.bias_ns,
            )  # fmt: skip


def test_filters_choose_hosts_and_times(postgres: Postgres, url: str, folder: Path, outcome: Outcome) -> None:
    """By label, by name, by age; a part that is empty is not enough data."""
    document = json.loads((DATA / "app.json").read_text())
    for name, role in (("h1", "web"), ("h2", "web"), ("h3", "db")):
        host = enrolled(postgres, url, folder, name, role=role)
        host.observe(range(20), document=document)
        forward(host.config)
    load_all(url)

    def lifetimes(**chosen: Any) -> set[str]:
        with place(url, **chosen).opened() as store:
            return {each.lifetime.partition(":")[0] for each in store.read(Observation)}

    assert lifetimes() == {"boot-h1", "boot-h2", "boot-h3"}
    assert lifetimes(labels=("role=web",)) == {"boot-h1", "boot-h2"}
    assert lifetimes(host="h3") == {"boot-h3"}
    code, _, err = outcome("functions", "--fleet", url, "--label", "role=none")
    assert code == 3, err
    code, out, err = outcome("functions", "--fleet", url, "--since", "1h", "--format", "json")
    assert code == 0, err
    assert {each["function"] for each in json.loads(out)["functions"]} <= {
        each["function"] for each in document["functions"]
    }
    assert outcome("functions", "--label", "role=web")[0] == 2
    assert outcome("functions", "--fleet", "host=/nowhere dbname=x")[0] == 2
    assert outcome("fleet", "hosts", "--database", url, "--label", "role=db", "--format", "json")[0] == 0


def test_a_fleet_is_only_read(fleet: str, outcome: Outcome) -> None:
    """Readers have the rights of specmine_read, whoever the URL names."""
    with place(fleet).opened() as store, pytest.raises(InputError, match="only read"):
        store.write(Writes((HOST,)), 0)
