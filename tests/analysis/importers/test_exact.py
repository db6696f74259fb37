"""Each function's own clock: found by a sample, undone call by call."""

from __future__ import annotations

import numpy as np
import pytest

from specmine.analysis.importers import spool as spools
from specmine.analysis.importers.exact import exact_durations
from specmine.analysis.importers.records import Chunk
from specmine.analysis.importers.spool import Spool
from specmine.mining.borders.detection import Evidence
from specmine.mining.borders.stability import StableBorder


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


def test_calls_are_counted_in_the_buckets_of_their_class() -> None:
    """A border inside a bucket: what lies below it counts below the bucket's edge, what lies above it above."""
    values = np.array([99_000.0, 100_500.0, 100_600.0, 150_000.0])
    spool = Spool()
    spool.put(Chunk(paths=np.zeros(4, dtype=np.int32), durations_ns=values, lifetimes=np.zeros(4, dtype=np.int32)))
    exact = exact_durations(spool, np.array([0]), np.array([4]), above_ns=20)
    (block,) = spool.blocks()
    spool.close()
    functions = np.zeros(4, dtype=np.int64)
    plain = exact.buckets(block, functions)
    assert plain[1] == plain[2]
    edge = int(plain[1])
    evidence = Evidence(depth=1.0, significance=9.0, lower_calls=2, upper_calls=2)
    border = StableBorder(edge=edge, duration_ns=100_550.0, cdf=0.5, found=10, of=10, regions=(), evidence=evidence)
    exact.cut(0, [border])
    assert exact.buckets(block, functions).tolist() == [plain[0], edge - 1, edge, plain[3]]
