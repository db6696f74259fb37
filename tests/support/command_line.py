"""What the tests of the command line share: a sample of knowledge, a store and a daemon that hold it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from specmine.cli.main import run
from specmine.daemon.socket.peer import Peer
from specmine.daemon.socket.server import Server
from specmine.store import Document, Writes, open_store

DATA = Path(__file__).parent / "data" / "cli"
Outcome = tuple[int, str, str]


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test depends on the terminal it runs in."""
    for name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def document() -> dict[str, Any]:
    """A specification with a function in each of six states."""
    loaded: dict[str, Any] = json.loads((DATA / "app.json").read_text())
    return loaded


@pytest.fixture
def keep(tmp_path: Path) -> Callable[[Mapping[str, Any]], Path]:
    """Return what puts a specification into a store."""

    def put(specification: Mapping[str, Any]) -> Path:
        path = tmp_path / "specmine.db"
        with open_store(path) as store:
            store.write(Writes((Document(name="specification", document=specification),)), 0)
        return path

    return put


@pytest.fixture
def store(keep: Callable[[Mapping[str, Any]], Path], document: dict[str, Any]) -> Path:
    """A store that holds the sample."""
    return keep(document)


@pytest.fixture
def asked(tmp_path: Path, document: dict[str, Any]) -> Iterator[tuple[Path, list[Mapping[str, Any]]]]:
    """A daemon's socket that answers with the sample, and the requests that it got."""
    requests: list[Mapping[str, Any]] = []
    answers: dict[str, Mapping[str, Any]] = {
        "specification": document,
        "status": {"version": "0.1.0", "pid": 12345, "programs": ["/usr/bin/app"], "bystander_hits": 1234,
                   "budget": {"overhead": {"promised_ratio": 0.01, "spent_seconds": 0.25}}, "notes": [],
                   "lifetimes": [{"pid": 4321, "executable": "/usr/local/bin/a\x1bpp"}]},
        "violations": {"schema": "specmine.violations/1", "host": "h", "at": None, "violations": []},
        "label": {"build_id": "5f1d9c0a77e2b34c9d1e"},
    }  # fmt: skip

    def answer(request: Mapping[str, Any], _: Peer) -> Mapping[str, Any]:
        requests.append(request)
        return answers[request["command"]]

    server = Server(tmp_path / "daemon.sock", answer)
    yield server.path, requests
    server.close()


@pytest.fixture
def outcome(capfd: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Return what runs a command line and gives its exit code, standard output and standard error."""

    def run_it(*arguments: object) -> Outcome:
        code = run([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        return code, out, err

    return run_it


@pytest.fixture
def compared(outcome: Callable[..., Outcome]) -> Callable[..., tuple[int, dict[str, Any]]]:
    """Return what compares and reads the answer."""

    def run(*arguments: object) -> tuple[int, dict[str, Any]]:
        code, out, err = outcome("compare", *map(str, arguments), "--format", "json")
        assert out, err
        return code, json.loads(out)

    return run
