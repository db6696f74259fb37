"""A run is mined: its program is watched by probes, and only functions that were asked for come out."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples.fleet.host import compiled
from specmine.fleet.lab.measuring import Bench
from specmine.fleet.lab.results import decoded, encoded
from specmine.model.clock import SystemClock
from tests.support.labs import benchmark

pytestmark = pytest.mark.kernel


def test_a_mined_run(tmp_path: Path) -> None:
    """A program that runs for ever is ended; the module of the program has no name, since builds differ in it."""
    command = str(compiled(tmp_path, "shop"))
    made = benchmark(builds={"v1": command, "v2": command}, measure="mined", run_seconds=3.0, functions=["pa*"])
    bench = Bench(benchmark=made, folder=tmp_path / "work", clock=SystemClock())
    bench.folder.mkdir()
    measured = bench.run("v1", 0, 0)
    found = {each.function: each for each in decoded(encoded(measured.found))}
    assert set(found) == {"parse", "pack"}
    assert {each.module for each in found.values()} == {""}
    assert all(each.sample.calls > 10 and (each.rate or 0.0) > 1.0 for each in found.values())
