"""What the process of the experiments answers on a host that lacks something."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from specmine.experiments.load import worker_binary
from specmine.experiments.load.cgroup_confinement import Confinement
from specmine.experiments.runner import lock, server


def test_without_a_compiler_load_is_skipped_and_looking_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason is needs-native with its remedy, the host is not loaded; an experiment without load runs."""
    confinement = Confinement(how="nothing is started in it")
    monkeypatch.setattr(worker_binary, "compiler", lambda: None)
    monkeypatch.setenv("CACHE_DIRECTORY", str(tmp_path))
    monkeypatch.setattr(lock, "default_path", lambda: tmp_path / "lock")
    monkeypatch.setattr(server, "remove_leftovers", lambda: None)
    monkeypatch.setattr(server, "confined", lambda in_unit: contextlib.nullcontext(confinement))
    names = ["timers", "additional-load"]
    request = {"names": names, "state": str(tmp_path / "state.json"), "parameters": {"seconds": 20_000_000}}
    skip, value = server.serve(request)
    assert (skip["value"], skip["valid"], skip["cpu_seconds"]) == (None, False, 0.0)
    assert (skip["reason"]["code"], skip["reason"]["remedy"]) == ("needs-native", "install gcc")
    assert value["valid"]
