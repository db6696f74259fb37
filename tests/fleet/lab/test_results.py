"""Results survive their way as bytes; bytes of somebody else do no harm."""

from __future__ import annotations

import json
import random
import zlib

import numpy as np
import pytest

from specmine.fleet.lab.results import BadResult, FunctionResult, decoded, encoded
from specmine.mining.regression.sample import sample_of_histogram
from specmine.model.histogram import Histogram


def _printed(durations: list[float]) -> FunctionResult:
    return FunctionResult(
        function="f", module="", warmup=3, rate=None, durations_ns=np.array(durations), cells=None
    )  # fmt: skip


def test_durations_and_cells_come_back() -> None:
    """In their order, whole or not; with rate and warm-up."""
    cells = sample_of_histogram(Histogram.from_durations(np.array([10.0, 20.0, 20.0, 5000.0])))
    mined = FunctionResult(function="g", module="app", warmup=0, rate=12.5, durations_ns=None, cells=cells)
    first, second, third = decoded(encoded([_printed([5, 3, 4]), mined, _printed([0.25, 1.5])]))
    assert first.durations_ns is not None and first.durations_ns.tolist() == [5, 3, 4]
    assert third.durations_ns is not None and third.durations_ns.tolist() == [0.25, 1.5]
    assert (first.warmup, first.rate, second.rate, second.module) == (3, None, 12.5, "app")
    assert second.sample.calls == 4
    assert second.sample.lower.tolist() == pytest.approx(cells.lower.tolist())


def _packed(value: object) -> bytes:
    return zlib.compress(json.dumps(value).encode())


@pytest.mark.parametrize(
    "data",
    [
        b"", b"x", zlib.compress(b"{"), _packed([]), _packed({"functions": 3}), _packed({"functions": [{}]}),
        zlib.compress(b" " * (65 << 20)),
        _packed({"functions": [{"function": "f", "module": "", "warmup": 0, "rate": None, "durations_ns": [-1]}]}),
        _packed({"functions": [{"function": "f", "module": "", "warmup": 0, "rate": None, "durations_ns": ["x"]}]}),
        _packed({"functions": [{"function": "f", "module": "", "warmup": 0, "rate": None, "durations_ns": [[1]]}]}),
        _packed({"functions": [{"function": 1, "module": "", "warmup": 0, "rate": None, "durations_ns": [1]}]}),
        _packed({"functions": [{"function": "f", "module": "", "warmup": 0, "rate": None, "cells": [[2], [1], [1]]}]}),
        _packed({"functions": [{"function": "f", "module": "", "warmup": 0, "rate": 1, "cells": [[1], [2], [1e18]]}]}),
    ],
)  # fmt: skip
def test_bytes_that_are_no_result(data: bytes) -> None:
    """Each is refused as a whole."""
    with pytest.raises(BadResult):
        decoded(data)


def test_damaged_results_are_refused_or_read() -> None:
    """Any byte changed: never another error."""
    whole, chance = encoded([_printed([5, 3, 4])]), random.Random(1)
    for _ in range(300):
        damaged = bytearray(whole)
        damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        try:
            decoded(bytes(damaged))
        except BadResult:
            continue
