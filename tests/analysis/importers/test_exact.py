"""Each function's own clock: found by a sample, undone call by call."""

from __future__ import annotations

import numpy as np
import pytest

from specmine.analysis.importers import spool as spools
from specmine.analysis.importers.exact import exact_durations
from specmine.analysis.importers.records import Chunk
from specmine.analysis.importers.spool import Spool


def test_each_function_has_its_own_resolution(monkeypatch: pytest.MonkeyPatch) -> None:
    """One in whole us, one in whole ns, over several blocks of the file."""
    monkeypatch.setattr(spools, "_BLOCK", 700)
    rng = np.random.default_rng(1)
    values, paths = np.round(rng.lognormal(10, 0.5, 6_000)), rng.integers(0, 3, 6_000)
    values = np.where(paths == 1, np.round(values / 1e3) * 1e3, values)
    spool = Spool()
    spool.put(Chunk(paths=paths.astype(np.int32), durations_ns=values, lifetimes=np.zeros(6_000, dtype=np.int32)))
    owner = np.array([0, 1, 0])
    exact = exact_durations(spool, owner, np.bincount(owner[paths]), above_ns=20)
    assert [one.step_ns for one in exact.resolutions] == [0.0, 1_000.0]
    got = np.concatenate([exact.of(block, owner[block.paths]) for block in spool.blocks()])
    spool.close()
    assert np.array_equal(got[paths != 1], values[paths != 1])
    away = np.abs(got - values)[(paths == 1) & (values > 0)]
    assert 400 < float(away.max()) <= 500
    assert len(np.unique(got[paths == 1])) > 1_900
