"""The demo's daemon: its configuration, what it waits for, and the change that it makes to the server."""

from __future__ import annotations

import itertools
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from examples.demo import server
from examples.demo.run import AGENT, CHANGED, NAMED, OVERHEAD
from examples.demo.watching import CONFIGURATION, PLACES, is_learned, slower, waited
from specmine.daemon.config.loader import load_config


def test_the_configuration_that_is_shown_is_one(tmp_path: Path) -> None:
    """The daemon takes it, and keeps all files in the demo's folder."""
    shown = CONFIGURATION.format(pid=7, functions=", ".join(NAMED), overhead=OVERHEAD, agent=AGENT)
    path = tmp_path / "c.yaml"
    path.write_text(shown + PLACES.format(folder=tmp_path, metrics="127.0.0.1:1"))
    config = load_config(path)
    assert config.functions.watch == NAMED
    assert (config.budget.overhead, config.budget.agent) == (0.03, 0.1)
    places = (config.store.path, config.socket.path, config.host_lock, config.kill_switch)
    assert all(str(each).startswith(f"{tmp_path}/") for each in places)


def entry(**more: Any) -> dict[str, Any]:
    """Return a function of a specification."""
    return {"function": CHANGED, "state": "single", "quantiles": {"p50": {"seconds": 1e-5, "low": 9e-6}}, **more}


def test_a_function_is_learned_once_it_is_known_what_is_normal() -> None:
    assert is_learned(entry())
    assert not is_learned(entry(state="timing"))
    assert not is_learned(entry(quantiles={"p50": {"seconds": 1e-5, "low": None}}))
    assert not is_learned(entry(quantiles={}))


def test_only_an_open_violation_of_the_function_that_is_slower_ends_the_wait() -> None:
    known = [{"state": "open", "direction": "slower", "id": "1"}]
    for other in ({"state": "recovered"}, {"direction": "faster"}):
        known.append({"state": "open", "direction": "slower", "id": "2", **other})
    functions = [entry(violations=known), entry(function="semop", violations=known[:1]), entry()]
    assert [each["id"] for each in slower(functions, CHANGED)] == ["1"]


def test_waiting_ends_with_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    turns = itertools.count()
    assert waited(lambda: next(turns) >= 3, 60)
    assert waited(lambda: 0, 0) is None


def test_the_change_is_one_line_of_the_configuration_and_a_signal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits until the server has its mutex anew, and remembers that one too: a killed server leaves it."""
    template = Path(server.__file__).with_name("httpd.conf").read_text()
    configuration = tmp_path / "httpd.conf"
    configuration.write_text(template.replace("{level}", str(server.LEVEL)))
    seen = iter([{1, 2}, {1, 2}, {1, 3}, {1, 3}])
    monkeypatch.setattr(server, "_semaphores", lambda: next(seen))
    with subprocess.Popen(["sleep", "60"]) as process:
        running = server.Server(
            pid=process.pid, executable=tmp_path, libapr=tmp_path, addresses=("", ""), configuration=configuration,
            semaphores={2}, others=frozenset({1}),
        )  # fmt: skip
        server.set_compression(running, 6)
        assert process.wait() == -signal.SIGUSR1
    assert running.semaphores == {2, 3}
    before, after = template.splitlines(), configuration.read_text().splitlines()
    changed = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    assert changed == [("DeflateCompressionLevel {level}", "DeflateCompressionLevel 6")]
