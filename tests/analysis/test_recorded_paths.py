"""Call paths of a recording: counted in passes of their own, explained, and taken apart by behaviour again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from specmine.analysis.recorded_paths import PathHistograms
from specmine.mining.assertions import merged_paths
from specmine.model.call_path import CallPath, Frame
from specmine.model.histogram import Histogram
from tests.support.recordings import analyzed, calls, csv_text


def test_histograms_are_made_when_asked_for() -> None:
    """Three paths in one array each of buckets, calls and ends."""
    paths = [CallPath((Frame(name, ""),)) for name in "abc"]
    every = PathHistograms(paths, np.array([5, 9, 7, 5]), np.array([2, 1, 4, 3]), np.array([2, 3, 4]))
    assert len(every) == 3
    assert [one.path for one in every] == paths
    assert every[0].histogram == Histogram.from_pairs([5, 9], [2, 1])
    assert [one.histogram.total for one in every[1:]] == [4, 3]
    assert every.class_calls([7]).tolist() == [[2, 1], [0, 4], [3, 0]]


def test_merged_paths_say_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Callers of their own below the planted edge: explained over gaps as over all paths, path by path."""
    some = [(path.replace("main", f"main;x{n % 60}", 1), duration) for n, (path, duration) in enumerate(calls(6_000))]
    whole = analyzed(tmp_path, csv_text(some))["functions"][0]
    monkeypatch.setattr(merged_paths, "MOST", 20)
    monkeypatch.setattr(merged_paths.merged_paths, "__defaults__", (20,))
    merged = analyzed(tmp_path, csv_text(some))["functions"][0]
    assert whole["state"] == merged["state"] == "explained"
    for key in ("expression", "calls", "paths", "shares", "quantiles"):
        assert [one[key] for one in whole["behaviours"]] == [one[key] for one in merged["behaviours"]]
    assert [one["frames"] for one in whole["paths"]] == [one["frames"] for one in merged["paths"]]
    assert [one["behaviour"] for one in whole["paths"]] == [one["behaviour"] for one in merged["paths"]]
